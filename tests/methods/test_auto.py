"""The search: what it tries, what it goes by, when it returns constants, and how it is reported and gone on with."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import NotFittedError, ParameterError, TrainingError
from verirec.methods import MF, OMEDR, Auto, tune
from verirec.methods.criteria import Gain, ProbabilityLoss, RankingLoss
from verirec.methods.folds import folds_of, originals
from verirec.methods.search import Budget, Search, Trial
from verirec.methods.survey_choice import LevelledLoss, chosen_by_survey

RATES = vr.NoiseRates(0.1, 0.1)
WORLD = vr.simulate.world(80, 60, observed=0.25, noise_rates=RATES, random_state=1)
LOG = WORLD.log
SMALL = vr.simulate.world(30, 25, observed=0.3, noise_rates=RATES, random_state=1).log
QUICK = {"folds": 2, "trials": 10}


def featured(strength=3.0, seed=0):
    """A log whose labels follow from products of features."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(80, 2)), random.normal(size=(60, 2))
    users, items = np.nonzero(random.random((80, 60)) < 0.3)
    logits = strength * (x[users] * y[items]).sum(1)
    labels = random.random(len(users)) < 1 / (1 + np.exp(-logits))
    return vr.FeedbackLog.from_arrays(
        users, items, labels.astype(np.int8), n_users=80, n_items=60, user_features=x, item_features=y
    )


@pytest.fixture(scope="module")
def found():
    return Auto(**QUICK).fit(LOG)


def test_a_search_has_tried_what_its_report_says(found):
    search = found.report_.search
    assert search["stopped"] == "after 10 trials"
    assert len(search["trials"]) == 10
    assert search["trials"][0]["model"] == "constants"
    assert len({json.dumps(one, sort_keys=True) for one in search["trials"]}) == 10
    assert search["trials"][search["reference"]]["covariates"] == "none"
    assert found.report_.validation_error == search["trials"][search["chosen"]]["loss"]
    assert found.report_.method == "auto"


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ColdStartWarning")
def test_a_trials_loss_is_that_of_a_fit_that_has_not_seen_the_fold():
    auto = Auto(folds=2, trials=1).fit(LOG)
    random, number = np.random.default_rng([0, 20]), np.empty(len(LOG), int)
    for label in (0, 1):
        rows = np.flatnonzero(LOG.labels == label)
        number[random.permutation(rows)] = np.arange(len(rows)) % 2
    losses = []
    for fold in (0, 1):
        held = number == fold
        fitted = MF(model="constants", validation=0, epochs=200).fit(LOG.select(~held))
        scores = fitted.predict(LOG.users[held], LOG.items[held])
        losses.append(1 - roc_auc_score(LOG.labels[held], scores))
    assert auto.report_.search["trials"][0]["loss"] == pytest.approx(np.mean(losses), abs=1e-4)


def test_features_that_decide_are_found():
    log = featured()
    auto = Auto(folds=2, trials=24).fit(log)
    chosen = auto.report_.search["trials"][auto.report_.search["chosen"]]
    assert chosen["model"] == "features"
    assert auto.report_.search["guard"]["sure"]
    assert auto.recommender_.model.interactions.shape == (2, 2)


def test_where_nothing_is_better_constants_come_back():
    """Labels that depend on nothing but users and items."""
    for seed in range(2):
        random = np.random.default_rng(seed)
        logits = random.normal(size=80)[LOG.users] + random.normal(size=60)[LOG.items]
        labels = (random.random(len(LOG)) < 1 / (1 + np.exp(-logits))).astype(np.int8)
        search = Auto(folds=2, trials=12, random_state=seed).fit(LOG.with_labels(labels)).report_.search
        assert not search["guard"]["sure"]
        assert search["chosen"] == search["reference"]


def test_what_is_returned_is_trained_on_all_rows():
    auto = Auto(folds=2, trials=1).fit(LOG)
    alone = MF(model="constants", validation=0, epochs=200).fit(LOG)
    np.testing.assert_allclose(auto.predict(LOG.users, LOG.items), alone.predict(LOG.users, LOG.items), atol=1e-4)


