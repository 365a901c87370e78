import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from verirec.exceptions import ParameterError
from verirec.randomness import as_generator, cell_uniforms

WORDS = st.integers(0, 2**64 - 1)


def splitmix64(state):
    """Finalise one state, with plain integers."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def test_a_seed_gives_the_same_numbers_again_and_another_seed_others():
    first, again, other = (as_generator(seed).random(8).tolist() for seed in (3, np.int64(3), 4))
    assert first == again
    assert first != other


def test_a_generator_is_taken_as_it_is():
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator


def test_no_seed_gives_fresh_numbers_and_leaves_the_global_state_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert as_generator(None).random() != as_generator(None).random()
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("random_state", [-1, 1.5, "1", [1], np.random.RandomState(0)])
def test_anything_else_is_refused(random_state):
    with pytest.raises(ParameterError, match=r"^random_state must be a whole number of at least 0, .*; got [^\n]*\Z"):
        as_generator(random_state)


def test_cell_uniforms_are_the_published_splitmix64_sequence():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    numbers = cell_uniforms(np.uint64(1234567), np.arange(1, 5, dtype=np.uint64))
    assert numbers.tolist() == [word // 2**11 / 2**53 for word in published]


@given(WORDS, st.lists(WORDS, min_size=1, max_size=20))
def test_cell_uniforms_equal_plain_integer_arithmetic_in_any_order(key, cells):
    expected = [(splitmix64((cell * 0x9E3779B97F4A7C15 + key) % 2**64) >> 11) / 2**53 for cell in cells]
    asked = np.array(cells, np.uint64)
    assert cell_uniforms(np.uint64(key), asked).tolist() == expected
    assert cell_uniforms(np.uint64(key), asked[::-1]).tolist() == expected[::-1]
    assert asked.tolist() == cells


@pytest.mark.parametrize("key", [0, 7, 2**63])
def test_cell_uniforms_are_uniform_and_neighbours_are_not_correlated(key):
    numbers = cell_uniforms(np.uint64(key), np.arange(200_000, dtype=np.uint64))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4 / np.sqrt(len(numbers))


def test_cell_uniforms_of_two_keys_are_not_correlated():
    cells = np.arange(200_000, dtype=np.uint64)
    one, other = cell_uniforms(np.uint64(1), cells), cell_uniforms(np.uint64(2), cells)
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(len(cells))
