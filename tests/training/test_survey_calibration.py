"""Level and slope by a survey: against a plain minimiser, in every model, saved and loaded, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import verirec as vr
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation.curves import PlattCurve
from verirec.exceptions import ParameterError, PositionError, SurveyError, SurveyWarning
from verirec.training.model_cells import ModelCells

SHAPE = (80, 60)
RATES = vr.NoiseRates(0.2, 0.1)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.25, noise_rates=RATES, selectivity=2.0, random_state=2)


@pytest.fixture(scope="module", params=["mf", "constants", "ncf", "plain factors"])
def recommender(request, world):
    kind = {"model": "mf", "constants": False} if request.param == "plain factors" else {"model": request.param}
    return vr.methods.MF(epochs=6, dim=3, **kind).fit(world.log, noise_rates=RATES).recommender_


def survey_of(world, count, seed=0, **more):
    users, items = np.divmod(np.random.default_rng(seed).permutation(SHAPE[0] * SHAPE[1])[:count], SHAPE[1])
    return vr.SurveySample(users, items, world.true_labels[users, items], **more)


def logits_of(recommender):
    model = ModelCells(recommender.model, SHAPE)
    return model.cell_logits(np.arange(SHAPE[0])[:, None], np.arange(SHAPE[1])[None, :])


def plain_curve(z, labels, weights):
    """Minimise log loss and prior by a general method, rows weighted as many as they are worth."""
    weights = weights * weights.sum() / (weights**2).sum()
    centre = (weights * z).sum() / weights.sum()

    def loss(at):
        logits = at[1] + at[0] * (z - centre)
        fit = (weights * (np.logaddexp(0, logits) - labels * logits)).sum()
        return fit + 4 * (at[0] - 1) ** 2 / 2 + 0.25 * (at[1] - centre) ** 2 / 2

    slope, level = minimize(loss, [1.0, centre], method="BFGS", options={"gtol": 1e-9}).x
    return slope, level - slope * centre


def outside(survey, log):
    logged = np.zeros(SHAPE, bool)
    logged[log.users, log.items] = True
    return ~logged[survey.users, survey.items]


@pytest.mark.parametrize("kind", ["plain", "weighted", "noisy"])
def test_level_and_slope_are_the_minimum_of_loss_and_prior(world, recommender, kind):
    random = np.random.default_rng(1)
    chances = random.uniform(0.2, 1, 300) if kind == "weighted" else None
    survey = survey_of(world, 300, probabilities=chances, noisy=kind == "noisy")
    free = outside(survey, world.log)
    labels = survey.labels if kind != "noisy" else (survey.labels - RATES.rho10) / (1 - RATES.rho01 - RATES.rho10)
    weights = np.ones(300) if chances is None else 1 / chances
    z = logits_of(recommender)
    slope, constant = plain_curve(z[survey.users, survey.items][free], labels[free], weights[free])
    found = recommender.calibrated(survey, exclude=world.log)
    everywhere = as_predictions(found.predictions, *SHAPE).block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    np.testing.assert_allclose(everywhere, expit(constant + slope * z), atol=2e-6)


def test_all_that_predicts_is_put_right_and_the_order_stays(world, recommender, tmp_path):
    survey = survey_of(world, 400)
    better = recommender.calibrated(survey, exclude=world.log)
    assert recommender.calibration is None
    users = np.arange(20)
    before, after = recommender.recommend(users, 7), better.recommend(users, 7)
    np.testing.assert_array_equal(before.positions, after.positions)
    np.testing.assert_allclose(after.scores, better.calibration.logits(before.scores.astype(float)), atol=1e-5)
    asked = np.repeat(users, 7), after.positions.ravel()
    np.testing.assert_allclose(better.predict(*asked), after.probabilities.ravel(), atol=1e-5)
    np.testing.assert_allclose(after.to_frame()["probability"], after.probabilities.ravel())
    assert after.to_frame().columns.tolist() == ["user", "rank", "item", "logit", "probability"]
    moved = vr.FeedbackLog.from_arrays([0, 1], [1, 0], [1, 0], n_users=2, n_items=2, user_ids=[7, 3], item_ids=[9, 5])
    there = as_predictions(better.predictions_for(moved), 2, 2).block(np.arange(2), np.arange(2))
    np.testing.assert_allclose(there.ravel(), better.predict([7, 7, 3, 3], [9, 5, 9, 5]), atol=1e-6)
    loaded = vr.load(better.save(tmp_path))
    assert loaded.calibration == better.calibration
    np.testing.assert_array_equal(loaded.predict(*asked), better.predict(*asked))


def test_the_log_loss_on_random_pairs_falls():
    """The log's level is that of what people chose to rate; a survey of 200 brings it down."""
    world = vr.simulate.world(*SHAPE, observed=0.1, noise_rates=vr.NoiseRates(0, 0), selectivity=4.0, random_state=2)
    method = vr.methods.MF(epochs=30).fit(world.log)
    everyone = np.arange(SHAPE[0]), np.arange(SHAPE[1])

    def loss(recommender):
        f = as_predictions(recommender.predictions, *SHAPE).block(*everyone)
        return -np.mean(np.where(world.true_labels == 1, np.log(f), np.log(1 - f)))

    after = [loss(method.calibrated(survey_of(world, 200, seed), exclude=world.log)) for seed in range(8)]
    assert np.mean(after) < loss(method) - 0.01