def test_the_same_seed_gives_the_same_search_and_the_report_is_saved(found, tmp_path):
    again = Auto(**QUICK).fit(LOG)
    assert again.report_.search == found.report_.search
    np.testing.assert_array_equal(again.predict(LOG.users, LOG.items), found.predict(LOG.users, LOG.items))
    found.save(tmp_path / "model")
    assert vr.load(tmp_path / "model").report.search == found.report_.search


def test_probabilities_are_judged_with_the_noise():
    auto = Auto(objective="probability", folds=2).fit(SMALL, noise_rates=RATES)
    search = auto.report_.search
    assert search["criterion"] == "ome-snips of held-out rows"
    assert {one["method"] for one in search["trials"]} >= {"mf", "ome", "snips"}
    without = Auto(objective="probability", folds=2, trials=2).fit(LOG)
    assert without.report_.search["criterion"] == "snips of held-out rows"


def test_a_survey_is_asked_where_the_log_cannot_tell():
    random = np.random.default_rng(0)
    users, items = random.integers(0, 80, 150), random.integers(0, 60, 150)
    survey = vr.SurveySample(users, items, WORLD.at(users, items).true_labels)
    for objective in ("ranking", "probability"):
        auto = Auto(objective=objective, **QUICK).fit(LOG, survey=survey, noise_rates=RATES)
        assert 0 <= auto.report_.search["chosen"] < 10


def surveyed(best_on_survey, *, labels=None):
    """A search of three trials, the second a little better on the log than the third, and a survey of 100 pairs."""
    random = np.random.default_rng(0)
    criterion = RankingLoss(LOG.labels, np.arange(len(LOG)) % 2)
    search = Search(None, criterion, Budget(3, None), lambda *told: None)
    truth, noise = random.integers(2, size=100), random.normal(size=(3, 100))
    on_survey = [noise[0], best_on_survey * truth + noise[1], 4 * truth + noise[2]]
    common = random.normal(size=len(LOG))
    for strength, asked in zip((0.0, 1.0, 1.0), on_survey, strict=True):
        logits = strength * LOG.labels + common
        if len(search.trials) == 2:  # the first like of all is put last, the last one in the middle
            liked = np.flatnonzero(LOG.labels)
            logits[liked[[logits[liked].argmax(), logits[liked].argmin()]]] = -9.0, 0.5
        search.trials.append(Trial(MF(), {"dim": len(search.trials)}, logits, criterion.losses(logits), asked))
    cells = np.flatnonzero(~np.isin(np.arange(LOG.n_cells), LOG.users.astype(int) * LOG.n_items + LOG.items))
    users, items = np.divmod(random.choice(cells, 100, replace=False), LOG.n_items)
    return search, vr.SurveySample(users, items, truth if labels is None else labels)


SURE, UNSURE = Gain(0.05, 0.01), Gain(0.01, 0.01)


@pytest.mark.parametrize(
    ("best_on_survey", "by_log", "chosen"),
    [
        pytest.param(-0.5, SURE, 0, id="a-gain-that-random-pairs-do-not-show-is-none"),
        pytest.param(0.3, SURE, 2, id="both-say-so-and-the-survey-picks-among-near-equals"),
        pytest.param(0.3, UNSURE, 0, id="neither-is-sure"),
        pytest.param(3.0, UNSURE, 2, id="the-survey-is-sure"),
    ],
)
def test_with_a_survey_the_survey_decides(best_on_survey, by_log, chosen):
    search, survey = surveyed(best_on_survey)
    verdict = chosen_by_survey(search, survey, LOG, search.trials[0], by_log)
    assert search.trials.index(verdict.chosen) == chosen
    assert (verdict.gain.value > 0) == (best_on_survey > 0)


