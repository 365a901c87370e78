"""Training on logs that keep their levels: minima that are exact, noise that is corrected, and what is predicted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import verirec as vr
from plain_formulas.star_training import user_by_rows, user_on_grid
from refusals import check_refusal
from verirec.exceptions import LabelError, NoiseRateError, ParameterError
from verirec.methods import catalogue
from verirec.training.heads import BinaryHead, StarsHead

STARS = [1, 2, 3, 4, 5]
BAND = vr.TransitionMatrix.band(5, 0.3)
HEAVY = vr.TransitionMatrix([[0.6, 0.1, 0.1, 0.1, 0.1], *np.eye(5)[1:4].tolist(), [0.1, 0.1, 0.1, 0.1, 0.6]])
GRADED = ("mf", "ome", "ips", "snips", "eib", "dr", "dr-jl", "ome-eib", "ome-ips", "ome-dr")
ONLY_BINARY = tuple(name for name, kind in catalogue.items() if name != "auto" and not kind.takes_levels)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.stars(80, 60, random_state=0)


@pytest.fixture(scope="module")
def even_world():
    """One where all levels are logged alike."""
    return vr.simulate.stars(80, 60, propensities=(0.4,) * 5, random_state=0)


def corrected(name, head):
    """How a method is corrected, where it is: each head has a way of its own."""
    return {"correction": "forward"} if name.startswith("ome") and head == "ordinal" else {}


def fitted(name, world, head="stars", **options):
    noise = {"noise_rates": world.noise} if name.startswith("ome") else {}
    given = {"dim": 4, "random_state": 0, "epochs": 20} | corrected(name, head) | options
    return catalogue[name](head=head, **given).fit(world.log, propensities=world.propensities, **noise)


def standardised(log):
    return (log.label_values - log.label_values.mean()) / log.label_values.std()


def parts_of(model):
    parts = ("user_factors", "item_factors", "user_constants", "item_constants", "constant")
    return {name: getattr(model, name).detach().double().numpy() for name in parts}


def to_the_minimum(name, world):
    """Train until nothing changes; returns the parts, and penalties of a user times what rows are worth."""
    method = fitted(name, world, validation=0, refit=False, epochs=3_000, patience=None, penalty_factors=6.0)
    assert method.report_.solver == "sweep"
    assert method.report_.stopped_because == "converged"
    return parts_of(method.recommender_.model)


def test_least_squares_end_where_no_user_can_do_better(world):
    log, parts = world.log, to_the_minimum("mf", world)
    stars = standardised(log)
    for user in range(0, log.n_users, 9):
        rows = log.users == user
        given = parts["constant"], parts["item_factors"], parts["item_constants"], [4.0] + [6.0] * 4
        best = user_by_rows(log.items[rows], np.ones(rows.sum()), stars[rows], *given)
        own = [parts["user_constants"][user], *parts["user_factors"][user]]
        # Constants are centred: what all users have in common has moved to that of all.
        np.testing.assert_allclose(own, best, atol=2e-3)


def test_with_imputed_stars_they_end_at_the_least_squares_of_all_pairs(world):
    log, parts = world.log, to_the_minimum("dr", world)
    stars, weights = (
        standardised(log),
        1 / vr.GivenPropensity(world.propensities).on_grid(log.shape).at(log.users, log.items),
    )
    imputed = float((weights * stars).sum() / weights.sum())
    worth = weights.sum() ** 2 / (weights**2).sum()
    ridges = np.array([4.0] + [6.0] * 4) * log.n_cells / worth
    for user in range(0, log.n_users, 9):
        rows = log.users == user
        given = imputed, parts["constant"], parts["item_factors"], parts["item_constants"], ridges
        best = user_on_grid(log.items[rows], weights[rows], stars[rows], *given)
        own = [parts["user_constants"][user], *parts["user_factors"][user]]
        np.testing.assert_allclose(own, best, atol=2e-3)


@pytest.mark.parametrize("head", ["stars", "ordinal"])
@pytest.mark.parametrize("name", GRADED)
def test_every_method_of_levels_learns_more_than_the_mean(name, head, even_world):
    method = fitted(name, even_world, head, epochs=60)
    assert even_world.true_inaccuracy(method.recommender_) < 0.95 * even_world.true_values.var()


@pytest.mark.parametrize("head", ["stars", "ordinal"])
@pytest.mark.parametrize("name", ["mf", "dr", "dr-jl"])
def test_the_same_seed_gives_the_same_bits_in_any_order_of_rows(name, head, world):
    log = world.log
    order = np.random.default_rng(0).permutation(len(log))
    shape = {"n_users": log.n_users, "n_items": log.n_items, "levels": STARS}
    other = vr.FeedbackLog.from_arrays(log.users[order], log.items[order], log.label_values[order], **shape)
    options = {"dim": 2, "epochs": 4, "head": head}
    one, two = (catalogue[name](**options).fit(given, propensities=world.propensities) for given in (log, other))
    np.testing.assert_array_equal(one.predict([0, 5], [3, 7]), two.predict([0, 5], [3, 7]))


@pytest.mark.parametrize(("corrected", "plain"), [("ome", "mf"), ("ome-ips", "ips"), ("ome-dr", "dr-jl")])
def test_without_noise_a_corrected_method_is_the_plain_one(corrected, plain, world):
    how = {"dim": 2, "epochs": 5, "validation": 0, "refit": False}
    given = {"propensities": world.propensities}
    one = catalogue[corrected](**how).fit(world.log, noise_rates=vr.TransitionMatrix(np.eye(5)), **given)
    two = catalogue[plain](**how).fit(world.log, **given)
    np.testing.assert_allclose(one.predict([0, 5], [3, 7]), two.predict([0, 5], [3, 7]), rtol=1e-5)


def test_weights_that_are_all_the_same_change_nothing(world):
    how = {"dim": 2, "epochs": 30, "validation": 0, "refit": False}
    flat = np.full(world.log.shape, world.log.density)
    one, two = (catalogue[name](**how).fit(world.log, propensities=flat) for name in ("mf", "ips"))
    np.testing.assert_allclose(one.predict([0, 5], [3, 7]), two.predict([0, 5], [3, 7]), rtol=1e-4)


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_the_scale_of_levels_does_not_matter(head, world):
    log = world.log
    shape = {"n_users": log.n_users, "n_items": log.n_items}
    far = vr.FeedbackLog.from_arrays(
        log.users, log.items, 100 + 10 * log.label_values, levels=[100 + 10 * one for one in STARS], **shape
    )
    how = {"dim": 2, "epochs": 10, "head": head}
    one, two = (catalogue["mf"](**how).fit(given) for given in (log, far))
    np.testing.assert_allclose(100 + 10 * one.predict([0, 5], [3, 7]), two.predict([0, 5], [3, 7]), rtol=1e-4)


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_a_correction_for_noise_gets_nearer_to_the_truth(head):
    world = vr.simulate.stars(100, 80, noise=HEAVY, propensities=(0.5,) * 5, random_state=3)
    how = {"dim": 4, "head": head, "epochs": 60, "validation": 0, "learning_rate": 0.05}
    found = {}
    for name in ("mf", "ome"):
        method = catalogue[name](**how, **corrected(name, head)).fit(world.log, noise_rates=world.noise)
        found[name] = world.true_inaccuracy(method.recommender_)
    assert found["ome"] < 0.97 * found["mf"]


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_the_penalty_by_default_is_where_a_search_starts(head, world):
    method = fitted("mf", world, head, epochs=2)
    assert method.report_.penalty_factors == method.usual_penalty_factors(world.log)
    binary = catalogue["mf"](dim=2, epochs=2).fit(world.log.binary(positive_from=4))
    assert binary.report_.penalty_factors == binary.usual_penalty_factors(world.log.binary(positive_from=4))
    assert StarsHead.usual_penalty != BinaryHead.usual_penalty


def test_an_audit_tells_the_matrix(world):
    audit = vr.AuditSample(*world.audit(300, random_state=1), levels=STARS)
    method = catalogue["ome"](dim=2, epochs=5).fit(world.log, audit=audit)
    assert isinstance(method.noise_rates_, vr.TransitionMatrix)


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_gradients_find_what_sweeps_do(head, world):
    how = {"dim": 0, "validation": 0, "refit": False, "head": head, "solver": "gradient", "learning_rate": 0.02}
    slow = catalogue["mf"](**how, epochs=150).fit(world.log)
    fast = catalogue["mf"](**how | {"solver": "auto"}, epochs=150).fit(world.log)
    users, items = np.arange(40), np.arange(40)
    np.testing.assert_allclose(slow.predict(users, items), fast.predict(users, items), atol=0.05)


@pytest.mark.parametrize("objective", ["ranking", "probability"])
def test_a_search_goes_by_the_squared_error_of_stars(objective, even_world):
    search = catalogue["auto"](trials=8, folds=2, objective=objective)
    found = search.fit(even_world.log, noise_rates=even_world.noise)
    report = found.report_.search
    assert report["criterion"] == "squared error of held-out rows"
    assert len(report["trials"]) == 8
    assert even_world.true_inaccuracy(found.recommender_) < even_world.true_values.var()


def test_what_a_search_says_of_a_candidate_is_its_error_on_rows_that_it_did_not_see(even_world):
    log = even_world.log
    found = vr.methods.tune(catalogue["mf"](dim=2, epochs=5, validation=0), log, trials=1, folds=2)
    trial = found.report_.search["trials"][0]
    assert 0.5 * log.label_values.var() < trial["loss"] < log.label_values.var()


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_training_goes_on_from_a_checkpoint_to_the_same_bits(head, world, tmp_path):
    def stop(epoch, epochs, value):
        if epoch == 4:
            raise KeyboardInterrupt

    how = {"dim": 2, "epochs": 16, "head": head, "batch_size": 16, "refit": False}
    file = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        catalogue["mf"](**how).fit(world.log, checkpoint=file, progress=stop)
    assert file.exists()
    resumed = catalogue["mf"](**how).fit(world.log, checkpoint=file, resume=True)
    whole = catalogue["mf"](**how).fit(world.log)
    np.testing.assert_array_equal(resumed.predict([0, 5], [3, 7]), whole.predict([0, 5], [3, 7]))


# What is predicted


def test_stars_may_lie_outside_of_the_scale_and_are_clipped_only_if_that_is_asked_for(world):
    method = fitted("mf", world, penalty_factors=0.5, penalty_constants=0.1, validation=0)
    users, items = (side.ravel() for side in np.meshgrid(np.arange(80), np.arange(60), indexing="ij"))
    plain, inside = method.predict(users, items), method.predict(users, items, clip=True)
    assert plain.max() > 5
    np.testing.assert_array_equal(inside, np.clip(plain, 1, 5))


def test_a_distribution_adds_up_to_one_and_its_mean_is_the_prediction(world):
    method = fitted("mf", world, "ordinal")
    chances = method.predict_distribution([0, 1, 2], [5, 6, 7])
    assert chances.shape == (3, 5)
    assert (chances > 0).all()
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_allclose(chances @ STARS, method.predict([0, 1, 2], [5, 6, 7]))


@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_recommended_are_the_items_of_most_predicted_stars(head, world):
    method = fitted("mf", world, head)
    found = method.recommend([3], k=5)
    stars = method.predict(np.full(60, 3), np.arange(60))
    np.testing.assert_array_equal(found.positions[0], np.argsort(-stars, kind="stable")[:5])
    np.testing.assert_allclose(found.scores[0], np.sort(stars)[::-1][:5], rtol=1e-5)
    assert list(found.to_frame().columns) == ["user", "rank", "item", "stars"]
    check_refusal(lambda: found.probabilities, ParameterError, "recommends by stars, not probabilities")


@pytest.mark.parametrize("name", ["mf", "ome"])
@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_a_saved_model_of_levels_predicts_the_same(name, head, world, tmp_path):
    method = fitted(name, world, head)
    loaded = vr.load(method.save(tmp_path / "model"))
    assert loaded.head == method.recommender_.head
    np.testing.assert_array_equal(loaded.predict([0, 1], [5, 6]), method.predict([0, 1], [5, 6]))
    if name == "ome":
        np.testing.assert_array_equal(loaded.noise_rates.matrix, world.noise.matrix)


@pytest.mark.parametrize("name", ["mf", "ome"])
@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_users_who_are_folded_in_get_what_training_gave_them(name, head, world):
    options = {"validation": 0, "refit": False, "epochs": 400, "penalty_factors": 6.0, "penalty_constants": 4.0}
    method = fitted(name, world, head, dim=2, learning_rate=0.02, **options)
    again = method.fold_in(world.log)
    users, items = np.arange(60), np.arange(60)
    np.testing.assert_allclose(again.predict(users, items), method.predict(users, items), atol=0.06)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
@pytest.mark.parametrize("head", ["stars", "ordinal"])
def test_a_model_of_levels_is_judged_as_it_is(head, world):
    survey = vr.SurveySample(*world.survey(300, random_state=1), levels=STARS)
    rec, other = (fitted(name, world, head).recommender_ for name in ("mf", "dr"))
    block = np.arange(80), np.arange(60)
    stars = rec.predict(np.repeat(block[0], 60), np.tile(block[1], 80)).reshape(80, 60)
    options = {"propensities": world.propensities, "noise_rates": world.noise, "survey": survey, "loss": "rmse"}
    one, two = (vr.estimate(given, world.log, **options) for given in (rec, stars))
    assert one["survey-ppi"].value == pytest.approx(two["survey-ppi"].value, rel=1e-4)
    assert one["ome-dr"].value == pytest.approx(two["ome-dr"].value, rel=1e-4)
    assert np.isfinite(vr.compare(rec, other, world.log, survey=survey, loss="rmse")["survey-ppi"].value)
    assert world.true_inaccuracy(rec) == pytest.approx(((stars - world.true_values) ** 2).mean(), rel=1e-4)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
def test_chances_of_levels_are_judged_by_their_logs(world):
    rec = fitted("mf", world, "ordinal").recommender_
    users, items = np.repeat(np.arange(80), 60), np.tile(np.arange(60), 80)
    dense = rec.predict_distribution(users, items).reshape(80, 60, 5)
    for loss in ("log", "rps"):
        one, two = (
            vr.estimate(given, world.log, propensities=world.propensities, loss=loss)["dr"].value
            for given in (rec, dense)
        )
        assert one == pytest.approx(two, rel=1e-6)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
def test_another_logs_grid_is_predicted_by_id(world):
    method = fitted("mf", world, "ordinal")
    part = world.log.select(world.log.users < 40)
    assert vr.metrics.evaluate(method.predictions_for(part), part)["rmse"] < part.label_values.std()


# What is refused


@pytest.mark.parametrize("name", ONLY_BINARY)
def test_a_method_of_binary_labels_says_so_and_what_would_do(name, world):
    told = rf"^{name} is trained on 0/1 labels; the log has levels 1, 2, 3, 4, 5: take log.binary\(.*mf, ome, "
    check_refusal(lambda: catalogue[name]().fit(world.log), LabelError, told)


def test_the_page_names_the_methods_that_take_levels():
    page = Path(__file__).parents[2] / "docs" / "stars.md"
    named = page.read_text().split(" take levels, and so does")[0].rsplit("\n\n", 1)[1]
    able = [name for name in catalogue if name not in ("auto", *ONLY_BINARY)]
    assert sorted(re.findall("`([a-z-]+)`", named)) == sorted(able)


NOT_ONE = [[0.9, 0.2, 0, 0, 0], *np.eye(5)[1:].tolist()]
NEARLY = (0.2 + 1e-7 * (np.eye(5) - 0.2)).tolist()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda log: catalogue["mf"](head="binary").fit(log),
            ParameterError,
            "head='binary' needs 0/1 labels; the log",
        ),
        (lambda log: catalogue["mf"](head="rank").fit(log), ParameterError, "head must be one of"),
        (
            lambda log: catalogue["mf"](head="stars").fit(log.binary(positive_from=4)),
            ParameterError,
            "head='stars' needs a log that keeps its levels",
        ),
        (
            lambda log: catalogue["ome"]().fit(log),
            ParameterError,
            "^ome corrects for noise between levels, .* an audit$",
        ),
        (
            lambda log: catalogue["ome"]().fit(log, noise_rates=vr.NoiseRates(0.1, 0.1)),
            ParameterError,
            "noise_rates of a log of 5 levels must be a TransitionMatrix or a TransitionRegion; got NoiseRates",
        ),
        (
            lambda log: catalogue["ome"]().fit(log, noise_rates=vr.TransitionMatrix.band(4, 0.2)),
            ParameterError,
            "must have a row for each of the log's 5 levels; got 4",
        ),
        (
            lambda log: catalogue["ome"]().fit(log, noise_rates=vr.TransitionMatrix(NOT_ONE)),
            NoiseRateError,
            "row 0 adds up to 1.1",
        ),
        (
            lambda log: catalogue["ome"]().fit(log, noise_rates=vr.TransitionMatrix(NEARLY)),
            NoiseRateError,
            "condition number of 1e\\+07",
        ),
        (
            lambda log: catalogue["ome-ips"]().fit(
                log, noise_rates=BAND, propensities=vr.LevelPropensity([0.1, 0.2, 0.2, 0.3, 0.3])
            ),
            ParameterError,
            "ome-ips corrects labels and not their weights: LevelPropensity",
        ),
        (
            lambda log: catalogue["ome"]().fit(log, noise_rates=vr.TransitionRegion((BAND,), "band", 0.3)),
            ParameterError,
            "training needs one TransitionMatrix",
        ),
        (
            lambda log: catalogue["ome"](correction="forward").fit(log, noise_rates=BAND),
            ParameterError,
            'correction="forward" is of chances: for head="ordinal"',
        ),
        (
            lambda log: catalogue["ome-dr"](head="ordinal").fit(log, noise_rates=BAND),
            ParameterError,
            'correction="surrogate" is of 0/1 labels and of head="stars": take correction="forward"',
        ),
        (
            lambda log: catalogue["mf"](solver="sweep", head="ordinal").fit(log),
            ParameterError,
            'sweeps are for loss="log", or head="stars"',
        ),
        (
            lambda log: catalogue["mf"]().fit(log, engine="processes"),
            ParameterError,
            "many workers train by sweeps: stars are for one machine",
        ),
        (
            lambda log: vr.FeedbackLog.from_arrays([0], [0], [6], n_users=1, n_items=1, levels=STARS),
            LabelError,
            "must be one of the levels 1, 2, 3, 4, 5; 1 of 1 rows",
        ),
        (
            lambda log: catalogue["mf"](epochs=2).fit(log).predict_distribution([0], [0]),
            ParameterError,
            "needs a model of head='ordinal'; this one has 'stars'",
        ),
        (
            lambda log: catalogue["mf"](epochs=2).fit(log).fold_in(log.binary(positive_from=4)),
            LabelError,
            "the ratings must have labels on the log's scale, levels 1, 2, 3, 4, 5",
        ),
        (
            lambda log: catalogue["mf"](epochs=2).fit(
                log, survey=vr.SurveySample([0, 1], [0, 1], [1, 5], levels=STARS)
            ),
            LabelError,
            "binary labels are needed here",
        ),
        (
            lambda log: catalogue["mf"](epochs=2).fit(log).calibrated(vr.SurveySample([0, 1], [0, 1], [0, 1])),
            ParameterError,
            "level and slope are put right of 0/1 labels; this model has head='stars'",
        ),
    ],
)
def test_what_training_on_levels_cannot_use_is_refused_in_one_line(call, error, told, world):
    check_refusal(lambda: call(world.log), error, told)