def test_fit_does_it_after_training_with_pairs_that_are_not_in_the_log(world):
    survey = survey_of(world, 300)
    fitted = vr.methods.OMEDR(epochs=4).fit(world.log, noise_rates=RATES, survey=survey)
    plain = vr.methods.OMEDR(epochs=4).fit(world.log, noise_rates=RATES)
    assert plain.recommender_.calibration is None
    free = survey.select(outside(survey, world.log))
    assert 0 < len(free) < len(survey)
    assert fitted.recommender_.calibration == plain.calibrated(free).calibration
    assert fitted.recommender_.calibration != plain.calibrated(survey).calibration


def test_a_noisy_survey_is_corrected_on_average(world):
    method = vr.methods.MF(model="constants", epochs=10).fit(world.log)
    truth = survey_of(world, 4_000)
    curves = []
    for seed in range(30):
        noisy = RATES.observe(truth.labels, np.random.default_rng(seed).random(len(truth)))
        answers = vr.SurveySample(truth.users, truth.items, noisy, noisy=True)
        curves.append(method.calibrated(answers, exclude=world.log, noise_rates=RATES).calibration.level)
    clean = method.calibrated(truth, exclude=world.log).calibration.level
    assert np.mean(curves) == pytest.approx(clean, abs=4 * np.std(curves) / np.sqrt(30))


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_tells_the_level_alone(world, recommender, label):
    free = np.flatnonzero(outside(survey_of(world, SHAPE[0] * SHAPE[1]), world.log))[:100]
    everything = survey_of(world, SHAPE[0] * SHAPE[1])
    survey = vr.SurveySample(everything.users[free], everything.items[free], np.full(100, label))
    with pytest.warns(SurveyWarning, match="all 100 surveyed pairs are .* they tell the level alone"):
        found = recommender.calibrated(survey)
    assert found.calibration.slope == 1.0
    z = logits_of(recommender)
    told = as_predictions(found.predictions, *SHAPE).at(survey.users, survey.items)
    shift = logit(told) - z[survey.users, survey.items]
    np.testing.assert_allclose(shift, shift[0], atol=1e-4)
    # The loss's slope is that of the prior: pulled by 100 labels, held by 1/4 of the way.
    assert np.sum(told - label) == pytest.approx(-0.25 * shift[0], abs=1e-3)


def test_an_order_that_means_nothing_is_not_turned_round(world):
    recommender = vr.methods.MF(epochs=20, model="constants").fit(world.log).recommender_
    survey = survey_of(world, 600)
    against = (logits_of(recommender)[survey.users, survey.items] < np.median(logits_of(recommender))).astype(int)
    with pytest.warns(SurveyWarning, match="liked no more than the rest"):
        found = recommender.calibrated(vr.SurveySample(survey.users, survey.items, against))
    assert found.calibration.slope == 0
    assert found.predict([3, 4], [5, 6]) == pytest.approx(against.mean(), abs=0.01)
    np.testing.assert_array_equal(found.recommend([3], 5).positions, recommender.recommend([3], 5).positions)


def test_users_with_few_items_left_keep_blanks(world):
    method = vr.methods.MF(model="constants", epochs=2).fit(world.log)
    better = method.calibrated(survey_of(world, 100))
    found = better.recommend([0], SHAPE[1], exclude=world.log)
    left = (found.positions >= 0).sum()
    assert left < SHAPE[1]
    assert np.isneginf(found.scores[0, left:]).all()
    assert np.isfinite(found.scores[0, :left]).all()


