"""Constant, popularity and naive Bayes against their formulas, by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_formulas import propensities as plain
from refusals import check_refusal
from verirec import ConstantPropensity, FeedbackLog, NaiveBayesPropensity, PopularityPropensity
from verirec.exceptions import EmptyLogError, ParameterError, PropensityError

GRIDS = (
    st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
    .map(lambda drawn: (np.random.default_rng(drawn[2]).random(drawn[:2]) < drawn[3]).astype(int))
    .filter(np.any)
)


def everywhere(propensities):
    return propensities.block(range(propensities.shape[0]), range(propensities.shape[1]))


@given(GRIDS)
def test_the_constant_is_the_density_everywhere(grid):
    fitted = ConstantPropensity().fit(plain.log_of(grid))
    assert everywhere(fitted).tolist() == [[pytest.approx(grid.mean())] * grid.shape[1]] * grid.shape[0]
    assert fitted.inverse_total == pytest.approx(grid.size**2 / grid.sum())


def test_learning_the_constant_leaves_the_variance_of_a_mean_without_replacement():
    """A sum of e/p is then the mean of the observed errors, whose variance is (1 - p) times that of e, over n."""
    random = np.random.default_rng(0)
    log = plain.log_of((random.random((20, 15)) < 0.3).astype(int))
    fitted, errors, n = ConstantPropensity().fit(log), random.exponential(size=log.n_cells), len(log)
    errors = errors[:n]
    influence = errors / log.density / log.n_cells
    variance = (1 - log.density) * (influence**2).sum() + fitted.variance_change(log, -influence, influence)
    assert variance == pytest.approx((1 - log.density) * errors.var() / n, rel=1e-9)


def test_a_constant_that_is_1_changes_no_variance():
    log = plain.log_of(np.ones((2, 3), int))
    ones = np.ones(6)
    assert ConstantPropensity().fit(log).variance_change(log, -ones, ones) == 0


@given(GRIDS, st.floats(0, 3))
def test_popularity_is_a_power_of_the_count_scaled_to_the_density(grid, power):
    p = everywhere(PopularityPropensity(power=power, floor=0).fit(plain.log_of(grid)))
    expected = plain.popularity(grid.sum(axis=0).tolist(), grid.shape[0], power)
    assert p.tolist() == [pytest.approx(expected, rel=1e-9)] * grid.shape[0]
    assert ((p > 0) & (p <= 1)).all()


@given(GRIDS)
def test_power_0_is_the_constant(grid):
    log = plain.log_of(grid)
    popularity, constant = PopularityPropensity(power=0).fit(log), ConstantPropensity().fit(log)
    assert np.allclose(everywhere(popularity), everywhere(constant), rtol=1e-12)


def test_the_default_power_is_a_square_root():
    log = plain.log_of([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    by_item = PopularityPropensity(floor=0).fit(log).at([0, 0, 0], [0, 1, 2])
    assert by_item[0] / by_item[1] == pytest.approx(2)
    assert by_item[1] / by_item[2] == pytest.approx(math.sqrt(2))
    assert by_item.mean() == pytest.approx(log.density)


def test_popular_items_have_at_most_1():
    log = plain.log_of([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1]])
    assert PopularityPropensity(power=3).fit(log).at([0, 2], [0, 0]).tolist() == [1.0, 1.0]


def test_the_default_floor_is_a_hundredth_of_the_density():
    log = plain.log_of(np.pad(np.ones((50, 1), int), ((0, 50), (0, 3))))
    fitted = PopularityPropensity(power=3).fit(log)
    assert fitted.floor == pytest.approx(log.density / 100)
    assert fitted.at([0], [3]).tolist() == pytest.approx([log.density / 100])


LABELS = st.lists(st.integers(0, 1), min_size=2, max_size=12).filter(lambda labels: len(set(labels)) == 2)


def logs_of(labels, sample_labels, **columns):
    """Give a log on a grid of 12 x 4, and a sample, a row a label."""
    log = FeedbackLog.from_arrays(np.arange(len(labels)), [0] * len(labels), labels, n_users=12, n_items=4, **columns)
    users, size = np.arange(len(sample_labels)), len(sample_labels)
    return log, FeedbackLog.from_arrays(users, [1] * size, sample_labels, n_users=12, n_items=4)


@given(LABELS, LABELS)
def test_naive_bayes_is_bayes_formula(labels, sample_labels):
    log, sample = logs_of(labels, sample_labels)
    fitted = NaiveBayesPropensity(unbiased=sample, floor=0).fit(log)
    expected = [plain.naive_bayes(label, labels, sample_labels, 48) for label in labels]
    assert fitted.at(log.users, log.items).tolist() == pytest.approx(expected, rel=1e-12)


def test_naive_bayes_takes_the_rows_that_the_log_marks():
    labels, marked = [1, 1, 0, 1, 0, 0], [True, False, True, False, True, False]
    log, _ = logs_of(labels, [0, 1], unbiased=marked)
    expected = [plain.naive_bayes(label, labels, [1, 0, 0], 48) for label in labels]
    assert NaiveBayesPropensity(floor=0).fit(log).at(log.users, log.items).tolist() == pytest.approx(expected)


def test_a_sample_that_is_given_goes_before_the_marked_rows():
    labels, sample_labels = [1, 1, 0, 1, 0, 0], [1, 1, 1, 0]
    log, sample = logs_of(labels, sample_labels, unbiased=[True, False, True, False, True, False])
    expected = [plain.naive_bayes(label, labels, sample_labels, 48) for label in labels]
    fitted = NaiveBayesPropensity(unbiased=sample, floor=0).fit(log)
    assert fitted.at(log.users, log.items).tolist() == pytest.approx(expected)


def test_naive_bayes_is_at_most_1():
    log, sample = logs_of([1] * 11 + [0], [1] + [0] * 11)
    assert NaiveBayesPropensity(unbiased=sample).fit(log).at([0], [0]).tolist() == [1.0]


def test_the_sample_leaves_its_binomial_variance_in_an_estimate():
    """By the delta method: the derivative of a sum of e/p by the share of positives, times that share's variance."""
    labels, sample_labels = [1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0, 0, 1]
    log, sample = logs_of(labels, sample_labels)
    fitted = NaiveBayesPropensity(unbiased=sample, floor=0).fit(log)
    errors, share = np.random.default_rng(0).random(len(log)), 3 / 9

    def estimate(share):
        of_label = {1: share, 0: 1 - share}
        in_log = {label: labels.count(label) / len(labels) for label in (0, 1)}
        return sum(
            e * of_label[label] / in_log[label] / log.density / log.n_cells
            for e, label in zip(errors, labels, strict=True)
        )

    derivative = (estimate(share + 1e-6) - estimate(share - 1e-6)) / 2e-6
    influence = errors / fitted.at(log.users, log.items) / log.n_cells
    change = fitted.variance_change(log, -influence, influence)
    assert change == pytest.approx(derivative**2 * share * (1 - share) / 9, rel=1e-6)