@pytest.mark.parametrize(("by_log", "chosen"), [(SURE, 1), (UNSURE, 0)])
def test_a_survey_of_one_class_leaves_it_to_the_log(by_log, chosen):
    search, survey = surveyed(3.0, labels=np.ones(100, int))
    verdict = chosen_by_survey(search, survey, LOG, search.trials[0], by_log)
    assert (search.trials.index(verdict.chosen), verdict.gain) == (chosen, None)


@pytest.mark.parametrize(("by_log", "chosen"), [(SURE, 1), (UNSURE, 0)])
@pytest.mark.parametrize("copied", [False, True])
def test_a_survey_with_few_of_a_class_leaves_it_to_the_log(by_log, chosen, copied):
    """One disliked pair has no spread: whatever puts it last would be surely better."""
    search, survey = surveyed(3.0, labels=(np.arange(100) > 0).astype(int))
    if copied:  # asking about it again changes nothing
        rows = np.concatenate([np.zeros(30, int), np.arange(100)])
        survey = survey.select(rows)
        search.trials = [replace(one, on_survey=one.on_survey[rows]) for one in search.trials]
    with pytest.warns(vr.exceptions.SurveyWarning, match="only 1 of 100 surveyed pairs .* are disliked: .* the log"):
        verdict = chosen_by_survey(search, survey, LOG, search.trials[0], by_log)
    assert (search.trials.index(verdict.chosen), verdict.gain) == (chosen, None)


def test_a_survey_of_one_class_is_said_to_be_one():
    survey = vr.SurveySample([0, 1, 2, 3], [5, 6, 7, 8], [1, 1, 1, 1])
    with pytest.warns(vr.exceptions.SurveyWarning, match="surveyed pairs are liked: they tell the level alone"):
        auto = Auto(folds=2, trials=2).fit(LOG, survey=survey)
    assert auto.report_.search["survey"] is None


def test_the_surveys_loss_is_that_of_probabilities_that_were_put_right():
    random = np.random.default_rng(0)
    z = random.normal(size=4000)
    labels = (random.random(4000) < 1 / (1 + np.exp(-(2 * z - 1)))).astype(np.int8)
    judge = LevelledLoss(labels, np.zeros(4000, int))
    exact = np.mean(np.logaddexp(0, 2 * z - 1) - labels * (2 * z - 1))
    assert judge.losses(z)[0] == pytest.approx(exact, abs=1e-3)
    assert judge.losses(3 * z + 5)[0] == pytest.approx(exact, abs=1e-3)


def test_a_stopped_search_goes_on_to_the_same_end(tmp_path):
    file, heard = tmp_path / "search.safetensors", []

    def stop(done, most, best):
        heard.append(done)
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Auto(**QUICK).fit(LOG, checkpoint=file, progress=stop)
    again = Auto(**QUICK).fit(LOG, checkpoint=file, resume=True, progress=lambda *told: heard.append(told[0]))
    assert again.report_.search == Auto(**QUICK).fit(LOG).report_.search
    assert heard == [1, 2, 3, 4, *range(1, 11)]
    larger = Auto(**QUICK | {"trials": 11}).fit(LOG, checkpoint=file, resume=True)
    assert len(larger.report_.search["trials"]) == 11
    check_refusal(
        lambda: Auto(**QUICK | {"folds": 3}).fit(LOG, checkpoint=file, resume=True), TrainingError, "of another search"
    )


def survey_of(seed, count=150):
    random = np.random.default_rng(seed)
    users, items = np.divmod(random.permutation(LOG.n_cells)[:count], LOG.n_items)
    return vr.SurveySample(users, items, WORLD.at(users, items).true_labels)


