"""What estimators share: input that is checked once, one walk over the grid, one set of draws."""

from __future__ import annotations

import gc
import weakref
from types import FunctionType, ModuleType

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation import ESTIMATORS
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.inference import judge, judge_difference
from verirec.estimation.inputs import checked_rates, judgeable, refuse_weights
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import EmptyLogError, LabelError, NoiseRateError, ParameterError
from verirec.losses import get_loss
from verirec.nuisance.propensities import as_propensities

RATES = vr.NoiseRates(0.2, 0.1, ((4e-4, 0), (0, 2e-4)))
GRID = plain.small_grid(0, rho01=0.2, rho10=0.1)
LOG = vr.FeedbackLog.from_arrays(**GRID.rows())


def study_of(predictions=GRID.f, imputation="constant", sample=None, seed=0):
    losses = CellLosses(as_predictions(predictions, *GRID.f.shape), get_loss("log"))
    drawn = int(np.random.default_rng(seed).integers(2**32))
    return EstimationProblem(LoggedPairs(LOG, as_propensities(GRID.p, LOG)), losses, imputation, sample, drawn)


# Input


def test_a_log_with_both_classes_and_rates_for_its_grid_are_taken_as_they_are():
    assert judgeable(LOG) is LOG
    grouped = vr.GroupedNoiseRates((RATES,), user_groups=np.zeros(LOG.n_users, int))
    for rates in (None, RATES, grouped):
        assert checked_rates(rates, LOG) is rates
    refuse_weights(LOG, ["dr"])
    refuse_weights(vr.FeedbackLog.from_arrays(**GRID.rows(), weights=np.ones(len(LOG))), [])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: judgeable("log"), ParameterError, "^a FeedbackLog is needed; got str$"),
        (lambda: judgeable(LOG.select([0])), EmptyLogError, "^an estimate needs at least 2 rows; the log has 1$"),
        (
            lambda: judgeable(LOG.with_labels(np.ones(len(LOG), int))),
            LabelError,
            f"^an estimate needs rows of both classes; all {len(LOG)} are positive: of clicks alone",
        ),
        (
            lambda: checked_rates((0.2, 0.1), LOG),
            ParameterError,
            r"^noise_rates must be such as NoiseRates\(rho01=\.2, rho10=\.1\), GroupedNoiseRates or a NoiseRegion; "
            "got tuple$",
        ),
        (
            lambda: checked_rates(vr.GroupedNoiseRates((RATES,), item_groups=[0]), LOG),
            NoiseRateError,
            "^item_groups must name the group of all 14 items; got 1$",
        ),
        (
            lambda: refuse_weights(vr.FeedbackLog.from_arrays(**GRID.rows(), weights=np.ones(len(LOG))), ["dr", "ips"]),
            ParameterError,
            "^the log has row weights, which dr, ips cannot use: the unobserved pairs have none$",
        ),
    ],
    ids=["no log", "one row", "one class", "no rates", "other groups", "weights"],
)
def test_what_no_estimate_can_use_is_refused(call, error, message):
    check_refusal(call, error, message)


# One study for all


@pytest.mark.parametrize("region", [None, vr.NoiseRegion(0.3, 0.2)], ids=["rates", "region"])
def test_all_estimators_at_all_rates_ask_for_each_pair_once_and_for_the_logged_ones_once_more(region):
    asked = np.zeros(GRID.f.shape, int)

    def predict(users, items):
        np.add.at(asked, (users, items), 1)
        return GRID.f[users, items]

    vr.estimate(predict, LOG, propensities=GRID.p, noise_rates=region or RATES, estimators="all")
    logged = np.zeros(GRID.f.shape, int)
    logged[LOG.users, LOG.items] = 1
    assert (asked == 1 + logged).all()


def test_rows_the_walk_and_fits_are_made_once():
    study = study_of()
    assert study.rows(None) is study.rows(None)
    assert study.rows(RATES) is study.rows(RATES)
    assert study.rows(RATES) is not study.rows(vr.NoiseRates(0.2, 0.1))
    assert study.unobserved is study.unobserved
    rows = study.rows(RATES)
    dr, mrdr, tdr = (ESTIMATORS[name] for name in ("dr", "mrdr", "tdr"))
    assert study.imputed(dr, rows) is study.imputed(tdr, rows)
    assert study.imputed(dr, rows) is not study.imputed(mrdr, rows)
    assert study.imputed(dr, rows) is not study.imputed(dr, study.rows(None))


@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("sample", [None, 40])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_study_has_the_values_of_estimate(name, sample, imputation):
    value = study_of(imputation=imputation, sample=sample).linearised(ESTIMATORS[name], RATES)[0].value
    options = {"propensities": GRID.p, "noise_rates": RATES, "imputation": imputation, "sample": sample}
    assert vr.estimate(GRID.f, LOG, estimators=name, **options)[name].value == value


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_what_corrects_for_uncertain_rates_has_a_gradient_by_them(name):
    for rates, expected in ((RATES, ESTIMATORS[name].noise_corrected), (vr.NoiseRates(0.2, 0.1), False), (None, False)):
        if rates is None and ESTIMATORS[name].noise_corrected:
            continue
        gradient = study_of().linearised(ESTIMATORS[name], rates)[2]
        assert (gradient is not None) == expected
        if expected:
            assert gradient.shape == (2,)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_what_goes_over_the_grid_has_a_part_of_the_sample(name):
    for sample in (None, 40):
        part = study_of(sample=sample).linearised(ESTIMATORS[name], RATES)[0].sample_variance
        assert (part > 0) == (sample is not None and ESTIMATORS[name].needs_all_predictions)


