"""survey and survey-ppi: against loops, what must not change them, and how often they hold."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import verirec as vr
from draws import largest_z
from held import HALF_A_NUMBER, held_a_row
from plain_formulas import surveys as plain
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.survey.problem import LossDifference, ScaledDifference, SurveyProblem, judge_by_survey
from verirec.exceptions import ParameterError, PredictionError, SurveyError
from verirec.losses import get_loss
from verirec.nuisance.label_model import LabelModel

SHAPE = (60, 80)
RATES = vr.NoiseRates(0.2, 0.1)
NAMES = ("survey", "survey-ppi")
PROMISED = (0.93, 0.97)


@cache
def a_world(selectivity=2.0):
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=selectivity, noise_rates=RATES, random_state=4)


@pytest.fixture(scope="module")
def world():
    return a_world()


@pytest.fixture(scope="module")
def pair(world):
    random = np.random.default_rng(0)
    return 0.1 + 0.8 * world.preferences, 0.3 + 0.3 * world.preferences + 0.2 * random.random(SHAPE)


def drawn(world, n, design="uniform", seed=0, lever=None):
    """A survey of random pairs: each as likely, by a lever, or of users who are asked about ten items each."""
    random = np.random.default_rng([seed, n])
    more = {}
    if design == "clustered":
        users = random.choice(SHAPE[0], n // 10)
        items = np.concatenate([random.choice(SHAPE[1], 10, replace=False) for _ in users])
        more["clusters"] = np.repeat(np.arange(n // 10), 10)
        users = np.repeat(users, 10)
    else:
        h = np.ones(SHAPE) if design == "uniform" else 0.1 + 0.9 * lever / lever.mean()
        cells = random.choice(h.size, n, p=h.ravel() / h.sum())
        users, items = np.divmod(cells, SHAPE[1])
        if design == "weighted":
            more["probabilities"] = h[users, items]
    return vr.SurveySample(users, items, world.true_labels[users, items], **more)


def parts(f, users, items):
    """l0 and d of the log loss."""
    return [-np.log(1 - f[u, i]) for u, i in zip(users, items, strict=True)], [
        np.log(1 - f[u, i]) - np.log(f[u, i]) for u, i in zip(users, items, strict=True)
    ]


@pytest.mark.parametrize("exclude", [False, True], ids=["all", "some left out"])
@pytest.mark.parametrize("design", ["uniform", "weighted", "clustered"])
@pytest.mark.parametrize("rates", [None, RATES], ids=["plain", "denoised"])
def test_both_by_loops(world, pair, rates, design, exclude):
    survey = drawn(world, 120, design, lever=np.abs(pair[0] - 0.5))
    left_out = (
        set(zip(world.log.users[:300].tolist(), world.log.items[:300].tolist(), strict=True)) if exclude else set()
    )
    asked = [
        k
        for k, where in enumerate(zip(survey.users.tolist(), survey.items.tolist(), strict=True))
        if where not in left_out
    ]
    users, items, y = survey.users[asked].tolist(), survey.items[asked].tolist(), survey.labels[asked].tolist()
    v = plain.shares([1.0] * len(asked) if survey.probabilities is None else survey.probabilities[asked].tolist())
    clusters = list(range(len(asked))) if survey.clusters is None else survey.clusters[asked].tolist()
    target = [(u, i) for u in range(SHAPE[0]) for i in range(SHAPE[1]) if (u, i) not in left_out]
    fitted = LabelModel().fit(world.log, np.ones(len(world.log)), rates)
    z = {(u, i): fitted.level + fitted.users[u] + fitted.items[i] for u, i in target}
    c = plain.intercept([z[where] for where in zip(users, items, strict=True)], y, v)
    q = {where: plain.sigmoid(logit + c) for where, logit in z.items()}

    everywhere = parts(pair[0], *zip(*target, strict=True))
    on_target = [(a, d, q[where]) for a, d, where in zip(*everywhere, target, strict=True)]
    negative, difference = parts(pair[0], users, items)
    of_draws = [q[where] for where in zip(users, items, strict=True)]
    wanted = {
        "survey": plain.survey(negative, difference, y, v, clusters),
        "survey-ppi": plain.survey_ppi(negative, difference, of_draws, y, v, clusters, on_target),
    }
    exclude = (world.log.users[:300], world.log.items[:300]) if exclude else None
    found = vr.estimate(pair[0], world.log, survey=survey, noise_rates=rates, exclude=exclude, estimators=NAMES)
    for name, (value, error, ends) in wanted.items():
        assert found[name].value == pytest.approx(value, abs=1e-7)
        assert found[name].standard_error == pytest.approx(error, abs=1e-7)
        assert found[name].interval == pytest.approx(ends, abs=1e-6)
    assert found.headline == "survey-ppi"
    assert found["survey-ppi"].diagnostics["shift"] == pytest.approx(c, abs=1e-6)


def close(one, two, tolerance=1e-9):
    for name in NAMES:
        assert one[name].value == pytest.approx(two[name].value, abs=tolerance)
        assert one[name].interval == pytest.approx(two[name].interval, abs=tolerance)


def judged(world, f, survey, **more):
    return vr.estimate(f, world.log, survey=survey, estimators=NAMES, **more)


def test_equal_probabilities_equal_none(world, pair):
    survey = drawn(world, 150)
    equal = vr.SurveySample(
        survey.users, survey.items, survey.labels, probabilities=np.full(150, 150 / world.log.n_cells)
    )
    close(judged(world, pair[0], survey), judged(world, pair[0], equal))


def test_probabilities_count_up_to_a_factor(world, pair):
    survey = drawn(world, 150, "weighted", lever=pair[0])
    scaled = vr.SurveySample(survey.users, survey.items, survey.labels, 1e-7 * survey.probabilities)
    close(judged(world, pair[0], survey), judged(world, pair[0], scaled))


@pytest.mark.parametrize("design", ["uniform", "weighted", "clustered"])
def test_the_order_of_draws_says_nothing(world, pair, design):
    survey = drawn(world, 150, design, lever=pair[0])
    other = survey.select(np.random.default_rng(1).permutation(150))
    close(judged(world, pair[0], survey), judged(world, pair[0], other))


def test_clusters_of_one_draw_equal_none(world, pair):
    survey = drawn(world, 150)
    alone = vr.SurveySample(survey.users, survey.items, survey.labels, clusters=np.arange(150)[::-1])
    close(judged(world, pair[0], survey), judged(world, pair[0], alone))


@pytest.mark.parametrize("f", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("design", ["uniform", "weighted"])
def test_a_constant_recommender_has_the_loss_of_the_share(world, pair, design, f):
    survey = drawn(world, 150, design, lever=pair[0])
    v = plain.shares(np.ones(150) if survey.probabilities is None else survey.probabilities)
    share = plain.mean_of(survey.labels.tolist(), v)
    wanted = -(1 - share) * np.log(1 - f) - share * np.log(f)
    assert judged(world, np.full(SHAPE, f), survey)["survey"].value == pytest.approx(wanted)


def test_a_survey_of_all_pairs_is_the_truth(world, pair):
    users, items = (side.ravel() for side in np.indices(SHAPE))
    found = judged(world, pair[0], vr.SurveySample(users, items, world.true_labels.ravel()))
    for name in NAMES:
        assert found[name].value == pytest.approx(world.true_inaccuracy(pair[0]))


def test_a_comparison_is_the_difference_of_two_surveys(world, pair):
    survey = drawn(world, 150)
    one, two = (judged(world, f, survey)["survey"].value for f in pair)
    both = vr.compare(*pair, world.log, survey=survey, estimators=NAMES)
    assert both["survey"].value == pytest.approx(one - two)
    back = vr.compare(*pair[::-1], world.log, survey=survey, estimators=NAMES)
    for name in NAMES:
        assert back[name].value == pytest.approx(-both[name].value)
        assert back[name].interval == pytest.approx(tuple(-end for end in both[name].interval[::-1]))


def test_a_recommender_beside_itself_differs_by_nothing(world, pair):
    same = vr.compare(pair[0], pair[0], world.log, survey=drawn(world, 150), estimators=NAMES)
    for name in NAMES:
        assert same[name].value == 0
        assert same[name].interval == (0, 0)


def test_a_sample_of_the_target_adds_its_own_error(world):
    f = np.full(SHAPE, 0.3)
    f[:, ::2] = 0.6
    survey = drawn(world, 150)
    exact, sampled = (judged(world, f, survey, sample=sample)["survey-ppi"] for sample in (None, 500))
    added = sampled.diagnostics["variance"]["sample"]
    assert added > 0 == exact.diagnostics["variance"]["sample"]
    assert 0 < abs(sampled.value - exact.value) < 4 * np.sqrt(added)
    again = judged(world, f, survey, sample=500)["survey-ppi"]
    assert again.value == sampled.value


def test_a_noisy_survey_is_corrected_and_wider(world, pair):
    random = np.random.default_rng(0)
    survey = drawn(world, 2_000)
    wrong = random.random(2_000) < np.where(survey.labels == 1, RATES.rho01, RATES.rho10)
    noisy = vr.SurveySample(survey.users, survey.items, survey.labels ^ wrong, noisy=True)
    truth = world.true_inaccuracy(pair[0])
    exact, corrected = (judged(world, pair[0], one, noise_rates=RATES)["survey-ppi"] for one in (survey, noisy))
    assert corrected.interval[0] < truth < corrected.interval[1]
    assert corrected.standard_error > 1.3 * exact.standard_error
    unsure = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0), (0, 2e-4)))
    wider = judged(world, pair[0], noisy, noise_rates=unsure)["survey-ppi"]
    assert wider.diagnostics["variance"]["noise_rates"] > 0


def test_over_a_region_of_rates_a_noisy_survey_is_a_range_and_a_true_one_is_not(world, pair):
    region = vr.NoiseRegion(0.3, 0.15)
    survey = drawn(world, 300)
    noisy = vr.SurveySample(survey.users, survey.items, survey.labels, noisy=True)
    found = judged(world, pair[0], noisy, noise_rates=region)["survey"]
    ends = [judged(world, pair[0], noisy, noise_rates=point)["survey"].value for point in region.corners]
    assert found.range == pytest.approx((min(ends), max(ends)))
    plain_one, in_region = (judged(world, pair[0], survey, noise_rates=one) for one in (None, region))
    assert in_region["survey"].interval == plain_one["survey"].interval


def test_the_log_is_no_part_of_the_survey_alone(world, pair):
    survey = drawn(world, 150)
    other = vr.simulate.world(*SHAPE, observed=0.1, random_state=9).log
    one, two = (vr.estimate(pair[0], log, survey=survey, estimators="survey")["survey"] for log in (world.log, other))
    assert one.interval == two.interval


@pytest.mark.parametrize("names", ["survey", ["survey"], ("survey",)])
def test_the_survey_alone_takes_a_log_of_random_rows_only(world, pair, names):
    log, survey = world.log, drawn(world, 150)
    shown = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=SHAPE[0], n_items=SHAPE[1], unbiased=np.ones(len(log), bool)
    )
    with pytest.raises(SurveyError, match='estimators="survey"'):
        vr.estimate(pair[0], shown, survey=survey, estimators="survey-ppi")
    found = vr.estimate(pair[0], shown, survey=survey, estimators=names)["survey"]
    assert found.interval == judged(world, pair[0], survey)["survey"].interval


@pytest.mark.parametrize("names", [["survey"], ("survey",)])
def test_the_survey_alone_walks_over_nothing(world, pair, names, monkeypatch):
    from verirec.estimation.setup import cell_losses

    problem = SurveyProblem.of(drawn(world, 150), world.log, None)
    monkeypatch.setattr(SurveyProblem, "_expected", lambda *_: pytest.fail("it walked over the grid"))
    losses = [cell_losses(pair[0], world.log, "log", None, counts_grid=True)]
    assert list(judge_by_survey(problem, losses, names, 0.95)[0]) == ["survey"]


def test_bad_input(world, pair):
    survey = drawn(world, 150)
    check_refusal(lambda: judged(world, pair[0], [1, 2]), Exception, "survey must be a SurveySample; got list")
    check_refusal(
        lambda: vr.estimate(pair[0], world.log, estimators="survey"), ParameterError, "survey must be given.*: survey"
    )
    certain = np.where(world.true_labels == 1, 1.0, 0.0)
    check_refusal(lambda: judged(world, certain, survey), PredictionError, "clip=1e-6 would keep them inside")
    exclude = tuple(side.ravel() for side in np.indices(SHAPE))
    check_refusal(lambda: judged(world, pair[0], survey, exclude=exclude), Exception, "exclude leaves no pair")


def test_one_walk_serves_all(world, pair):
    """Losses of several recommenders are worked out together, and each as if alone."""
    from verirec.estimation.setup import cell_losses

    problem = SurveyProblem.of(drawn(world, 150), world.log, None)
    losses = [cell_losses(f, world.log, "log", None, counts_grid=True) for f in pair]
    both = problem.judged(losses)
    for one, together in zip(losses, both, strict=True):
        assert problem.judged([one])[0].expected == pytest.approx(together.expected, rel=1e-12)
    assert problem.judged(losses, on_grid=False)[0].expected == 0


@cache
def surveys_of(selectivity, design, n, count):
    """Errors in intervals, widths and wrong verdicts of many surveys: [survey][level, difference][estimator]."""
    world = a_world(selectivity)
    random = np.random.default_rng(0)
    f = 0.1 + 0.8 * world.preferences, 0.3 + 0.3 * world.preferences + 0.2 * random.random(SHAPE)
    truths = [world.true_inaccuracy(one) for one in f]
    truth = truths[0], truths[0] - truths[1]
    q = np.clip(world.preferences, 0.05, 0.95)
    lever = np.abs(np.log(f[0] / (1 - f[0]))) * np.sqrt(q * (1 - q))
    covered, widths = np.empty((count, 2, 2)), np.empty((count, 2, 2))
    for seed in range(count):
        survey = drawn(world, n, design, seed, lever)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"survey": survey, "noise_rates": RATES, "estimators": NAMES}
            found = vr.estimate(f[0], world.log, **options), vr.compare(*f, world.log, **options)
        for kind in range(2):
            for which, name in enumerate(NAMES):
                low, high = found[kind][name].interval
                covered[seed, kind, which], widths[seed, kind, which] = low <= truth[kind] <= high, high - low
    return covered, widths


@pytest.mark.parametrize("design", ["uniform", "weighted", "clustered"])
@pytest.mark.parametrize("selectivity", [0.0, 4.0])
def test_intervals_hold_whatever_decides_what_is_logged(selectivity, design):
    covered, widths = surveys_of(selectivity, design, 200, 60)
    low, high = PROMISED
    room = largest_z(8) * np.sqrt(low * (1 - low) / len(covered))
    assert covered.mean(axis=0).min() > low - room
    assert covered.mean(axis=0).max() <= min(high + room, 1)
    ratio = widths[..., 1].mean(axis=0) / widths[..., 0].mean(axis=0)
    assert ratio.max() < 1.02


def test_the_log_sharpens_the_answer_where_the_recommender_does_not_know_it():
    """A recommender that is blind gains most of what the label model can tell."""
    world = a_world(0.0)
    f = np.full(SHAPE, 0.3)
    f[:, ::2] = 0.6
    survey = drawn(world, 400, seed=3)
    found = judged(world, f, survey, noise_rates=RATES)
    assert found["survey-ppi"].standard_error < found["survey"].standard_error


@pytest.mark.parametrize("kind", [LossDifference, ScaledDifference])
def test_differences_of_losses_are_not_held_as_long_as_the_log(kind, in_small_parts):
    def work(log):
        random = np.random.default_rng(0)
        factors = (vr.Factors(*(random.normal(size=(size, 4)) for size in log.shape)) for _ in range(2))
        losses = kind(*(CellLosses(as_predictions(one, *log.shape), get_loss("log")) for one in factors))
        expected = losses.cells(log.users[:50], log.items[:50])
        found = [side[:50] for side in losses.of_rows(log.users, log.items)]
        assert np.array_equal(found, expected)
        return lambda: losses.of_rows(log.users, log.items)

    assert held_a_row(work) < HALF_A_NUMBER
