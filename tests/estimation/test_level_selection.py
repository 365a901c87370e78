"""Selection by the true level: the ratio of loss and propensity is corrected as one."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError, PropensityError

STARS = [1, 2, 3, 4, 5]
CHANCES = (0.15, 0.2, 0.3, 0.4, 0.6)
BAND = vr.TransitionMatrix.band(5, 0.3)
CORRECTED = ["ome-ips", "ome-snips", "ome-dr", "ome-mrdr", "ome-eib", "audited-dr"]


@pytest.fixture(scope="module")
def world():
    return vr.simulate.on_stars(
        vr.simulate.stars(40, 50, random_state=0).true_values, noise=BAND, propensities=CHANCES, random_state=0
    )


@pytest.fixture(scope="module")
def predicted(world):
    return 0.5 + 0.7 * world.true_values + np.random.default_rng(0).normal(0, 0.5, world.places.shape)


def audit_of(world, size=200, seed=1):
    return vr.AuditSample(*world.audit(size, seed), levels=world.levels)


def test_each_row_counts_by_the_corrected_ratio(world, predicted):
    found = vr.estimate(
        predicted, world.log, propensities=vr.LevelPropensity(CHANCES), noise_rates=BAND, loss="squared",
        estimators=["ips", "ome-ips", "ome-snips"],
    )  # fmt: skip
    log, plain, ratios, masses = world.log, 0.0, 0.0, 0.0
    for user, item, said in zip(log.users, log.items, log.labels, strict=True):
        losses = [(predicted[user, item] - level) ** 2 for level in STARS]
        plain += losses[said] / CHANCES[said]
        ratios += sum(BAND.inverse[said, j] * losses[j] / CHANCES[j] for j in range(5))
        masses += sum(BAND.inverse[said, j] / CHANCES[j] for j in range(5))
    assert found["ips"].value == pytest.approx(plain / log.n_cells, rel=1e-12)
    assert found["ome-ips"].value == pytest.approx(ratios / log.n_cells, rel=1e-12)
    assert found["ome-snips"].value == pytest.approx(ratios / masses, rel=1e-12)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")
@pytest.mark.parametrize("loss", ["squared", "absolute", "rmse"])
def test_the_same_chance_at_all_levels_is_one_propensity(world, predicted, loss):
    options = {"noise_rates": BAND, "audit": audit_of(world), "loss": loss, "estimators": CORRECTED}
    same = vr.estimate(predicted, world.log, propensities=vr.LevelPropensity([0.3] * 5), **options)
    one = vr.estimate(predicted, world.log, propensities=np.full(world.places.shape, 0.3), **options)
    for name in CORRECTED:
        assert same[name].value == pytest.approx(one[name].value, abs=1e-10), name
        assert same[name].standard_error == pytest.approx(one[name].standard_error, abs=1e-10), name


def test_chances_of_levels_may_be_a_matrix_or_a_function(world, predicted):
    cells = np.broadcast_to(CHANCES, (*world.places.shape, 5))
    options = {"noise_rates": BAND, "loss": "absolute", "estimators": "ome-dr"}
    values = [
        vr.estimate(predicted, world.log, propensities=vr.LevelPropensity(given), **options)["ome-dr"].value
        for given in (CHANCES, cells, lambda users, items: cells[users, items])
    ]
    assert values[0] == values[1] == values[2]


def test_levels_that_decide_are_covered_where_the_logged_ones_mislead(world, predicted):
    truth = world.true_inaccuracy(predicted, "absolute")
    inside = dict.fromkeys(("dr", "ome-dr", "audited-dr"), 0)
    off, errors = [], []
    for seed in range(60):
        drawn = vr.simulate.on_stars(world.true_values, noise=BAND, propensities=CHANCES, random_state=seed)
        found = vr.estimate(
            predicted, drawn.log, propensities=vr.LevelPropensity(CHANCES), noise_rates=BAND,
            audit=audit_of(drawn, seed=seed), loss="absolute", estimators=list(inside),
        )  # fmt: skip
        for name, one in found.items():
            inside[name] += one.interval[0] <= truth <= one.interval[1]
        off.append(found["ome-dr"].value - truth)
        errors.append(found["ome-dr"].standard_error)
    assert abs(np.mean(off)) < 3 * np.std(off) / np.sqrt(60)
    assert 0.75 < np.std(off) / np.mean(errors) < 1.3
    assert inside["ome-dr"] >= 51
    assert inside["audited-dr"] >= 51
    assert inside["dr"] < 51


def test_two_recommenders_are_compared(world, predicted):
    other = np.full_like(predicted, 3.0)
    options = {"propensities": vr.LevelPropensity(CHANCES), "noise_rates": BAND, "loss": "squared"}
    apart = [vr.estimate(one, world.log, estimators="ome-dr", **options)["ome-dr"].value for one in (predicted, other)]
    found = vr.compare(predicted, other, world.log, estimators="ome-dr", **options)["ome-dr"]
    assert found.value == pytest.approx(apart[0] - apart[1], abs=1e-10)


def test_rows_to_judge_by_beside_a_training_log(world, predicted):
    rows = np.random.default_rng(0).random(len(world.log)) < 0.5
    train, test = world.log.select(rows), world.log.select(~rows)
    found = vr.estimate(
        predicted, test, exclude=train, propensities=vr.LevelPropensity([chance / 2 for chance in CHANCES]),
        noise_rates=BAND, loss="absolute", estimators="ome-dr",
    )["ome-dr"]  # fmt: skip
    left = np.ones(world.places.shape, bool)
    left[train.users, train.items] = False
    truth = np.abs(predicted - world.true_values)[left].mean()
    assert abs(found.value - truth) < 4 * found.standard_error


@pytest.mark.parametrize(
    ("values", "estimators", "error", "said"),
    [
        ([0.1, 0.2], "ome-dr", PropensityError, "5 numbers, one a level"),
        ([0.0, 0.1, 0.2, 0.3, 0.4], "ome-dr", PropensityError, "above 0 and at most 1"),
        (CHANCES, "ome-sdr", ParameterError, "tilts one propensity a row"),
        (CHANCES, "ome-tdr", PropensityError, "the propensities of all pairs"),
    ],
)
def test_what_cannot_be_is_refused(world, predicted, values, estimators, error, said):
    given = {"propensities": vr.LevelPropensity(values), "noise_rates": BAND, "loss": "squared"}
    with pytest.raises(error, match=said):
        vr.estimate(predicted, world.log, estimators=estimators, **given)


def test_a_binary_log_is_told_of_levels():
    log = vr.simulate.world(20, 30, observed=0.3, random_state=0).log
    check_refusal(lambda: vr.LevelPropensity([0.1, 0.2]).fit(log), ParameterError, "keeps its levels")


@pytest.mark.parametrize(
    ("part", "given"),
    [*(("thinned", share) for share in (2, 0, -1, np.nan, "x")), *(("apart_from", k) for k in (-1, np.nan, "x"))],
)
def test_parts_of_a_log_are_checked(world, part, given):
    found = vr.LevelPropensity(CHANCES).fit(world.log)
    told = "share must be" if part == "thinned" else "others must be"
    check_refusal(lambda: getattr(found, part)(given), ParameterError, told)