# What is kept


OTHER = np.clip(GRID.f + 0.2, 0, 0.95)
JUDGED = [ESTIMATORS[name] for name in ("naive", "snips", "ome-snips", "ome-dr", "ome-mrdr", "ome-sdr")]
NOISES = {"rates": RATES, "region": vr.NoiseRegion(0.3, 0.2)}


def holds_rows(study):
    return "_plain_rows" in vars(study) or bool(vars(study).get("_corrected_rows"))


def reached_from(thing):
    """Give all objects that something keeps alive, but for classes, modules and functions' globals."""
    seen, left = {}, [thing]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType):
            left += [cell.cell_contents for cell in one.__closure__ or ()]
        else:
            left += gc.get_referents(one)
    return seen


def kept_of_the_log(study):
    """Count the arrays of the log's length that the study keeps, and that the log or its pairs do not."""
    shared = reached_from(study.pairs) | reached_from(study.losses)
    own = [one for key, one in reached_from(study).items() if key not in shared]
    return sum(isinstance(one, np.ndarray) and one.size == len(LOG) for one in own)


@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("sample", [None, 30])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_judged_twice_a_study_has_the_same_figures_and_keeps_no_rows(noise, sample, imputation):
    study = study_of(imputation=imputation, sample=sample)
    rows = weakref.ref(study.rows(None))
    assert holds_rows(study)
    first = judge(study, JUDGED, noise, 0.95)
    assert not holds_rows(study)
    gc.collect()
    assert rows() is None
    again = judge(study, JUDGED, noise, 0.95)
    assert dict(first) == dict(again)
    assert not holds_rows(study)


@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("sample", [None, 30])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_compared_twice_studies_have_the_same_figures_and_keep_no_rows(noise, sample, imputation):
    one, two = (study_of(f, imputation=imputation, sample=sample) for f in (GRID.f, OTHER))
    rows = [weakref.ref(study.rows(None)) for study in (one, two)]
    first = judge_difference(one, two, JUDGED, noise, 0.95)
    assert not holds_rows(one)
    assert not holds_rows(two)
    gc.collect()
    assert [row() for row in rows] == [None, None]
    # Judged alone in between, and the other way round.
    judge(two, JUDGED, noise, 0.95)
    back = judge_difference(two, one, JUDGED, noise, 0.95)
    again = judge_difference(one, two, JUDGED, noise, 0.95)
    assert dict(first) == dict(again)
    assert all(back[name].interval != again[name].interval for name in back)
    assert not holds_rows(one)
    assert not holds_rows(two)


@pytest.mark.parametrize("sample", [30, None])
def test_after_an_estimate_nothing_of_the_logs_length_is_kept(sample):
    study = study_of(sample=sample)
    study.linearised(ESTIMATORS["ome-dr"], RATES)
    assert kept_of_the_log(study) > 3
    study.let_go_of_rows()
    assert kept_of_the_log(study) == 0


def test_rows_are_made_again_where_they_are_asked_for_after():
    study = study_of()
    before = study.rows(RATES)
    errors = before.errors.copy()
    study.let_go_of_rows()
    assert study.rows(RATES) is not before
    np.testing.assert_array_equal(study.rows(RATES).errors, errors)


# The gradient by the noise rates


DENOISED = [name for name, one in ESTIMATORS.items() if one.noise_corrected]
GRADIENTS = [(name, imputation, loss) for name in DENOISED for imputation in ("constant", "model") for loss in LOSSES]


def gradients(name, imputation, loss):
    """Give the gradient of an estimate, and the central differences of its value."""
    losses = CellLosses(as_predictions(GRID.f, *GRID.f.shape), get_loss(loss))
    study = EstimationProblem(LoggedPairs(LOG, as_propensities(GRID.p, LOG)), losses, imputation, None, 0)
    step = 1e-5

    def value(rho01, rho10):
        return study.linearised(ESTIMATORS[name], vr.NoiseRates(rho01, rho10))[0].value

    return study.linearised(ESTIMATORS[name], RATES)[2], [
        (value(0.2 + step, 0.1) - value(0.2 - step, 0.1)) / (2 * step),
        (value(0.2, 0.1 + step) - value(0.2, 0.1 - step)) / (2 * step),
    ]


@pytest.mark.parametrize("case", GRADIENTS, ids=" ".join)
def test_the_gradient_is_how_the_value_moves_with_each_rate(case):
    gradient, expected = gradients(*case)
    assert gradient == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("case", [case for case in GRADIENTS if case[0] == "ome-sdr"], ids=" ".join)
def test_the_gradient_of_sdr_is_right_to_a_small_part_of_its_length(case):
    gradient, expected = gradients(*case)
    assert np.linalg.norm(gradient - expected) < 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["ome-dr", "ome-sdr", "ome-tdr"])
def test_the_gradient_is_by_each_groups_rates_where_there_are_groups(name):
    groups = np.arange(LOG.n_users) % 2
    rates = [(0.2, 0.1), (0.1, 0.25)]

    def at(moved):
        both = tuple(vr.NoiseRates(*one, ((4e-4, 0), (0, 2e-4))) for one in moved)
        return study_of().linearised(ESTIMATORS[name], vr.GroupedNoiseRates(both, user_groups=groups))

    step, expected = 1e-5, []
    for place in np.ndindex(2, 2):
        shift = np.zeros((2, 2))
        shift[place] = step
        expected.append((at(rates + shift)[0].value - at(rates - shift)[0].value) / (2 * step))
    assert at(rates)[2] == pytest.approx(expected, rel=1e-4)
