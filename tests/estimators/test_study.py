"""What estimators share: input that is checked once, one walk over the grid, one set of draws."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimators import ESTIMATORS
from verirec.estimators.cell_losses import CellLosses
from verirec.estimators.inputs import checked_rates, judgeable, refuse_weights
from verirec.estimators.rows import LoggedPairs
from verirec.estimators.study import Study
from verirec.exceptions import EmptyLogError, LabelError, NoiseRateError, ParameterError
from verirec.losses import get_loss
from verirec.nuisances.propensities import as_propensities

RATES = vr.NoiseRates(0.2, 0.1, ((4e-4, 0), (0, 2e-4)))
GRID = plain.small_grid(0, rho01=0.2, rho10=0.1)
LOG = vr.FeedbackLog.from_arrays(**GRID.rows())


def study_of(predictions=GRID.f, imputation="constant", sample=None, seed=0):
    losses = CellLosses(as_predictions(predictions, *GRID.f.shape), get_loss("log"))
    drawn = int(np.random.default_rng(seed).integers(2**32))
    return Study(LoggedPairs(LOG, as_propensities(GRID.p, LOG)), losses, imputation, sample, drawn)


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
            f"^an estimate needs rows of both classes; all {len(LOG)} are positive$",
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
    for rates, expected in ((RATES, ESTIMATORS[name].denoised), (vr.NoiseRates(0.2, 0.1), False), (None, False)):
        if rates is None and ESTIMATORS[name].denoised:
            continue
        gradient = study_of().linearised(ESTIMATORS[name], rates)[2]
        assert (gradient is not None) == expected
        if expected:
            assert gradient.shape == (2,)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_what_goes_over_the_grid_has_a_part_of_the_sample(name):
    for sample in (None, 40):
        part = study_of(sample=sample).linearised(ESTIMATORS[name], RATES)[0].sample_variance
        assert (part > 0) == (sample is not None and ESTIMATORS[name].over_grid)
