"""Five integer levels: how scores are sorted into them, and what each is worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from plain_formulas import levels as plain
from refusals import check_refusal
from verirec.exceptions import ParameterError
from verirec.simulate import LEVEL_PROBABILITIES, LEVEL_PROPORTIONS, level_propensities, levels_by_rank

MATRICES = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([-1.0, 0, 0.5, 7]))
SHARES = st.sampled_from([LEVEL_PROPORTIONS, (0.2,) * 5, (0, 0.5, 0, 0, 0.5), (1, 0, 0, 0, 0), (0, 0, 0, 0, 1)])


def test_the_constants_are_those_that_reproduce_the_papers_table():
    assert LEVEL_PROBABILITIES == (0.1, 0.3, 0.5, 0.7, 0.9)
    assert LEVEL_PROPORTIONS == (0.53, 0.24, 0.14, 0.07, 0.02)
    assert level_propensities() == (0.0625, 0.0625, 0.125, 0.25, 0.5)


@given(alpha=st.floats(0.01, 1), p=st.floats(0.01, 1))
def test_propensities_of_the_levels_follow_the_papers_formula(alpha, p):
    assert level_propensities(alpha, p) == tuple(plain.propensity(level, alpha, p) for level in range(1, 6))


@given(MATRICES, SHARES)
def test_levels_by_rank_are_those_of_sorting_the_cells_one_by_one(scores, shares):
    np.testing.assert_array_equal(levels_by_rank(scores, shares), plain.by_rank(scores.tolist(), shares))


@given(MATRICES, SHARES)
def test_a_higher_score_never_has_a_lower_level(scores, shares):
    order = np.argsort(scores, axis=None, kind="stable")
    assert (np.diff(levels_by_rank(scores, shares).ravel()[order].astype(int)) >= 0).all()


@pytest.mark.parametrize("shape", [(17, 23), (40, 25), (1, 1_000)])
def test_shares_are_exact_to_one_cell_even_if_all_scores_tie(shape):
    for scores in (np.zeros(shape), np.random.default_rng(0).normal(size=shape)):
        counts = np.bincount(levels_by_rank(scores).ravel(), minlength=6)[1:]
        assert np.abs(counts - np.array(LEVEL_PROPORTIONS) * scores.size).max() <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: levels_by_rank([1.0, 2.0]), r"scores must be a matrix; got shape \(2,\)"),
        (lambda: levels_by_rank([[]]), "scores must be finite, and not empty"),
        (lambda: levels_by_rank([[1.0, np.nan]]), "scores must be finite, and not empty"),
        (lambda: levels_by_rank([[1.0, np.inf]]), "scores must be finite, and not empty"),
        (lambda: levels_by_rank([[1.0]], (0.5, 0.5)), r"5 shares that add up to 1; got \(0.5, 0.5\)"),
        (lambda: levels_by_rank([[1.0]], (0.5,) * 5), "5 shares that add up to 1"),
        (lambda: levels_by_rank([[1.0]], (-0.5, 0.5, 0.5, 0.5, 0)), "5 shares that add up to 1"),
        (lambda: levels_by_rank([[1.0]], (np.nan, 0.5, 0.5, 0, 0)), "5 shares that add up to 1"),
        (lambda: level_propensities(alpha=0), "alpha and p must be above 0"),
        (lambda: level_propensities(p=0), "alpha and p must be above 0"),
        (lambda: level_propensities(alpha=1.1), "alpha must be a finite number at least 0 and at most 1; got 1.1"),
        (lambda: level_propensities(p=-0.1), "p must be a finite number at least 0 and at most 1; got -0.1"),
        (lambda: level_propensities(alpha="half"), "alpha must be a finite number .*got 'half'"),
        (lambda: levels_by_rank([["a", "b"]]), "scores must be"),
        (lambda: levels_by_rank([[1], [1, 2]]), "scores must be"),
        (lambda: levels_by_rank([[1.0]], "equal"), "5 shares"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    check_refusal(call, ParameterError, message)