def test_a_search_with_another_survey_is_another_search(tmp_path):
    """What is kept of a trial has logits of the surveyed pairs."""
    file, two = tmp_path / "search.safetensors", {"folds": 2, "trials": 2}
    Auto(**two).fit(LOG, checkpoint=file)
    check_refusal(
        lambda: Auto(**two).fit(LOG, survey=survey_of(0), checkpoint=file, resume=True),
        TrainingError,
        "of another search",
    )
    with_survey = Auto(**two).fit(LOG, survey=survey_of(0), checkpoint=file)
    for other in (survey_of(1), None):
        check_refusal(
            lambda other=other: Auto(**two).fit(LOG, survey=other, checkpoint=file, resume=True),
            TrainingError,
            "of another search",
        )
    again = Auto(**two).fit(LOG, survey=survey_of(0), checkpoint=file, resume=True)
    assert again.report_.search == with_survey.report_.search


def test_time_is_kept(monkeypatch):
    ticks = iter(range(0, 1000, 10))
    # The search's own clock: others look at theirs meanwhile.
    monkeypatch.setattr("verirec.methods.search.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    search = Auto(folds=2, seconds=25).fit(LOG).report_.search
    assert search["stopped"] == "after 25 seconds"
    assert len(search["trials"]) == 3


def test_parameters_go_round_as_a_methods_do(found):
    auto = Auto(trials=3, objective="probability")
    assert clone(auto).get_params() == auto.get_params() == Auto().set_params(**auto.get_params()).get_params()
    assert repr(auto) == "Auto(objective='probability', trials=3)"
    assert vr.methods.catalogue["auto"] is Auto
    assert Auto(**found.report_.parameters).get_params() == found.get_params()
    check_refusal(lambda: Auto().predict([0], [0]), NotFittedError, "not trained yet")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"trials": 0}, "trials must be a whole number .*1"),
        ({"seconds": 0}, "seconds must be"),
        ({"folds": 1}, "folds must be a whole number .*2"),
        ({"objective": "fame"}, "objective must be one of"),
    ],
)
def test_what_a_search_cannot_be(parameters, message):
    check_refusal(lambda: Auto(**parameters).fit(LOG), ParameterError, message)
    check_refusal(lambda: tune(MF(), LOG, **parameters), ParameterError, message)


def test_logs_that_are_too_small_are_refused():
    few = LOG.select(np.arange(len(LOG)) < 15)
    check_refusal(lambda: Auto().fit(few), ParameterError, "a search in 5 folds needs at least 10 rows of each class")
    check_refusal(lambda: tune("mf", LOG), ParameterError, "method must be one of verirec.methods")
    audit = vr.AuditSample(LOG.users[:9], LOG.items[:9], LOG.labels[:9])
    check_refusal(lambda: Auto().fit(LOG, noise_rates=RATES, audit=audit), ParameterError, "one of the two")


def test_any_method_can_be_tuned():
    tuned = tune(OMEDR(epochs=15), LOG, trials=6, folds=2, noise_rates=RATES)
    search = tuned.report_.search
    assert (tuned.name, search["reference"], len(search["trials"])) == ("ome-dr", 0, 6)
    chosen = search["trials"][search["chosen"]]
    assert chosen["loss"] == min(one["loss"] for one in search["trials"])
    changed = {name: value for name, value in chosen.items() if name.startswith("penalty") or name == "dim"}
    assert changed.items() <= tuned.get_params().items()
    assert tuned.refit


# Copied users


def copied(seed):
    """A log whose second half of users are copies of the first, true labels, and which pairs are logged."""
    random = np.random.default_rng(seed)
    shape = 120, 90
    logits = 0.7 * random.normal(size=120)[:, None] + 0.9 * random.normal(size=90)
    logits = logits + 0.5 * random.normal(size=(120, 4)) @ random.normal(size=(4, 90))
    labels, logged = random.random(shape) < 1 / (1 + np.exp(-logits)), random.random(shape) < 0.08
    for values in (labels, logged):
        values[60:] = values[:60]
    users, items = np.nonzero(logged)
    given = labels[users, items].astype(np.int8)
    return vr.FeedbackLog.from_arrays(users, items, given, n_users=120, n_items=90), labels, logged


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ColdStartWarning")
def test_a_search_has_copied_users_once_and_what_it_chose_is_trained_on_all():
    log, _, logged = copied(0)
    folds = folds_of(log, 5, 0, None, None, None, None)
    once = (log.users < 60) | (logged.sum(1) < 3)[log.users]
    np.testing.assert_array_equal(folds.log.users, log.users[once])
    for label in (0, 1):
        assert np.ptp(np.bincount(folds.number[folds.log.labels == label], minlength=5)) <= 1
    assert folds.whole is log
    auto, alone = (one.fit(log) for one in (Auto(folds=2, trials=1), MF(model="constants", validation=0, epochs=200)))
    np.testing.assert_allclose(auto.predict(log.users, log.items), alone.predict(log.users, log.items), atol=1e-4)


