"""What is trained on, chosen by and tested on."""

from __future__ import annotations

import numpy as np
import pytest
from study_world import STUDY, small_problem

from refusals import check_refusal
from verirec import ConstantPropensity
from verirec.exceptions import DatasetNotFoundError, NoiseRateError, ParameterError
from verirec.losses import NoiseRates
from verirec.methods import catalogue
from verirec.metrics import evaluate
from verirec.studies.table2 import Study, Task, load_problem, named_methods
from verirec.studies.table2.baselines import baseline_scores
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.problems import TESTED, _on_complete
from verirec.studies.table2.single import arguments, run_once
from verirec.studies.table2.spaces import FORMS, Choice, space_of
from verirec.studies.table2.tuning import next_setting
from verirec.studies.table2.weights import Tempered, Weights


def test_the_slice_is_of_other_users_than_the_test_and_is_like_it():
    test, chosen_by = small_problem().sliced
    assert set(test.users).isdisjoint(chosen_by.users)
    assert len(set(chosen_by.users)) == 18
    assert len(test) + len(chosen_by) == len(small_problem().random)
    assert abs(test.labels.mean() - chosen_by.labels.mean()) < 0.05


def test_seeds_flip_other_labels_and_leave_pairs_alone():
    problem, rates = small_problem(), NoiseRates(0.2, 0.1)
    first, again, other = (problem.noisy(rates, seed) for seed in (0, 0, 1))
    assert first.equals(again)
    assert (first.labels != other.labels).any()
    assert (first.users == problem.train.users).all()
    part = problem.parts(first, 0).held_out
    clean = problem.clean(part)
    truth = dict(zip(zip(problem.train.users, problem.train.items, strict=True), problem.train.labels, strict=True))
    assert [truth[pair] for pair in zip(clean.users, clean.items, strict=True)] == clean.labels.tolist()


def test_the_checksum_changes_with_the_data():
    assert small_problem().checksum == small_problem().checksum
    others = {small_problem(seed=1).checksum, small_problem(features=True).checksum, small_problem().checksum}
    assert len(others) == 3


def test_a_complete_matrix_becomes_a_selective_log_and_a_random_test():
    random = np.random.default_rng(0)
    labels = (random.random((80, 400)) < 0.3).astype(np.int8)
    known = random.random(labels.shape) < 0.99
    problem = _on_complete(labels, known)
    pairs = [set(zip(log.users.tolist(), log.items.tolist(), strict=True)) for log in (problem.train, problem.random)]
    assert not pairs[0] & pairs[1]
    assert (np.bincount(problem.random.users) == TESTED).all()
    assert known[problem.random.users, problem.random.items].all()
    assert known[problem.train.users, problem.train.items].all()
    assert (problem.random.labels == labels[problem.random.users, problem.random.items]).all()
    assert problem.train.labels.mean() > problem.random.labels.mean() + 0.1
    assert problem.k == 50


@pytest.mark.parametrize("name", ["coat", "yahoo-r3", "kuairec"])
def test_a_folder_without_the_files_is_named_with_where_to_ask(name, tmp_path):
    check_refusal(lambda: load_problem(name, tmp_path), DatasetNotFoundError, f"{name} is not in .*http.*put ")


def test_baselines_know_items_only_and_are_probabilities():
    log = small_problem().train
    fitted = ConstantPropensity().fit(log)
    liked = [log.labels[log.items == item].mean() for item in range(log.n_items)]
    for name in ("global-mean", "item-mean", "item-ips-mean", "popularity"):
        scores = baseline_scores(name, log, fitted)
        assert scores.shape == (log.n_items,)
        assert ((scores > 0) & (scores < 1)).all()
    assert np.corrcoef(baseline_scores("item-mean", log, fitted), liked)[0, 1] > 0.9
    np.testing.assert_allclose(baseline_scores("item-mean", log, fitted), baseline_scores("item-ips-mean", log, fitted))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_tempered_weights_keep_their_mean(power):
    log = small_problem().train
    whole = Weights(log).constants
    weights = 1 / Tempered(whole, power, log).at(log.users, log.items)
    assert weights.mean() == pytest.approx((1 / whole.at(log.users, log.items)).mean(), rel=1e-6)
    assert np.ptp(weights) == pytest.approx(0 if power == 0 else np.ptp(weights))


@pytest.mark.parametrize("form", FORMS)
def test_every_method_has_the_same_space_but_for_what_is_its_own(form):
    shared = set(space_of("mf", form))
    for name in PAPER_METHODS:
        more = set(space_of(name, form)) - shared
        assert shared <= set(space_of(name, form))
        assert more <= {"propensities", "imputation_penalty", "correction"}


