"""Scores made probabilities: against a plain minimiser and scikit-learn, in every form, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import verirec as vr
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation.calibration import apart_for_calibration, are_probabilities, need_calibration
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import LabelError, ParameterError, PositionError, PredictionError, ScoreWarning, SurveyError

SHAPE = (40, 30)
EVERYWHERE = np.arange(SHAPE[0]), np.arange(SHAPE[1])


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.5, noise_rates=vr.NoiseRates(0.1, 0.1), random_state=0)


@pytest.fixture(scope="module")
def stars(world):
    return 1 + 4 * world.preferences


def all_of(calibrated):
    return as_predictions(calibrated, *SHAPE).block(*EVERYWHERE)


def plain_platt(scores, labels, weights):
    """Minimise the penalised loss of Platt (1999) by a general method."""
    liked, disliked = weights[labels == 1].sum(), weights[labels == 0].sum()
    targets = np.where(labels == 1, (liked + 1) / (liked + 2), 1 / (disliked + 2))

    def loss(at):
        z = at[0] * scores + at[1]
        return (weights * (np.logaddexp(0, z) - targets * z)).sum()

    return minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_the_minimum_of_its_loss(world, stars, weighted):
    log = world.log
    weights = np.random.default_rng(0).uniform(0.5, 2, len(log)) if weighted else np.ones(len(log))
    given_log = vr.FeedbackLog.from_arrays(
        log.users,
        log.items,
        log.labels,
        n_users=SHAPE[0],
        n_items=SHAPE[1],
        **({"weights": weights} if weighted else {}),
    )
    slope, level = plain_platt(stars[log.users, log.items], log.labels, weights / weights.mean())
    np.testing.assert_allclose(all_of(vr.calibrate(stars, given_log)), expit(slope * stars + level), atol=2e-6)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_surveys_labels_take_the_place_of_the_logs(world, stars, method):
    """As those of a log of the same pairs and weights would."""
    random = np.random.default_rng(0)
    users, items = np.divmod(random.permutation(stars.size)[:300], SHAPE[1])
    labels, chances = world.true_labels[users, items], random.uniform(0.1, 1, 300)
    survey = vr.SurveySample(users, items, labels, probabilities=chances)
    same = vr.FeedbackLog.from_arrays(users, items, labels, n_users=SHAPE[0], n_items=SHAPE[1], weights=1 / chances)
    found, expected = (
        vr.calibrate(stars, world.log, survey=survey, method=method),
        vr.calibrate(stars, same, method=method),
    )
    np.testing.assert_allclose(all_of(found), all_of(expected), atol=1e-9)


def test_by_a_survey_the_level_is_that_of_all_pairs(world, stars):
    random = np.random.default_rng(1)
    users, items = random.integers(SHAPE[0], size=2_000), random.integers(SHAPE[1], size=2_000)
    survey = vr.SurveySample(users, items, world.true_labels[users, items])
    truth = world.true_labels.mean()
    assert all_of(vr.calibrate(stars, world.log, survey=survey)).mean() == pytest.approx(truth, abs=0.03)
    assert all_of(vr.calibrate(stars, world.log)).mean() > truth + 0.03


def test_isotonic_is_that_of_scikit_learn_kept_off_0_and_1(world, stars):
    log, scores = world.log, np.round(stars, 1)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores[log.users, log.items], log.labels)
    least = 1 / (len(log) + 2)
    expected = np.clip(theirs.predict(scores.ravel()), least, 1 - least).reshape(SHAPE)
    np.testing.assert_allclose(all_of(vr.calibrate(scores, log, method="isotonic")), expected, atol=1e-12)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_come_out_as_they_are(method):
    """Where scores are the logits of the labels' own probabilities, the curve is the logistic one."""
    random = np.random.default_rng(1)
    z = random.normal(0, 1.5, (200, 300))
    users, items = np.indices(z.shape).reshape(2, -1)
    log = vr.FeedbackLog.from_arrays(users, items, random.random(z.size) < expit(z.ravel()), n_users=200, n_items=300)
    found = vr.calibrate(7 * z - 20, log, method=method).block(np.arange(200), np.arange(300))
    assert np.abs(found - expit(z)).mean() < 0.01


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_the_mean_is_that_of_the_labels(world, stars, method):
    log = world.log
    found = vr.calibrate(stars, log, method=method).at(log.users, log.items)
    assert found.mean() == pytest.approx(log.labels.mean(), abs=2 / len(log))


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_every_form_of_scores_gives_the_same(world, stars, method):
    everywhere = np.indices(SHAPE).reshape(2, -1)
    expected = all_of(vr.calibrate(stars, world.log, method=method))
    for form in ((*everywhere, stars.ravel()), lambda users, items: stars[users, items], as_predictions(stars, *SHAPE)):
        np.testing.assert_allclose(all_of(vr.calibrate(form, world.log, method=method)), expected, atol=1e-12)
    factors = vr.Factors(stars, np.eye(SHAPE[1]))
    for form in (factors, (stars, np.eye(SHAPE[1])), vr.Factors(stars, np.eye(SHAPE[1]), link="identity")):
        np.testing.assert_allclose(all_of(vr.calibrate(form, world.log, method=method)), expected, atol=1e-9)