def test_what_everybody_was_asked_about_is_no_copy():
    """A full matrix: were its users one, items would be left out whole."""
    users, items = np.divmod(np.arange(600), 20)
    log = vr.FeedbackLog.from_arrays(users, items, np.arange(600) % 7 < 3, n_users=30, n_items=20)
    np.testing.assert_array_equal(originals(log), np.arange(30))


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ColdStartWarning")
def test_copied_users_are_no_evidence():
    """By folds that part copies, factors were surely better by .2, and worse by .07 on pairs that nobody rated."""
    log, labels, logged = copied(1)
    auto, alone = Auto(trials=24, folds=3).fit(log), MF(model="constants").fit(log)
    users, items = np.nonzero(~logged)
    found = [roc_auc_score(labels[users, items], one.predict(users, items)) for one in (auto, alone)]
    assert found[0] >= found[1] - 0.002


# What it goes by


def test_the_ranking_criterion_is_the_auc_and_its_error_that_of_a_bootstrap():
    random, folds = np.random.default_rng(0), np.zeros(len(LOG), int)
    folds[::2] = 1
    criterion = RankingLoss(LOG.labels, folds)
    one = random.normal(size=len(LOG)) + 0.8 * LOG.labels
    two = one + 0.6 * random.normal(size=len(LOG))
    for fold in (0, 1):
        rows = folds == fold
        assert 1 - criterion.losses(one)[fold] == pytest.approx(roc_auc_score(LOG.labels[rows], one[rows]))
    gain = criterion.gain([two, two], [one, one])
    draws = []
    for _ in range(200):
        values = []
        for fold in (0, 1):
            rows = random.choice(np.flatnonzero(folds == fold), (folds == fold).sum())
            values.append(vr.metrics.auc(LOG.labels[rows], one[rows]) - vr.metrics.auc(LOG.labels[rows], two[rows]))
        draws.append(np.mean(values))
    assert gain.value == pytest.approx(np.mean(draws), abs=0.005)
    assert gain.standard_error == pytest.approx(np.std(draws), rel=0.2)


def test_the_probability_criterion_is_the_self_normalised_estimator():
    p = vr.LogisticPropensity().fit(LOG)
    logits = np.random.default_rng(0).normal(size=LOG.shape)
    criterion = ProbabilityLoss(LOG, np.zeros(len(LOG), int), RATES, 1 / p.at(LOG.users, LOG.items))
    expected = vr.estimate(
        1 / (1 + np.exp(-logits)), LOG, propensities=p, noise_rates=RATES, estimators=("ome-snips",), loss="log"
    )
    assert criterion.losses(logits[LOG.users, LOG.items])[0] == pytest.approx(expected["ome-snips"].value)


def test_two_standard_errors_are_asked_for():
    assert Gain(0.021, 0.01).sure
    assert not Gain(0.019, 0.01).sure
    assert not Gain(0.0, 0.0).sure


def test_variances_of_few_rows_are_not_too_small():
    """Divided by n - 1: of two likes' placements by twice what n gives."""
    judge = RankingLoss(np.array([1, 1, 0], np.int8), np.zeros(3, int))
    assert judge.variance(np.array([0.0, 0.25, 0.3]), 0) == pytest.approx(4 * 2 * 0.25**2 / 2)
