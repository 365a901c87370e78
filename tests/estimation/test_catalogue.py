"""What every estimator keeps to, whichever it is; and how they are chosen by name."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import verirec as vr
from plain_formulas import estimators as plain
from refusals import check_refusal
from verirec.estimation import ESTIMATORS
from verirec.estimation.catalogue import chosen
from verirec.exceptions import ParameterError, PropensityError

RATES = vr.NoiseRates(0.2, 0.1, ((4e-4, 0), (0, 2e-4)))

# A quarter of tdr is extrapolated in this world: test_estimate.py has the warning.
pytestmark = pytest.mark.filterwarnings("ignore:(ome-)?tdr is:verirec.exceptions.OverlapWarning")


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(40, 60, observed=0.3, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)


@pytest.fixture(scope="module")
def predictions(world):
    return 0.1 + 0.8 * world.preferences


@pytest.fixture(params=ESTIMATORS)
def name(request):
    return request.param


def estimated(world, predictions, name, **options):
    options = {"propensities": world.propensities, "noise_rates": RATES, "estimators": name} | options
    return vr.estimate(predictions, world.log, **options)[name]


WAYS = [
    {},
    {"imputation": "model"},
    {"imputation": "given"},
    {"sample": 200},
    {"propensities": vr.LogisticPropensity()},
    {"propensities": vr.ConstantPropensity()},
    {"propensities": vr.PopularityPropensity()},
    {"interval": "bootstrap", "draws": 200},
    {"loss": "squared"},
    {"loss": "absolute", "imputation": "model", "sample": 200, "interval": "bootstrap", "draws": 200},
]


@pytest.mark.filterwarnings("ignore:the weights of single users:verirec.exceptions.MisfitWarning")
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_it_gives_a_finite_value_inside_its_interval(world, predictions, name, way):
    if way.get("imputation") == "given":
        way = way | {"imputation": np.full(predictions.shape, 0.6)}
    one = estimated(world, predictions, name, **way)
    assert np.isfinite([one.value, one.standard_error, *one.interval]).all()
    assert one.standard_error > 0
    assert one.interval[0] < one.value < one.interval[1]


@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
def test_more_confidence_takes_a_wider_interval(world, predictions, name, interval):
    levels = (0.5, 0.8, 0.95, 0.99)
    found = [estimated(world, predictions, name, interval=interval, confidence=at, draws=500) for at in levels]
    assert len({one.value for one in found}) == len({one.standard_error for one in found}) == 1
    for narrow, wide in pairwise(found):
        assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]


@pytest.mark.parametrize("way", [{}, {"interval": "bootstrap", "draws": 20}], ids=["delta", "bootstrap"])
def test_the_same_seed_gives_the_same_result(world, predictions, name, way):
    def of(seed):
        return estimated(world, predictions, name, imputation="model", sample=100, random_state=seed, **way)

    assert of(3) == of(3)
    assert of(np.random.default_rng(3)) == of(3)
    if ESTIMATORS[name].needs_all_predictions:
        assert of(4).value != of(3).value


@pytest.fixture(scope="module", params=[{}, {"imputation": "model", "sample": 100}], ids=["all cells", "sample"])
def in_company(request, world, predictions):
    """A way of estimating, and all estimators by it, in two orders."""
    options = {"propensities": world.propensities, "noise_rates": RATES} | request.param
    orders = "all", list(ESTIMATORS)[::-1]
    return request.param, [vr.estimate(predictions, world.log, estimators=names, **options) for names in orders]


def test_the_company_of_other_estimators_changes_nothing(world, predictions, in_company):
    way, (together, reverse) = in_company
    for name in ESTIMATORS:
        assert estimated(world, predictions, name, **way) == together[name] == reverse[name], name


def test_it_says_what_it_rests_on(world, predictions, name):
    facts = estimated(world, predictions, name).diagnostics
    weights = 1 / world.propensities[world.log.users, world.log.items]
    assert facts["rows"] == len(world.log)
    assert facts["cells"] == facts["cells_visited"] == 2_400
    assert facts["effective_sample_size"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
    assert facts["largest_weight"] == pytest.approx(weights.max(), rel=1e-12)
    assert facts["mass"] == pytest.approx(weights.sum() / 2_400, rel=1e-12)
    assert facts["floored"] == 0
    assert "clipped" not in facts


@pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning", "ignore:clip=0.3 changed")
@pytest.mark.filterwarnings("ignore:.* make up half of the variance:verirec.exceptions.OverlapWarning")
def test_it_counts_what_was_clipped_and_floored(world, predictions, name):
    f = predictions[world.log.users, world.log.items]
    p = world.propensities[world.log.users, world.log.items]
    floored = vr.GivenPropensity(world.propensities, floor=float(np.quantile(p, 0.3)))
    facts = estimated(world, predictions, name, clip=0.3, propensities=floored).diagnostics
    assert facts["clipped"] == int(((f < 0.3) | (f > 0.7)).sum()) > 0
    assert facts["floored"] == int((p < floored.floor).sum()) > 0
    assert facts["largest_weight"] == pytest.approx(1 / floored.floor)
    # Clipped predictions are the same as those that were clipped before.
    before = estimated(world, np.clip(predictions, 0.3, 0.7), name, propensities=floored)
    after = estimated(world, predictions, name, clip=0.3, propensities=floored)
    assert (after.value, after.standard_error) == pytest.approx((before.value, before.standard_error), rel=1e-12)


def test_it_says_so_if_it_needs_noise_rates(world, predictions, name):
    if not ESTIMATORS[name].noise_corrected:
        known, unknown = (estimated(world, predictions, name, noise_rates=rates) for rates in (RATES, None))
        assert known == unknown
        return
    check_refusal(
        lambda: estimated(world, predictions, name, noise_rates=None),
        ParameterError,
        f"^noise_rates must be given for estimators that correct for noise: {name}$",
    )


def test_it_says_so_if_it_needs_propensities_of_all_pairs(world, predictions, name):
    log = world.log
    columns = {"users": log.users, "items": log.items, "labels": log.labels}
    own = vr.FeedbackLog.from_arrays(
        **columns, n_users=40, n_items=60, propensities=world.propensities[log.users, log.items]
    )

    def call():
        return vr.estimate(predictions, own, propensities=vr.LoggedPropensity(own), noise_rates=RATES, estimators=name)[
            name
        ]

    if ESTIMATORS[name].needs_all_propensities:
        check_refusal(call, PropensityError, f"the {name} estimator needs the propensities of all pairs; Logged")
    else:
        assert call() == estimated(world, predictions, name)


def test_it_asks_for_unobserved_pairs_only_if_it_says_so(world, predictions, name):
    log = world.log
    rows_only = (log.users, log.items, predictions[log.users, log.items])
    if ESTIMATORS[name].needs_all_predictions:
        with pytest.raises(vr.exceptions.PredictionError, match=f"{name} need predictions for all 2,400 pairs"):
            estimated(world, rows_only, name)
    else:
        assert estimated(world, rows_only, name) == estimated(world, predictions, name)


def test_it_takes_row_weights_or_says_that_it_cannot(world, predictions, name):
    log = world.log
    weighted = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=40, n_items=60, weights=1.0 + np.arange(len(log)) % 3
    )

    def call():
        return vr.estimate(predictions, weighted, propensities=world.propensities, noise_rates=RATES, estimators=name)[
            name
        ]

    if ESTIMATORS[name].supports_row_weights:
        assert call().value != estimated(world, predictions, name).value
    else:
        check_refusal(call, ParameterError, f"the log has row weights, which {name} cannot use")


# Choosing


def test_the_names_are_those_of_the_table():
    assert tuple(ESTIMATORS) == (*plain.PLAIN, *plain.DENOISED)
    assert [name for name, one in ESTIMATORS.items() if one.noise_corrected] == list(plain.DENOISED)
    for name, one in ESTIMATORS.items():
        assert one.name == name


KEPT = [
    "needs_all_predictions",
    "supports_row_weights",
    "variance_optimal",
    "needs_all_propensities",
    "uses_propensities",
    "linear",
    "formula",
]


@pytest.mark.parametrize("of", KEPT)
def test_a_noise_corrected_estimator_is_the_plain_one_with_other_labels(of):
    for name, denoised in zip(plain.PLAIN, plain.DENOISED, strict=True):
        assert getattr(ESTIMATORS[denoised], of) == getattr(ESTIMATORS[name], of)


@pytest.mark.parametrize(
    ("names", "with_rates", "expected"),
    [
        (None, False, ["naive", "ips", "dr"]),
        (None, True, ["naive", "ips", "dr", "ome-ips", "ome-dr"]),
        ("all", False, list(plain.PLAIN)),
        ("all", True, [*plain.PLAIN, *plain.DENOISED]),
        ("dr", False, ["dr"]),
        (("dr", "naive"), False, ["dr", "naive"]),
        (["dr", "naive", "dr"], True, ["dr", "naive"]),
        (iter(["ips", "ome"]), True, ["ips", "ome"]),
        (np.array("dr"), False, ["dr"]),
        (np.array(["dr", "naive"]), False, ["dr", "naive"]),
    ],
)
def test_estimators_are_chosen_by_name_in_the_order_given(names, with_rates, expected):
    assert [one.name for one in chosen(names, with_rates=with_rates)] == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("DR", "estimators must be among naive, eib, .*survey-ppi, delta-dr; got 'DR'"),
        (["dr", "drr"], "got 'drr'"),
        ([None], "got None"),
        ([["dr"]], r"got \['dr'\]"),
        ([], "none was named"),
        ("", "got ''"),
        (["all"], "got 'all'"),
        (["dr", "ome", "ome-dr"], "^noise_rates must be given for estimators that correct for noise: ome, ome-dr$"),
        (7, "^estimators must be among .*; got 7$"),
        (len, "^estimators must be among .*; got <built-in function len>$"),
    ],
)
def test_names_that_are_none_are_refused(names, message):
    check_refusal(lambda: chosen(names, with_rates=False), ParameterError, message)
