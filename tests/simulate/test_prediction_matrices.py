"""The paper's six prediction matrices, against what its text says of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from draws import fits, z_scores
from plain_formulas import levels as plain
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.simulate import levels_by_rank, prediction_matrices

NAMES = ["ROTATE", "SKEW", "CRS", "ONE", "THREE", "FIVE"]
FLIPPED_LEVEL = {"ONE": 1, "THREE": 2, "FIVE": 3}


@pytest.fixture(scope="module")
def levels():
    return levels_by_rank(np.random.default_rng(0).normal(size=(200, 300)))


@pytest.fixture(scope="module")
def matrices(levels):
    return prediction_matrices(levels, random_state=7)


def by_cell(function, levels):
    return [[function(int(level)) for level in row] for row in levels]


def test_there_are_six_in_the_papers_order_and_all_are_probabilities(levels, matrices):
    assert list(matrices) == NAMES
    for name, matrix in matrices.items():
        assert matrix.shape == levels.shape, name
        assert matrix.min() >= 0.1, name
        assert matrix.max() <= 0.9, name


@given(arrays(np.int64, (4, 9), elements=st.integers(1, 4)))
def test_rotate_and_coarse_follow_the_papers_text_cell_by_cell(levels):
    matrices = prediction_matrices(levels, random_state=0)
    np.testing.assert_allclose(matrices["ROTATE"], by_cell(plain.rotate, levels), rtol=1e-12)
    np.testing.assert_array_equal(matrices["CRS"], by_cell(plain.coarse, levels))


def test_rotate_and_coarse_of_the_top_level_follow_the_papers_text(levels, matrices):
    np.testing.assert_allclose(matrices["ROTATE"], by_cell(plain.rotate, levels), rtol=1e-12)
    np.testing.assert_array_equal(matrices["CRS"], by_cell(plain.coarse, levels))


@pytest.mark.parametrize("name", FLIPPED_LEVEL)
def test_as_many_cells_are_flipped_as_there_are_at_the_top_level(levels, matrices, name):
    gamma = np.array(by_cell(plain.GAMMA.get, levels))
    flipped = matrices[name] != gamma
    assert flipped.sum() == (levels == 5).sum()
    assert (levels[flipped] == FLIPPED_LEVEL[name]).all()
    assert (matrices[name][flipped] == 0.9).all()


def test_flipped_cells_are_chosen_evenly_among_their_level():
    levels = np.array([[1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 5, 5]])
    runs = 3_000
    flips = sum((prediction_matrices(levels, random_state=seed)["ONE"][0, :6] == 0.9) for seed in range(runs))
    assert flips.sum() == 2 * runs
    assert fits((flips - runs / 3) / np.sqrt(runs / 3 * 2 / 3))


def clipped_normal_moments(mean, spread, low, high):
    """Give the mean and the variance of a normal number cut to [low, high]."""
    a, b = (low - mean) / spread, (high - mean) / spread
    below, above, inside = norm.cdf(a), norm.sf(b), norm.cdf(b) - norm.cdf(a)
    first = low * below + high * above + mean * inside - spread * (norm.pdf(b) - norm.pdf(a))
    second = low**2 * below + high**2 * above + (mean**2 + spread**2) * inside
    second -= spread * ((high + mean) * norm.pdf(b) - (low + mean) * norm.pdf(a))
    return first, second - first**2


@pytest.mark.parametrize("level", range(1, 6))
def test_skew_is_a_normal_number_around_gamma_cut_to_the_papers_interval(levels, matrices, level):
    gamma = plain.GAMMA[level]
    drawn = matrices["SKEW"][levels == level]
    mean, variance = clipped_normal_moments(gamma, (1 - gamma) / 2, 0.1, 0.9)
    assert abs(drawn.mean() - mean) < 3.9 * np.sqrt(variance / drawn.size)
    assert drawn.var() == pytest.approx(variance, rel=6 / np.sqrt(drawn.size))
    for edge, share in ((0.1, norm.cdf(0.1, gamma, (1 - gamma) / 2)), (0.9, norm.sf(0.9, gamma, (1 - gamma) / 2))):
        assert fits(z_scores(drawn == edge, np.full(drawn.size, share)))


def test_the_same_seed_gives_the_same_matrices_and_another_seed_others(levels, matrices):
    again, other = prediction_matrices(levels, random_state=7), prediction_matrices(levels, random_state=8)
    for name in NAMES:
        np.testing.assert_array_equal(matrices[name], again[name])
        assert (matrices[name] != other[name]).any() == (name in {"SKEW", "ONE", "THREE", "FIVE"})


def test_the_callers_levels_are_left_alone():
    levels = np.array([[1, 2, 3, 4, 5]])
    prediction_matrices(levels, random_state=0)
    assert levels.tolist() == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([[2, 3, 4, 5]], r"level 1 must have at least as many cells as level 5 \(1\) to flip; it has 0"),
        ([[1, 1, 2, 3, 3, 5, 5]], r"level 2 must have at least as many cells as level 5 \(2\) to flip; it has 1"),
        ([[1.0, 2.0]], "levels must be integers from 1 to 5; got float64 from 1.0 to 2.0"),
        ([[0.1, 0.3]], "levels must be integers from 1 to 5"),
        ([[0, 1]], "levels must be integers from 1 to 5; got int64 from 0 to 1"),
        ([[1, 6]], "levels must be integers from 1 to 5; got int64 from 1 to 6"),
        ([[True, False]], "levels must be integers from 1 to 5; got bool"),
        ([1, 2, 3], r"levels must be a matrix; got shape \(3,\)"),
        ([[]], r"users in rows .*got shape \(1, 0\)"),
        (None, "levels must be numbers; got object"),
        ([["a"]], "levels must be numbers; got <U1"),
        ([[1], [1, 2]], "levels must be"),
    ],
)
def test_wrong_levels_are_refused_in_one_line(levels, message):
    check_refusal(lambda: prediction_matrices(levels, random_state=0), ParameterError, message)


def test_a_wrong_seed_is_refused_in_one_line():
    check_refusal(lambda: prediction_matrices([[1]], random_state=-1), ParameterError, "random_state must be")