def test_similar_items_have_cosines_and_no_probabilities(world):
    found = vr.methods.MF(epochs=2).fit(world.log).similar_items(3, 4)
    assert found.to_frame().columns.tolist() == ["user", "rank", "item", "cosine"]
    check_refusal(lambda: found.probabilities, ParameterError, "similar items have cosines, not probabilities")


def test_what_cannot_calibrate_is_refused_before_training(world):
    log = world.log
    trained_on = vr.SurveySample(log.users[:20], log.items[:20], np.arange(20) % 2)
    outside_grid = vr.SurveySample([SHAPE[0]], [0], [1])
    noisy, best = survey_of(world, 30, noisy=True), survey_of(world, 30, best=True)
    for survey, error, message in (
        ("yes", SurveyError, "survey must be a SurveySample; got str"),
        (trained_on, SurveyError, "all 20 surveyed pairs were trained on: none is left"),
        (outside_grid, PositionError, "80"),
        (noisy, SurveyError, "a noisy survey needs noise rates"),
        (best, SurveyError, "of pairs among their users' best"),
    ):
        started = []
        check_refusal(
            lambda survey=survey, started=started: vr.methods.MF(epochs=1).fit(
                log, survey=survey, progress=lambda *told: started.append(told)
            ),
            error,
            message,
        )
        assert not started
    plain = vr.methods.MF(epochs=1).fit(log).recommender_
    check_refusal(lambda: plain.calibrated(noisy), SurveyError, "a noisy survey needs noise rates")
    check_refusal(lambda: plain.calibrated(None), SurveyError, "survey must be a SurveySample")
    check_refusal(lambda: plain.calibrated(noisy, exclude="log"), ParameterError, "a FeedbackLog is needed")


def test_a_pair_that_was_asked_about_often_counts_once(world, recommender):
    survey = survey_of(world, 200)
    rows = np.concatenate([np.arange(200), np.zeros(300, int)])
    assert survey.select(rows).worth == survey.worth == 200
    once, often = (recommender.calibrated(one).calibration for one in (survey, survey.select(rows)))
    assert (often.slope, often.level) == pytest.approx((once.slope, once.level), abs=1e-6)


def test_noisy_answers_about_one_pair_are_averaged(world):
    recommender = vr.methods.MF(model="constants", epochs=4).fit(world.log, noise_rates=RATES).recommender_
    survey = survey_of(world, 200, noisy=True)
    doubled = np.concatenate([np.arange(200), np.arange(200)])
    curves = [recommender.calibrated(one, noise_rates=RATES).calibration for one in (survey, survey.select(doubled))]
    assert curves[0].slope == pytest.approx(curves[1].slope, abs=1e-6)


def test_a_survey_worth_little_is_refused_and_one_worth_some_warned_of(world):
    recommender = vr.methods.MF(model="constants", epochs=4).fit(world.log).recommender_
    everything = survey_of(world, SHAPE[0] * SHAPE[1])
    free = everything.select(outside(everything, world.log))
    one, other = np.flatnonzero(free.labels == 1)[0], np.flatnonzero(free.labels == 0)[0]
    copies = free.select(np.array([one] * 50 + [other]))
    check_refusal(lambda: recommender.calibrated(copies), SurveyError, "its 51 are worth 2.0")
    uneven = survey_of(world, 30, probabilities=np.where(np.arange(30) == 3, 1e-6, 1.0))
    check_refusal(lambda: recommender.calibrated(uneven), SurveyError, "its 30 are worth 1.0")
    started = []
    for survey in (copies, uneven):
        check_refusal(
            lambda survey=survey: vr.methods.MF(epochs=1).fit(
                world.log, survey=survey, progress=lambda *told: started.append(told)
            ),
            SurveyError,
            "level and slope need a survey worth at least 10",
        )
    assert not started
    with pytest.warns(SurveyWarning, match="worth 40: level and slope by fewer than 100 may do harm"):
        recommender.calibrated(survey_of(world, 40))


def test_a_curve_by_default_is_in_logits():
    assert PlattCurve(2.0, 1.0).logits(np.array([3.0])).tolist() == [7.0]