def test_scores_of_some_pairs_are_calibrated_by_these_and_cover_these(world, stars):
    log = world.log
    users, items = log.users[::2], log.items[::2]
    found = vr.calibrate((users, items, stars[users, items]), log)
    expected = vr.calibrate(stars, log.select(np.arange(0, len(log), 2)))
    np.testing.assert_allclose(found.at(users, items), expected.at(users, items), atol=1e-12)
    assert len(found.covered) == len(users)
    assert found.at(users, items).min() > 0
    with pytest.raises(PredictionError, match="do not cover 1 of the 1"):
        found.at(log.users[1:2], log.items[1:2])


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_scores_that_part_the_classes_give_finite_losses(method, scale):
    scores = np.arange(60.0).reshape(6, 10) - 30
    users, items = np.indices(scores.shape).reshape(2, -1)
    log = vr.FeedbackLog.from_arrays(users, items, scores.ravel() > 3, n_users=6, n_items=10)
    found = vr.calibrate(scale * scores, log, method=method)
    assert 0 < found.at([0], [0])[0] < 0.1 < 0.9 < found.at([5], [9])[0] < 1
    assert np.isfinite(vr.estimate(found, log, propensities=np.ones((6, 10)), estimators="naive")["naive"].value)


def test_a_far_score_has_a_finite_log_loss(world, stars):
    far = stars.copy()
    far[0, 0] = 1e6
    log = world.log
    kept = log.select((log.users != 0) | (log.items != 0))
    found = vr.calibrate(far, kept)
    assert found.at([0], [0])[0] == 1.0
    assert np.isfinite(vr.estimate(found, log, estimators="dr")["dr"].value)


def test_equal_scores_get_the_share_of_likes(world):
    log = world.log
    for method in ("platt", "isotonic"):
        found = vr.calibrate(np.full(SHAPE, 3.0), log, method=method)
        assert found.at([0], [0])[0] == pytest.approx(log.labels.mean(), abs=1 / len(log))


def test_scores_turned_round_are_told(world, stars):
    with pytest.warns(ScoreWarning, match=r"^these scores are lower the more a pair is liked") as told:
        turned = vr.calibrate(-stars, world.log)
    assert told[0].filename == __file__
    np.testing.assert_allclose(all_of(turned), all_of(vr.calibrate(stars, world.log)), atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["platt", "isotonic"]))
@pytest.mark.filterwarnings("ignore::verirec.exceptions.ScoreWarning")
def test_they_never_leave_the_open_interval_and_isotonic_ones_never_fall(seed, method):
    random = np.random.default_rng(seed)
    scores = random.standard_cauchy((5, 8)) * 10.0 ** random.integers(-6, 7)
    cells = random.permutation(40)[: random.integers(2, 41)]
    labels = random.integers(2, size=len(cells))
    labels[:2] = 0, 1
    log = vr.FeedbackLog.from_arrays(*np.divmod(cells, 8), labels, n_users=5, n_items=8)
    fitted = vr.calibrate(scores, log, method=method)
    found = fitted.block(np.arange(5), np.arange(8))
    assert np.isfinite(found).all()
    if method == "isotonic":
        assert ((found > 0) & (found < 1)).all()
        assert (np.diff(found.ravel()[np.argsort(scores.ravel())]) >= 0).all()
    else:
        assert np.isfinite(fitted.cell_logits(*np.divmod(np.arange(40), 8))).all()


def test_logits_and_probabilities_agree(world, stars):
    found = vr.calibrate(stars, world.log)
    users, items = world.log.users, world.log.items
    np.testing.assert_allclose(found.cell_logits(users, items), logit(found.at(users, items)), atol=1e-9)
    assert vr.calibrate(stars, world.log, method="isotonic").cell_logits(users, items) is None


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_what_can_be_pickled_still_can(world, stars, method):
    found = vr.calibrate(stars, world.log, method=method)
    np.testing.assert_array_equal(all_of(pickle.loads(pickle.dumps(found))), all_of(found))
    assert repr(found).startswith("CalibratedScores(40 users x 30 items, ")


def test_rows_apart_are_judged_as_the_held_out_part_of_the_log(world):
    pairs = LoggedPairs(world.log, vr.GivenPropensity(world.propensities))
    apart, rest = apart_for_calibration(pairs, 0.25, 0)
    together = {*zip(apart.users, apart.items, strict=True)} | {*zip(rest.log.users, rest.log.items, strict=True)}
    assert len(apart) + len(rest.log) == len(world.log) == len(together)
    assert rest.p == pytest.approx(world.propensities[rest.log.users, rest.log.items] * len(rest.log) / len(world.log))