def test_propensities_that_are_cut_at_1_do_not_move_with_the_sample():
    # A label of 11 rows of 12 in the log and of 1 of 12 in the sample: cut at 1. The other one carries no error.
    log, sample = logs_of([1] * 11 + [0], [1] + [0] * 11)
    fitted = NaiveBayesPropensity(unbiased=sample, floor=0).fit(log)
    influence = np.where(log.labels == 1, 1.0, 0.0)
    assert fitted.variance_change(log, -influence, influence) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: of.at([0], [2]), r"^the log has no propensity for 1 of the 1 pairs that are needed$"),
        (lambda of: of.block([0, 1], [0, 3]), r"^the log has no propensity for 2 of the 4 pairs that are needed$"),
        (lambda of: of.inverse_total, r"^the sum of 1/p over the grid needs the propensities of all pairs; "),
    ],
)
def test_naive_bayes_knows_observed_pairs_only(call, message):
    log, sample = logs_of([1, 0, 1], [0, 1])
    check_refusal(lambda: call(NaiveBayesPropensity(unbiased=sample).fit(log)), PropensityError, message)


BOTH, SAMPLE = logs_of([1, 0, 1], [0, 1, 0])
MARKED, _ = logs_of([1, 0, 1], [0, 1], unbiased=[True, False, True])
UNMARKED, _ = logs_of([1, 0, 1], [0, 1], unbiased=[False, False, False])
NO_SAMPLE = r"^naive Bayes needs an unbiased sample: give unbiased=\.\.\., or a log that marks its rows$"
NO_ROWS = r"^propensities cannot be estimated from a log without rows$"