@pytest.mark.parametrize("method", ["mf", "ips", "ome-dr"])
def test_the_next_setting_follows_from_those_before(method):
    space, task = space_of(method, "features"), Task(method, "features")
    past: list[tuple[dict[str, object], float]] = []
    for number in range(10):
        first, again = (next_setting(space, task, list(past)) for _ in range(2))
        assert first == again
        assert set(first) == set(space)
        past.append((first, -float(first["penalty_features"]) + number))
    values = {name: one.values for name, one in space.items() if isinstance(one, Choice)}
    assert all(setting[name] in of for setting, _ in past for name, of in values.items())
    assert len({setting["penalty_constants"] for setting, _ in past}) == 10


def test_a_decay_is_a_penalty_of_as_many_times_the_rows():
    given = arguments(Task("ips", "constants"), {"weight_decay": 1e-3, "propensities": "root"}, 7_000)
    assert given["penalty_factors"] == given["penalty_constants"] == 7.0
    assert "propensities" not in given


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "netflix"}, "dataset must be one of"),
        ({"protocol": "cheating"}, "protocol must be one of"),
        ({"methods": ("svd",)}, "method must be one of"),
        ({"forms": ("deep",)}, "form must be one of"),
        ({"methods": ("mf", "mf")}, "each be named once"),
        ({"seeds": 0}, "seeds must be a whole number from 1"),
        ({"trials": 0}, "trials must be a whole number from 1"),
        ({"rates": "guessed"}, "rates must be one of"),
        ({"space": "large"}, "space must be one of"),
    ],
)
def test_a_study_of_what_there_is_not_is_refused(options, message):
    check_refusal(lambda: Study(**options), ParameterError, message)


def test_noise_that_leaves_no_signal_is_refused():
    check_refusal(lambda: Study(rho01=0.6, rho10=0.5), NoiseRateError, "rho01")


def test_methods_are_read_from_words():
    assert named_methods(None) == PAPER_METHODS
    check_refusal(lambda: named_methods(" , "), ParameterError, "methods must name some")
    check_refusal(lambda: named_methods("mf,svd"), ParameterError, "method must be one of")


@pytest.mark.parametrize("nothing", [{"methods": ()}, {"forms": ()}])
def test_a_study_of_nothing_is_refused(nothing):
    check_refusal(lambda: Study(**nothing), ParameterError, "a study must have at least one method and one form")


def test_a_survey_is_of_pairs_that_are_not_tested_on():
    problem = small_problem()
    survey, test = problem.survey(0), problem.sliced.train
    assert set(survey.users).isdisjoint(test.users)
    truth = {(user, item): label for user, item, label in zip(*_columns(problem.random), strict=True)}
    assert [truth[pair] for pair in zip(survey.users, survey.items, strict=True)] == survey.labels.tolist()


def _columns(log):
    return log.users, log.items, log.labels


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
@pytest.mark.parametrize("features", [False, True])
def test_covariates_that_are_shared_between_seeds_train_the_same_model(features):
    problem, rates = small_problem(features=features), NoiseRates(0.2, 0.1)
    setting = {"covariates": "both", "epochs": 20, "penalty_factors": 20.0}
    for seed in (0, 1):
        log = problem.noisy(rates, seed)
        found = run_once(problem, STUDY, Task("mf", "exposure"), setting, seed)
        alone = catalogue["mf"](
            **arguments(Task("mf", "exposure"), setting, len(log), has_features=features), random_state=seed
        ).fit(log, propensities=problem.weights.constants)
        assert found["test"]["log_loss"] == pytest.approx(
            evaluate(alone.predictions, problem.sliced.train, k=5)["log_loss"], abs=1e-5
        )
    assert len(problem._tables) == 2


def test_the_forms_differ_in_what_is_trained():
    kinds = [arguments(Task("mf", form), {"epochs": 30}, 1_000) for form in FORMS]
    assert [one.get("model", "mf") for one in kinds] == ["mf", "mf", "features", "features"]
    assert [one.get("covariates") for one in kinds] == [None, None, "none", "both"]
    assert arguments(Task("mf", "exposure"), {}, 1_000, has_features=False).get("model") is None


def test_the_printed_grid_is_trained_by_gradients():
    assert arguments(Task("mf", "constants"), {"weight_decay": 1e-3}, 1_000)["solver"] == "gradient"
    assert "solver" not in arguments(Task("mf", "constants"), {"penalty_factors": 20.0, "epochs": 30}, 1_000)


def test_imputation_is_tuned_wherever_there_is_one():
    """But for MR, which has several."""
    for name in PAPER_METHODS:
        if name != "mr":
            tuned = "imputation_penalty" in space_of(name, "constants")
            assert tuned == hasattr(catalogue[name], "imputation_penalty"), name