@pytest.mark.parametrize(
    ("form", "are"),
    [
        (lambda s: s / 5, True),
        (lambda s: s, False),
        (lambda s: s / 5 - 0.21, False),
        (lambda s: s / s.max() + 1e-9, True),
    ],
)
def test_scores_are_told_from_probabilities(world, stars, form, are):
    assert are_probabilities(form(stars), world.log) is are


def test_scores_that_only_unlogged_pairs_have_are_seen(world):
    values = np.full(SHAPE, 0.5)
    logged = np.zeros(SHAPE, bool)
    logged[world.log.users, world.log.items] = True
    values[~logged] = 7
    assert not are_probabilities(values, world.log)
    assert are_probabilities((world.log.users, world.log.items, values[logged]), world.log)


REFUSED = [
    (lambda w, s: vr.calibrate(s, w.log, method="magic"), ParameterError, r"^method must be one of isotonic, platt"),
    (lambda w, s: vr.calibrate(s[:-1], w.log), PredictionError, r"must have shape \(40, 30\); got \(39, 30\)$"),
    (lambda w, s: vr.calibrate(s, w.log.select(w.log.labels == 1)), LabelError, r"all \d+ are positive: of clicks"),
    (
        lambda w, s: vr.calibrate((*(side[w.log.labels == 0] for side in (w.log.users, w.log.items)),
                                   np.zeros((w.log.labels == 0).sum())), w.log),
        LabelError,
        r"both classes; all \d+ are negative$",
    ),
    (lambda w, s: vr.calibrate(s, w.log, survey=w.log), SurveyError, r"^survey must be a SurveySample; got"),
    (
        lambda w, s: vr.calibrate(s, w.log, survey=vr.SurveySample([0, 1], [0, 1], [1, 0], best=True)),
        SurveyError,
        "of pairs among their users' best, from which no curve of all pairs follows$",
    ),
    (
        lambda w, s: vr.calibrate(s, w.log, survey=vr.SurveySample([0, 1], [0, 1], [1, 1])),
        SurveyError,
        r"of both classes; all 2 are of one$",
    ),
    (
        lambda w, s: vr.calibrate(s, w.log, survey=vr.SurveySample([0, 99], [0, 1], [0, 1])),
        PositionError,
        r"^users must be positions from 0 to 39",
    ),
    (lambda w, s: vr.calibrate(([0], [0], [1.0]), w.log), PredictionError, r"at least 2 are needed$"),
    (
        lambda w, s: vr.calibrate(vr.Factors(np.full((40, 1), 1e200), np.full((30, 1), 1e200)), w.log),
        PredictionError,
        r"^scores must be finite; \d+ of \d+ are not$",
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input_is_refused_in_one_line(world, stars, call, error, message):
    check_refusal(lambda: call(world, stars), error, message)


# Factors that are no logits


def factors_with(scores, link="logistic"):
    return vr.Factors(scores, np.eye(SHAPE[1]), link=link)


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_factors_worse_than_a_coin_are_told_once_where_they_are_judged(world, stars, loss):
    log = world.log
    for call in (
        lambda: vr.estimate(factors_with(-stars), log, loss=loss),
        lambda: vr.compare(factors_with(-stars), 0.9 * world.preferences + 0.05, log, loss=loss),
    ):
        with pytest.warns(ScoreWarning, match=rf"^the {loss} loss of these factors is .*, above a coin's") as told:
            call()
        assert [one.filename for one in told] == [__file__]


def test_factors_that_are_logits_are_not_told_of(world):
    z = logit(np.clip(world.preferences, 0.05, 0.95))
    vr.estimate(factors_with(z), world.log)
    vr.estimate(vr.calibrate(factors_with(30 * z), world.log), world.log)
    # A coin's own predictions are no worse than a coin's, and numbers that are no factors say what they are.
    vr.estimate(factors_with(np.zeros(SHAPE)), world.log)
    vr.estimate(factors_with(expit(-3 * z), link="identity"), world.log)
    vr.estimate(expit(-3 * z), world.log)


def test_factors_that_name_no_link_are_told_of_once_and_need_calibration(world):
    given = logit(np.clip(world.preferences, 0.05, 0.95)), np.eye(SHAPE[1])
    for form in (given, vr.Factors(*given, link=None)):
        with pytest.warns(ScoreWarning, match=r"^these factors name no link and are taken for logits") as told:
            vr.estimate(form, world.log)
        assert [one.filename for one in told] == [__file__]
        assert need_calibration(form, world.log)
        vr.estimate(vr.calibrate(form, world.log), world.log)


def test_factors_that_are_no_logits_need_calibration_and_logits_do_not(world, stars):
    assert need_calibration(factors_with(-stars), world.log)
    assert not need_calibration(factors_with(logit(np.clip(world.preferences, 0.05, 0.95))), world.log)