@pytest.mark.parametrize(
    ("log", "sample", "error", "message"),
    [
        (BOTH, None, PropensityError, NO_SAMPLE),
        (UNMARKED, None, PropensityError, NO_SAMPLE),
        (MARKED, None, PropensityError, r"^naive Bayes needs both labels in the unbiased sample; its 2 rows have one$"),
        (BOTH, SAMPLE.select([0, 2]), PropensityError, r"^naive Bayes needs both labels in the unbiased sample; its 2"),
        (BOTH.select([0, 2]), SAMPLE, PropensityError, r"^naive Bayes needs both labels in the log; it has one$"),
        (BOTH.select([1]), SAMPLE, PropensityError, r"^naive Bayes needs both labels in the log; it has one$"),
        (BOTH, SAMPLE.select([]), EmptyLogError, NO_ROWS),
        (BOTH.select([]), SAMPLE, EmptyLogError, NO_ROWS),
        (BOTH, "sample", ParameterError, r"^a FeedbackLog is needed; got str$"),
        (BOTH, FeedbackLog, ParameterError, r"^a FeedbackLog is needed; got type$"),
        (BOTH, np.eye(2), ParameterError, r"^a FeedbackLog is needed; got ndarray$"),
        ("log", SAMPLE, ParameterError, r"^a FeedbackLog is needed; got str$"),
    ],
)
def test_naive_bayes_needs_both_labels_in_the_log_and_in_an_unbiased_sample(log, sample, error, message):
    check_refusal(lambda: NaiveBayesPropensity(unbiased=sample).fit(log), error, message)


@pytest.mark.parametrize("model", [ConstantPropensity(), PopularityPropensity(), NaiveBayesPropensity()])
@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        (BOTH.select([]), EmptyLogError, NO_ROWS),
        (None, ParameterError, r"^a FeedbackLog is needed; got NoneType$"),
        ("log", ParameterError, r"^a FeedbackLog is needed; got str$"),
        (FeedbackLog, ParameterError, r"^a FeedbackLog is needed; got type$"),
    ],
)
def test_only_a_log_with_rows_can_be_learnt_from(model, log, error, message):
    check_refusal(lambda: model.fit(log), error, message)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PopularityPropensity(power=-0.1), r"^power must be a finite number at least 0 and at most 10; got -0\.1$"),
        (PopularityPropensity(power=11), r"^power must be .*; got 11$"),
        (PopularityPropensity(power="1"), r"^power must be .*; got '1'$"),
        (PopularityPropensity(power=None), r"^power must be .*; got None$"),
        (PopularityPropensity(power=math.nan), r"^power must be .*; got nan$"),
        (PopularityPropensity(floor=2), r"^floor must be a finite number at least 0 and at most 1; got 2$"),
        (PopularityPropensity(floor="0"), r"^floor must be .*; got '0'$"),
        (NaiveBayesPropensity(unbiased=SAMPLE, floor=-1), r"^floor must be .*; got -1$"),
        (NaiveBayesPropensity(unbiased=SAMPLE, floor=math.inf), r"^floor must be .*; got inf$"),
    ],
)
def test_settings_without_meaning_are_refused(model, message):
    check_refusal(lambda: model.fit(BOTH), ParameterError, message)
