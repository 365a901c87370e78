"""All estimates at once: what they are given, what they give back, and what is refused."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation import ESTIMATORS, Estimates
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import (
    EmptyLogError,
    LabelError,
    MisfitWarning,
    NoiseRateError,
    NoiseRateWarning,
    OverlapWarning,
    ParameterError,
    PredictionError,
    PropensityError,
    ScoreWarning,
)
from verirec.losses import get_loss
from verirec.nuisance.propensities import as_propensities

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (9, 14)


def log_of(grid, **columns):
    return vr.FeedbackLog.from_arrays(**grid.rows(), **columns)


@pytest.fixture(scope="module")
def grid():
    return plain.small_grid(0, SHAPE, rho01=0.2, rho10=0.1)


@pytest.fixture(scope="module")
def log(grid):
    return log_of(grid)


# The result


def test_estimates_are_made_of_their_values():
    one = vr.Estimate(0.5, 0.1, (0.3, 0.7))
    found = Estimates(values={"ips": one}, of="the loss")
    assert dict(found) == dict(found.items()) == {"ips": one}
    assert found.of == "the loss"
    with pytest.raises(FrozenInstanceError):
        found.of = "another"


def test_the_usual_estimates_are_naive_ips_dr_and_with_rates_their_corrected_forms(grid, log):
    assert list(vr.estimate(grid.f, log, propensities=grid.p)) == ["naive", "ips", "dr"]
    with_rates = vr.estimate(grid.f, log, propensities=grid.p, noise_rates=RATES)
    assert list(with_rates) == ["naive", "ips", "dr", "ome-ips", "ome-dr"]


def test_the_result_is_a_mapping_by_name(grid, log):
    result = vr.estimate(grid.f, log, propensities=grid.p)
    assert len(result) == 3
    assert "dr" in result
    assert "ome-dr" not in result
    assert result.get("ome-dr") is None
    assert all(isinstance(one, vr.Estimate) for one in result.values())
    check_refusal(lambda: result["ome-dr"], KeyError, "^no estimate 'ome-dr'; there are: naive, ips, dr$")


def test_a_frame_has_a_row_for_each_estimator(grid, log):
    result = vr.estimate(grid.f, log, propensities=grid.p, noise_rates=RATES, estimators=("snips", "ome-dr"))
    frame = result.to_frame()
    assert frame.columns.tolist() == ["estimator", "value", "standard_error", "low", "high"]
    assert frame["estimator"].tolist() == ["snips", "ome-dr"]
    for name, *numbers in frame.itertuples(index=False):
        one = result[name]
        assert numbers == [one.value, one.standard_error, *one.interval]
    assert result.of == "the log loss"
    assert repr(result).startswith("Estimates of the log loss\n")
    assert "ome-dr" in repr(result)
    assert "<table" in result._repr_html_()


def test_in_a_selective_and_noisy_world_only_what_corrects_for_both_holds_the_truth():
    world = vr.simulate.world(300, 400, selectivity=3, weak_separability=False, random_state=0)
    truth = world.true_inaccuracy(world.preferences)
    result = vr.estimate(world.preferences, world.log, propensities=world.propensities, noise_rates=world.noise_rates)
    holds = {name: one.interval[0] <= truth <= one.interval[1] for name, one in result.items()}
    assert holds == {"naive": False, "ips": False, "dr": False, "ome-ips": True, "ome-dr": True}


TDR_EXTRAPOLATES = pytest.mark.filterwarnings("ignore:(ome-)?tdr is:verirec.exceptions.OverlapWarning")


@TDR_EXTRAPOLATES
def test_without_selection_and_noise_all_but_eib_hold_the_truth():
    world = vr.simulate.world(
        200, 300, noise_rates=vr.NoiseRates(0, 0), selectivity=0, observed=0.3, weak_separability=False, random_state=0
    )
    truth = world.true_inaccuracy(world.preferences)
    result = vr.estimate(world.preferences, world.log, noise_rates=world.noise_rates, estimators="all")
    for name, one in result.items():
        # EIB is as wrong as its imputed errors are, and one label for all pairs is not what people say.
        held = abs(one.value - truth) < 3.5 * one.standard_error
        assert held != name.endswith("eib"), name


def test_propensities_are_by_default_the_logs_own_or_else_learnt(grid, log):
    own = log_of(grid, propensities=grid.p[log.users, log.items])
    assert dict(vr.estimate(grid.f, own)) == dict(vr.estimate(grid.f, log, propensities=grid.p))
    learnt = vr.LogisticPropensity().fit(log)
    assert dict(vr.estimate(grid.f, log)) == dict(vr.estimate(grid.f, log, propensities=learnt))


def test_nothing_that_was_given_is_changed(grid, log):
    f, p, errors = grid.f.copy(), grid.p.copy(), np.full(SHAPE, 0.5)
    vr.estimate(f, log, propensities=p, noise_rates=RATES, estimators="all", clip=0.2, imputation=errors)
    assert (f == grid.f).all()
    assert (p == grid.p).all()
    assert (errors == 0.5).all()


def test_a_few_heavy_rows_are_warned_of():
    users, items = np.arange(40), np.arange(40)
    log = vr.FeedbackLog.from_arrays(users, items, users % 2, n_users=40, n_items=40)
    p = np.full((40, 40), 40 / 1_600)
    vr.estimate(np.full((40, 40), 0.4), log, propensities=p)
    p[0, 0] = 0.0005
    with pytest.warns(OverlapWarning, match="the weighted rows are worth 3 equally weighted ones"):
        vr.estimate(np.full((40, 40), 0.4), log, propensities=p)
    # Who uses no propensities is not concerned.
    for names in ("naive", "ome", ("naive", "ome")):
        vr.estimate(np.full((40, 40), 0.4), log, propensities=p, noise_rates=RATES, estimators=names)


@TDR_EXTRAPOLATES
@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_propensities_that_do_not_fit_the_log_are_warned_of(factor):
    world = vr.simulate.world(100, 150, observed=0.3, weak_separability=False, random_state=0)
    p = np.clip(world.propensities * factor, 0, 1)
    mass = (1 / p[world.log.users, world.log.items]).sum() / 15_000
    assert abs(mass - 1) > 0.2
    options = {"noise_rates": RATES, "propensities": p}
    for names in ("ips", "ome-dr", "all"):
        with pytest.warns(MisfitWarning, match=f"^the rows' weights add up to {mass:.2f} of all pairs"):
            vr.estimate(world.preferences, world.log, estimators=names, **options)
    # Neither those who use none, nor true or learnt ones.
    vr.estimate(world.preferences, world.log, estimators=("naive", "ome"), **options)
    for fitting in (world.propensities, vr.LogisticPropensity()):
        vr.estimate(world.preferences, world.log, estimators="all", **(options | {"propensities": fitting}))


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.4, 2.0])
def test_a_targeted_estimate_that_is_mostly_extrapolated_is_warned_of(grid, log, shift):
    """With errors imputed too large, the targeted step takes as much off the unobserved pairs."""
    errors = vr.estimate(grid.f, log, propensities=grid.p)["dr"].value + np.full(SHAPE, shift)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = vr.estimate(grid.f, log, propensities=grid.p, estimators=("tdr", "dr"), imputation=errors)
    one, (observed, p) = found["tdr"], (np.isin(np.arange(CELLS), log.users * SHAPE[1] + log.items), grid.p.ravel())
    lever_elsewhere = float((1 / p - 1)[~observed].sum())
    extrapolated = one.diagnostics["epsilon"] * lever_elsewhere / CELLS
    assert one.diagnostics["extrapolated"] == pytest.approx(extrapolated, rel=1e-9)
    assert "extrapolated" not in found["dr"].diagnostics
    said = [str(each.message) for each in told if each.category is OverlapWarning]
    expected = (
        f"tdr is {one.value:.3g}, of which {extrapolated:.3g} is extrapolated by 1/p to pairs that are hardly ever "
        "logged; its interval may not hold"
    )
    assert said == ([expected] if abs(extrapolated) > 0.5 * abs(one.value) else [])
    assert bool(said) == (shift == 2)


def test_rates_of_an_audit_that_ought_to_have_been_weighted_are_warned_of():
    world = vr.simulate.world(60, 80, observed=0.4, random_state=0)
    f = 0.1 + 0.7 * world.preferences
    rows = np.random.default_rng(0).choice(len(world.log), 400, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    by_label = vr.NaiveBayesPropensity(unbiased=world.log.select(rows)).fit(world.log)
    weighted, unweighted = (
        vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit, propensities=p) for p in (by_label, None)
    )
    said = "^these propensities depend on the label, and the audit behind the noise rates was not weighted by them"
    with pytest.warns(NoiseRateWarning, match=said):
        vr.estimate(f, world.log, propensities=by_label, noise_rates=unweighted)
    # Neither weighted ones, nor others than from an audit, nor propensities that do not depend on the label.
    for p, rates in ((by_label, weighted), (by_label, RATES), (world.propensities, unweighted)):
        vr.estimate(f, world.log, propensities=p, noise_rates=rates)


# Imputed by a model


@pytest.mark.parametrize("name", ["dr", "mrdr", "ome-dr", "ome-mrdr"])
def test_the_model_imputes_a_row_without_its_own_label(grid, log, name):
    def contributions(labels, imputation):
        return vr.estimate(
            grid.f,
            log.with_labels(labels),
            propensities=grid.p,
            noise_rates=RATES,
            estimators=name,
            imputation=imputation,
            contributions=True,
        )[name].contributions

    losses = CellLosses(as_predictions(grid.f, *SHAPE), get_loss("log"))
    rates, kappa = (RATES, 0.7) if name.startswith("ome") else (None, 1.0)
    seed = int(np.random.default_rng(0).integers(2**32))
    study = EstimationProblem(LoggedPairs(log, as_propensities(grid.p, log)), losses, "model", None, seed)
    label_slopes = study.linearised(ESTIMATORS[name], rates)[0].label_slopes
    before = contributions(log.labels, "model")
    for row in (0, 17, len(log) - 1):
        labels = log.labels.copy()
        labels[row] = 1 - labels[row]
        # What it says counts whole: nothing is taken off by its own imputed label.
        expected = label_slopes[row] * (labels[row] - (1 - labels[row])) / kappa
        assert contributions(labels, "model")[row] - before[row] == pytest.approx(expected, rel=1e-9)
        # A constant is fitted to all rows, the row's own included.
        by_constant = contributions(labels, "constant")[row] - contributions(log.labels, "constant")[row]
        assert by_constant != pytest.approx(expected, rel=1e-7)


def test_the_model_beats_a_constant_where_users_and_items_differ():
    world = vr.simulate.world(200, 300, observed=0.2, noise_rates=vr.NoiseRates(0, 0), random_state=1)
    f = np.where(world.preferences > 0.5, 0.9, 0.1)
    model, constant = (
        vr.estimate(f, world.log, propensities=world.propensities, estimators="dr", imputation=by)["dr"]
        for by in ("model", "constant")
    )
    assert model.standard_error < constant.standard_error
    assert abs(model.value - world.true_inaccuracy(f)) < 3.5 * model.standard_error


def test_the_models_folds_go_by_the_seed(grid, log):
    first, again, other = (
        vr.estimate(grid.f, log, propensities=grid.p, estimators="dr", imputation="model", random_state=seed)["dr"]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.value != other.value


# Clipping


def test_clipped_predictions_are_counted_and_finite(grid, log):
    f = np.round(grid.f)
    said = "^clip=0.01 changed the predictions of 80 of 80 logged pairs: what is judged are the changed ones$"
    with pytest.warns(ScoreWarning, match=said):
        result = vr.estimate(f, log, propensities=grid.p, clip=0.01)
    for name in result:
        clipped = plain.Grid(np.clip(f, 0.01, 0.99), grid.p, grid.truth, grid.labels)
        assert result[name].value == pytest.approx(plain.estimate(name, clipped, LOSSES["log"]), rel=1e-10)
        assert result[name].diagnostics["clipped"] == len(log)


@pytest.mark.parametrize(("clipped", "told"), [(0, False), (8, False), (9, True), (80, True)])
def test_clipping_is_warned_of_where_it_changes_more_than_a_tenth_of_the_logged_predictions(log, clipped, told):
    """Elsewhere, all of them may be changed: 8 of the 80 logged ones are a tenth, and no more."""
    f = np.full(SHAPE, 0.001)
    f[log.users[clipped:], log.items[clipped:]] = 0.4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = vr.estimate(f, log, propensities=np.full(SHAPE, len(log) / CELLS), estimators="dr", clip=0.01)["dr"]
    assert found.diagnostics["clipped"] == clipped
    said = [str(one.message) for one in caught if one.category is ScoreWarning]
    expected = f"clip=0.01 changed the predictions of {clipped} of 80 logged pairs: what is judged are the changed ones"
    assert said == ([expected] if told else [])


@pytest.mark.filterwarnings("ignore:.* loss of these factors is:verirec.exceptions.ScoreWarning")
def test_sure_predictions_made_of_logits_have_a_finite_log_loss(grid, log):
    # As a probability in floats, a logit of 60 is 1.
    logits = np.random.default_rng(3).choice([-60.0, -1.0, 2.0, 60.0], SHAPE)
    factors = vr.Factors(logits, np.eye(SHAPE[1]))

    def loss(z, y):
        return float(np.logaddexp(0, -z if y == 1 else z))

    of_logits = plain.Grid(logits, grid.p, grid.truth, grid.labels)
    result = vr.estimate(factors, log, propensities=grid.p, noise_rates=RATES, estimators="all")
    for name in result:
        assert result[name].value == pytest.approx(plain.estimate(name, of_logits, loss, (0.2, 0.1)), rel=1e-9), name
    with pytest.raises(PredictionError, match="strictly between 0 and 1"):
        vr.estimate(1 / (1 + np.exp(-logits)), log, propensities=grid.p)


# What is refused


def with_value(value, matrix, *cells):
    changed = np.array(matrix, float)
    for cell in cells:
        changed[cell] = value
    return changed


def cells_by(grid, seen, count):
    return [cell for cell in grid.cells if (cell in grid.labels) == seen][:count]


GRID = plain.small_grid(0, SHAPE, rho01=0.2, rho10=0.1)
LOG = log_of(GRID)
ROWS = len(LOG)
UNSEEN, SEEN = cells_by(GRID, False, 3), cells_by(GRID, True, 2)
HALF = np.full(SHAPE, 0.5)
TRIPLES = (LOG.users, LOG.items, GRID.f[LOG.users, LOG.items])
CELLS = GRID.f.size
CLIP = "; clip=1e-6 would keep them inside$"


@pytest.mark.parametrize(
    ("predictions", "options", "error", "message"),
    [
        (GRID.f.T, {}, PredictionError, r"must have shape \(9, 14\); got \(14, 9\)"),
        (GRID.f[0], {}, PredictionError, r"must have shape \(9, 14\); got \(14,\)"),
        (None, {}, PredictionError, "must be a dense array .*got NoneType"),
        ("popular", {}, PredictionError, "must be a dense array .*got str"),
        ((HALF, HALF), {}, PredictionError, r"item_factors must have shape \(14, 14\); got \(9, 14\)"),
        (lambda users, items: [0.5], {}, PredictionError, rf"one number a pair, shape \({ROWS},\); got \(1,\)"),
        (lambda users, items: np.full(len(users), np.nan), {}, PredictionError, "must be finite"),
        (np.full(SHAPE, np.nan), {"loss": "squared"}, PredictionError, "must be finite; 126 of 126 are not"),
        (
            (*(part[:-1] for part in TRIPLES),),
            {"estimators": "ips"},
            PredictionError,
            f"do not cover 1 of the {ROWS} pairs that are needed",
        ),
        (TRIPLES, {}, PredictionError, f"dr need predictions for all {CELLS} pairs; got {ROWS}. Those that need"),
        (TRIPLES, {"sample": 20}, PredictionError, "predictions do not cover 20 of the 20 pairs that are needed"),
        (
            with_value(0, HALF, *SEEN),
            {"estimators": "ips"},
            PredictionError,
            rf"between 0 and 1; 2 of {ROWS} pred.*{CLIP}",
        ),
        (with_value(1, HALF, *SEEN), {"estimators": "ips"}, PredictionError, rf"are not \(first: 1, 1\){CLIP}"),
        (with_value(1, HALF, *UNSEEN), {}, PredictionError, f"the log loss needs .*; 3 of {CELLS} pred.*{CLIP}"),
        (with_value(-0.1, HALF, *UNSEEN), {}, PredictionError, r"\(first: -0.1, -0.1, -0.1\); these look like scores"),
        (with_value(1.5, HALF, *UNSEEN), {"clip": 0.7}, ParameterError, "clip must be .*below 0.5; got 0.7"),
    ],
)
def test_predictions_that_cannot_be_used_are_refused_in_one_line(predictions, options, error, message):
    check_refusal(lambda: vr.estimate(predictions, LOG, **({"propensities": GRID.p} | options)), error, message)


def test_all_wrong_predictions_of_the_grid_are_counted_and_not_only_the_logs():
    predictions = with_value(0, HALF, *SEEN, *UNSEEN)
    with pytest.raises(PredictionError, match=f"5 of {CELLS} predictions are not"):
        vr.estimate(predictions, LOG, propensities=GRID.p, estimators="dr")


def test_wrong_predictions_are_counted_over_all_blocks_of_a_large_grid():
    f = np.full((700, 600), 0.5)
    f[::100, 7] = 0
    log = vr.FeedbackLog.from_arrays(np.arange(50), np.arange(50) + 10, np.arange(50) % 2, n_users=700, n_items=600)
    with pytest.raises(PredictionError, match="7 of 420,000 predictions are not"):
        vr.estimate(f, log, propensities=np.full(f.shape, 0.5), estimators="dr")


def test_estimators_of_the_logged_pairs_do_not_mind_the_others():
    found = vr.estimate(with_value(0, HALF, *UNSEEN), LOG, propensities=GRID.p, estimators=("ips", "snips", "naive"))
    assert found["ips"] == vr.estimate(HALF, LOG, propensities=GRID.p, estimators="ips")["ips"]


@pytest.mark.parametrize(
    ("propensities", "message"),
    [
        (with_value(0, HALF, (0, 0)), r"above 0 and at most 1; 1 of 126 are not \(first: 0\)"),
        (with_value(-0.1, HALF, (0, 0), (1, 1)), r"2 of 126 are not \(first: -0.1\)"),
        (with_value(1.1, HALF, (8, 13)), r"1 of 126 are not \(first: 1.1\)"),
        (with_value(np.nan, HALF, (8, 13)), r"1 of 126 are not \(first: nan\)"),
        (with_value(1e-51, HALF, (0, 0)), "^propensities must be at least 1e-50, or weights leave the range of"),
        (HALF.T, r"must be for the log's grid of \(9, 14\); got \(14, 9\)"),
        (HALF[0], r"must be a matrix of numbers or a function of \(users, items\); got float64 of shape \(14,\)"),
        (0.5, r"must be a matrix of numbers or a function of \(users, items\); got float64 of shape \(\)"),
        ("logistic", "must be fitted ones, a model, a matrix or a function; got 'logistic'"),
        (vr.LogisticPropensity, "must be fitted ones, a model, a matrix or a function; got <class"),
        (lambda users, items: np.zeros(len(users)), f"above 0 and at most 1; {ROWS} of {ROWS} are not"),
        (lambda users, items: [0.5], rf"propensity function must give one number a pair, shape \({ROWS},\)"),
        (vr.ConstantPropensity().fit(log_of(plain.small_grid(0, (5, 9)))), r"grid of \(9, 14\); got \(5, 9\)"),
    ],
)
def test_propensities_that_cannot_be_used_are_refused_in_one_line(propensities, message):
    check_refusal(lambda: vr.estimate(GRID.f, LOG, propensities=propensities), PropensityError, message)


def test_propensities_of_the_log_need_a_column():
    check_refusal(
        lambda: vr.estimate(GRID.f, LOG, propensities=vr.LoggedPropensity(LOG)), PropensityError, "no column of prop"
    )


ALL_POSITIVE = LOG.with_labels(np.ones(ROWS, int))
WEIGHTED = log_of(GRID, weights=np.arange(ROWS) + 1.0)


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        (LOG.select([]), EmptyLogError, "an estimate needs at least 2 rows; the log has 0"),
        (LOG.select([0]), EmptyLogError, "an estimate needs at least 2 rows; the log has 1"),
        (ALL_POSITIVE, LabelError, f"rows of both classes; all {ROWS} are positive"),
        (LOG.with_labels(np.zeros(ROWS, int)), LabelError, f"rows of both classes; all {ROWS} are negative"),
        (WEIGHTED, ParameterError, "row weights, which ips, dr cannot use: the unobserved pairs have none"),
        (None, ParameterError, "a FeedbackLog is needed; got NoneType"),
        (LOG.to_frame(), ParameterError, "a FeedbackLog is needed; got DataFrame"),
    ],
)
@pytest.mark.parametrize("rates", [None, vr.NoiseRegion(0.1, 0.1)], ids=["no rates", "region"])
def test_logs_that_cannot_be_used_are_refused_in_one_line(log, error, message, rates):
    if log is WEIGHTED and rates is not None:
        message = "row weights, which ips, dr, ome-ips, ome-dr cannot use"
    check_refusal(lambda: vr.estimate(GRID.f, log, propensities=GRID.p, noise_rates=rates), error, message)


BY_USER = vr.GroupedNoiseRates((RATES, RATES), user_groups=np.array([0, 1, 0]))
BY_ITEM = vr.GroupedNoiseRates((RATES, RATES), item_groups=np.zeros(9, int))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimators": "DR"}, ParameterError, "estimators must be among naive, .*; got 'DR'"),
        ({"estimators": []}, ParameterError, "estimators must be among .*; none was named"),
        (
            {"estimators": "ome-dr"},
            ParameterError,
            "^noise_rates must be given for estimators that correct for noise: ome-dr$",
        ),
        ({"noise_rates": (0.2, 0.1)}, ParameterError, "^noise_rates must be such as NoiseRates.*; got tuple$"),
        ({"noise_rates": vr.NoiseRates}, ParameterError, "^noise_rates must be such as NoiseRates.*; got type$"),
        ({"noise_rates": BY_USER}, NoiseRateError, "user_groups must name the group of all 9 users; got 3"),
        ({"noise_rates": BY_ITEM}, NoiseRateError, "item_groups must name the group of all 14 items; got 9"),
        ({"loss": "0/1"}, ParameterError, "loss must be one of absolute, log, squared"),
        (
            {"loss": lambda f, y: f[:1]},
            PredictionError,
            r"a finite number for each prediction, shape .* got shape \(1,\)",
        ),
        ({"loss": lambda f, y: f / 0}, PredictionError, "a finite number for each prediction.*not finite"),
        ({"imputation": "mean"}, ParameterError, "imputation must be one of constant, model; got 'mean'"),
        ({"imputation": HALF.T}, PredictionError, r"must have shape \(9, 14\); got \(14, 9\)"),
        ({"imputation": with_value(np.nan, HALF, (2, 3))}, PredictionError, "must be finite; 1 of 126 are not"),
        ({"imputation": lambda u, i: np.full(len(u), np.inf)}, PredictionError, "must be finite"),
        ({"imputation": None}, PredictionError, "got NoneType"),
        ({"interval": "normal"}, ParameterError, "interval must be one of bootstrap, delta; got 'normal'"),
        ({"confidence": 0}, ParameterError, "confidence must be .*above 1e-09 and below 1; got 0"),
        ({"confidence": 1}, ParameterError, "confidence must be .*below 1; got 1"),
        ({"confidence": 95}, ParameterError, "confidence must be .*below 1; got 95"),
        ({"confidence": "95%"}, ParameterError, "confidence must be .*got '95%'"),
        ({"clip": 0}, ParameterError, "clip must be .*above 0 and below 0.5; got 0"),
        ({"clip": 0.5}, ParameterError, "clip must be .*below 0.5; got 0.5"),
        ({"clip": np.nan}, ParameterError, "clip must be .*got nan"),
        ({"confidence": 1 - 1e-10}, ParameterError, "confidence must be .*below 1; got 0.9999999999"),
        ({"sample": 1}, ParameterError, "^sample must be a whole number from 10 to 1,000,000,000; got 1$"),
        ({"sample": 1e6}, ParameterError, "^sample must be a whole number from 10 to .*; got 1000000.0$"),
        ({"sample": 10**9 + 1}, ParameterError, "^sample must be a whole number from 10 to .*; got 1000000001$"),
        ({"draws": 19}, ParameterError, "^draws must be a whole number from 20 to 1,000,000; got 19$"),
        ({"draws": 10**6 + 1}, ParameterError, "^draws must be a whole number from 20 to .*; got 1000001$"),
        ({"random_state": -1}, ParameterError, "random_state must be a whole number of at least 0"),
        ({"propensities": None, "estimators": "tdr", "imputation": "x"}, ParameterError, "imputation must be one of"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_line(options, error, message):
    check_refusal(lambda: vr.estimate(GRID.f, LOG, **({"propensities": GRID.p} | options)), error, message)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (HALF.T, r"^imputed errors: .* must have shape \(9, 14\); got \(14, 9\)$"),
        (with_value(np.nan, HALF, (2, 3)), r"^imputed errors: .* must be finite; 1 of 126 are not"),
        (None, r"^imputed errors: .*; got NoneType$"),
        (lambda users, items: [0.5], r"^imputed errors: .* must give one number a pair"),
        (TRIPLES, r"^imputed errors: predictions do not cover "),
    ],
    ids=["shape", "nan", "none", "function", "triples"],
)
def test_messages_about_imputed_errors_say_that_it_is_about_them(errors, message):
    check_refusal(lambda: vr.estimate(GRID.f, LOG, propensities=GRID.p, imputation=errors), PredictionError, message)


@pytest.mark.parametrize("name", [name for name, one in ESTIMATORS.items() if one.needs_all_predictions])
def test_with_given_imputed_errors_predictions_of_the_logged_pairs_are_enough(name):
    errors = np.random.default_rng(4).uniform(0, 1.5, SHAPE)
    options = {"propensities": GRID.p, "noise_rates": RATES, "estimators": name, "imputation": errors}
    assert vr.estimate(TRIPLES, LOG, **options)[name] == vr.estimate(GRID.f, LOG, **options)[name]


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_stars_held_against_binary_labels_are_warned_of(loss):
    world = vr.simulate.world(n_users=40, n_items=60, observed=0.2, random_state=0)
    stars = 1 + 4 * world.preferences
    with pytest.warns(ScoreWarning, match=r"if they are stars, read the log with levels=\[1, 2, 3, 4, 5\]"):
        vr.estimate(stars, world.log, propensities=world.propensity_values, loss=loss, estimators="ips")
    vr.estimate(world.preferences, world.log, propensities=world.propensity_values, loss=loss, estimators="ips")
