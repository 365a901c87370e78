"""What every method of the catalogue must do."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from method_worlds import (
    EVERY,
    PAPER,
    SOME,
    SWEEPING,
    WITH_IMPUTATION,
    WITH_PROPENSITIES,
    Interrupted,
    Pieces,
    featured_log,
    fit,
    fitted,
    matrix,
    method_of,
    small_world,
    stop_after,
)
from method_worlds import validate_often as validate_often
from sklearn.base import clone
from torch import nn

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ModelFileError, NotFittedError, ParameterError, TrainingError
from verirec.methods import Recommender, catalogue
from verirec.training import checkpoints
from verirec.training.checkpoints import FORMAT, read_tensors, write_tensors
from verirec.training.objective import PseudoLabels
from verirec.training.trainer import Trainer

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


OWN = {
    "t-mf": {"drop_most": 0.2},
    "r-mf": {"beta": 0.3, "detach": False},
    "lcd-mf": {"most": 0.4, "warm_up": 3},
    "cvib": {"alpha": 0.3},
    "damf": {"adversary_steps": 2},
    "dib": {"gamma": 0.4},
    "dr-mse": {"bias_share": 0.25},
    "mr": {"by_popularity": False},
    "sdr": {"balance_weight": 2.0},
    "ome-dr": {"anchors": "batch", "correction": "forward"},
}
"""Parameters that only some methods have."""


LOGISTIC = vr.LogisticPropensity().fit(featured_log())


class TwoTowers(nn.Module):
    """A user's own module, of one logit a pair."""

    def __init__(self, n_users, n_items, dim=4):
        super().__init__()
        random = torch.Generator().manual_seed(3)
        self.users = nn.Parameter(0.3 * torch.randn(n_users, dim, generator=random))
        self.items = nn.Parameter(0.3 * torch.randn(n_items, dim, generator=random))

    def forward(self, users, items):
        return (self.users[users] * self.items[items]).sum(1)


def test_the_catalogue_has_the_methods_of_the_papers_table():
    """And more: a method is added by one file and one line."""
    assert set(PAPER) < set(EVERY)
    assert all(catalogue[name].name == name and catalogue[name].paper and catalogue[name].summary for name in EVERY)
    assert len({catalogue[name].summary for name in EVERY}) == len(EVERY)


# The shape of the classes


def ours(method):
    return [one for one in type(method).__mro__ if one.__module__.startswith("verirec.")]


@pytest.mark.parametrize("name", EVERY)
def test_a_method_is_no_tower_of_classes(name):
    method = catalogue[name]()
    assert len(ours(method)) <= 5
    parameters = set(method.get_params())
    facts = {one for kind in ours(method) for one in vars(kind).get("__annotations__", {})}
    public = {one for one in dir(type(method)) if not one.startswith("_")} - parameters - facts
    assert len(public) <= 30, sorted(public)


@pytest.mark.parametrize("name", EVERY)
def test_what_a_class_says_of_sweeps_and_corrections_is_so(name):
    made = Pieces(name, small_world().log, fit={"propensities": small_world().propensities})
    method, swept = catalogue[name], type(made.objective) is PseudoLabels
    assert method.sweeps == swept
    # The loss of pseudo-labels is linear in the labels. So may others' be, which are not corrected yet. Clicks alone
    # have no labels to correct.
    assert method.takes_correction or method.takes_clicks or not swept
    assert method.takes_correction or method().correction == "none"
    assert method.needs_grid or len(next(made.data.batches(0)).grid_users) == 0


def test_pseudo_labels_are_final():
    """Else a subclass's own loss could be swept past."""
    assert PseudoLabels.__final__
    assert PseudoLabels.__subclasses__() == []


# Parameters


@pytest.mark.parametrize("name", EVERY)
def test_parameters_go_round(name):
    changed = {"dim": 5, "penalty_factors": 0.7, "random_state": 3, **OWN.get(name, {})}
    method = catalogue[name](**changed)
    parameters = method.get_params()
    assert parameters.items() >= changed.items()
    assert type(method)(**parameters).get_params() == parameters
    assert catalogue[name]().set_params(**parameters).get_params() == parameters
    copied = clone(method)
    assert type(copied) is type(method)
    assert copied is not method
    assert copied.get_params() == parameters
    assert eval(repr(method), {type(method).__name__: type(method)}).get_params() == parameters
    assert repr(catalogue[name]()) == f"{type(method).__name__}()"


def test_a_copy_of_a_trained_method_is_not_trained():
    copied = clone(fitted("ome-dr"))
    assert copied.get_params() == fitted("ome-dr").get_params()
    assert not hasattr(copied, "recommender_")
    check_refusal(lambda: copied.report_, NotFittedError, "is not trained yet")


def test_an_unknown_parameter_is_refused():
    check_refusal(lambda: catalogue["sdr"]().set_params(depth=3), ParameterError, "has no parameter 'depth'; it has")


def test_a_method_with_a_module_of_ones_own_can_be_copied_and_shown():
    method = catalogue["dr-jl"](model=TwoTowers(3, 4), imputation_model=TwoTowers)
    assert "TwoTowers" in repr(method)
    copied = clone(method)
    assert copied.model is not method.model
    assert isinstance(copied.model, TwoTowers)


def test_a_method_with_h_as_a_matrix_can_be_shown():
    assert "h=" in repr(catalogue["ome-dr"](h=np.full((3, 4), 0.5)))


# Training


@pytest.mark.parametrize("name", SOME)
def test_another_seed_gives_other_predictions_and_training_again_with_the_same_one_the_same(name):
    method = fit(name, random_state=1)
    assert np.abs(matrix(method) - matrix(fitted(name))).max() > 1e-3
    before = method.get_params()
    method.set_params(random_state=0).fit(small_world().log, propensities=small_world().propensities)
    np.testing.assert_array_equal(matrix(method), matrix(fitted(name)))
    assert before | {"random_state": 0} == method.get_params()


@pytest.mark.parametrize("name", SOME)
def test_it_tells_how_training_went(name):
    method = fitted(name)
    assert method.report_.stopped_because == "all 4 epochs"
    assert len(method.report_.history) == 4
    for entry in method.report_.history:
        assert "loss" in entry
        assert all(isinstance(value, float) and math.isfinite(value) for value in entry.values())
    entries = enumerate(method.report_.history, 1)
    found = {epoch: entry["validation_error"] for epoch, entry in entries if "validation_error" in entry}
    assert list(found) == [2, 4]
    assert method.report_.validation_error == min(found.values()) == found[method.report_.best_epoch]
    assert method.report_.method == method.name
    assert method.report_.parameters == method.savable_parameters
    assert method.report_.solver == ("sweep" if name in SWEEPING else "gradient")


@pytest.mark.parametrize("name", dict.fromkeys((*EVERY, *SOME)))
def test_everything_that_is_to_be_learnt_moves(name, monkeypatch):
    start = {}

    def remember(self):
        for one, learner in self.models.by_name.items():
            start[one] = {key: value.clone() for key, value in learner.model.state_dict().items()}
        return run(self)

    run = Trainer.run
    monkeypatch.setattr(Trainer, "run", remember)
    method = fit(name)
    assert set(start) == set(method.models_) == {"prediction", *method.extra_models()}
    for one, before in start.items():
        after = method.models_[one].state_dict()
        for key, value in before.items():
            assert not torch.equal(value, after[key]), (one, key)
            assert torch.isfinite(after[key]).all()


@pytest.mark.parametrize("name", SOME)
def test_the_best_state_is_kept(name):
    """Training with a step so large that it gets worse again gives what stopping at the best gives.

    Sweeps get worse again where penalties are too small; with corrected labels they may not be as small as that.
    """
    options = {"learning_rate": 0.3, "penalty_factors": 2.0 if name in ("ome", "ome-ips") else 0.01}
    if hasattr(catalogue[name.partition(" by ")[0]], "imputation_penalty"):
        options["imputation_penalty"] = 3.0
    long = fit(name, epochs=8, **options)
    assert long.report_.best_epoch < 8
    short = fit(name, epochs=long.report_.best_epoch, **options)
    np.testing.assert_array_equal(matrix(long), matrix(short))
    assert short.report_.validation_error == long.report_.validation_error


def test_it_stops_when_patience_is_over():
    method = fit("mf", learning_rate=0.1, epochs=200, penalty_factors=0.01, patience=2, solver="gradient")
    found = [entry["validation_error"] for entry in method.report_.history if "validation_error" in entry]
    assert method.report_.stopped_because == "no better validation error for 2 validations"
    assert found.index(min(found)) == len(found) - 3
    assert method.report_.best_epoch == len(method.report_.history) - 4


@pytest.mark.parametrize("name", SOME)
def test_without_held_out_rows_the_last_state_is_kept(name):
    method = fit(name, validation=0, penalty_factors=200.0)
    assert math.isnan(method.report_.validation_error)
    assert method.report_.best_epoch == 4
    assert np.isfinite(matrix(method)).all()


@pytest.mark.filterwarnings("ignore::verirec.exceptions.TrainedRowsWarning")
@pytest.mark.parametrize("name", SOME)
def test_predictions_are_probabilities_of_all_pairs_that_can_be_estimated(name):
    method, world = fitted(name), small_world()
    found = matrix(method)
    assert found.shape == (30, 40)
    assert ((found > 0) & (found < 1)).all()
    assert found.std() > 1e-4
    result = vr.estimate(method.predictions, world.log, propensities=world.propensities)
    by_matrix = vr.estimate(found, world.log, propensities=world.propensities)
    assert all(result[each].value == pytest.approx(by_matrix[each].value, rel=1e-6) for each in result)


@pytest.mark.parametrize("name", SOME)
def test_nothing_of_the_log_nor_any_global_state_changes(name):
    log = vr.simulate.world(12, 15, observed=0.5, random_state=1).log
    before = [column.copy() for column in (log.users, log.items, log.labels)]
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    threads, fingerprint = torch.get_num_threads(), log.fingerprint
    fit(name, log, epochs=2)
    for old, new in zip(before, (log.users, log.items, log.labels), strict=True):
        np.testing.assert_array_equal(old, new)
    assert log.fingerprint == fingerprint
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


# Kinds of models and losses


@pytest.mark.parametrize("name", [name for name in SOME if " by " not in name])
def test_it_trains_by_squared_error(name):
    method = fit(name, loss="squared")
    assert np.isfinite(matrix(method)).all()
    assert np.abs(matrix(method) - matrix(fitted(name))).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for kind in ("constants", "ncf", "features")
        for name in SOME
        if kind != "ncf" or not name.endswith("by gradient")
    ],
)
def test_it_trains_every_kind_of_model(name, kind, tmp_path):
    log = featured_log()
    method = fit(name, log, model=kind, epochs=1, fit={"propensities": LOGISTIC})
    found = matrix(method)
    assert ((found > 0) & (found < 1)).all()
    again = vr.methods.load(method.save(tmp_path / "saved"))
    np.testing.assert_array_equal(matrix(again), found)


@pytest.mark.parametrize("name", SOME)
def test_it_trains_without_constants(name):
    method = fit(name, constants=False, epochs=2)
    assert not any("constant" in key for key in method.recommender_.model.state_dict())
    assert np.isfinite(matrix(method)).all()


@pytest.mark.parametrize(
    ("name", "form"), [*((name, "module") for name in SOME if " by " not in name), ("mf", "function")]
)
def test_it_trains_a_module_of_ones_own(name, form, tmp_path):
    own = TwoTowers(30, 40)
    before = {key: value.clone() for key, value in own.state_dict().items()}
    method = fit(name, model=own if form == "module" else TwoTowers, epochs=2, penalty_factors=0.001)
    assert all(torch.equal(value, before[key]) for key, value in own.state_dict().items())
    with torch.no_grad():
        users, items = torch.arange(30).repeat_interleave(40), torch.arange(40).repeat(30)
        expected = torch.sigmoid(method.recommender_.model.module(users, items)).view(30, 40).numpy()
    np.testing.assert_allclose(matrix(method), expected, rtol=1e-5)
    assert np.abs(matrix(method) - torch.sigmoid(own(users, items)).view(30, 40).detach().numpy()).max() > 1e-3
    check_refusal(lambda: method.save(tmp_path / "saved"), ParameterError, "cannot be saved by verirec")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("kind", ["constants", "ncf", TwoTowers, "module"])
@pytest.mark.parametrize("name", ["dr-jl", "sdr", "tdr"])
def test_imputations_can_be_of_another_kind(name, kind):
    kind = TwoTowers(30, 40) if kind == "module" else kind
    method = fit(name, imputation_model=kind, epochs=2)
    wanted = {"constants": "FactorModel", "ncf": "NeuralModel"}.get(
        kind if isinstance(kind, str) else "", "CustomModel"
    )
    assert type(method.models_["imputation"]).__name__ == wanted
    assert type(method.recommender_.model).__name__ == "FactorModel"
    assert np.isfinite(matrix(method)).all()


@pytest.mark.parametrize("kind", ["mf", "ncf", TwoTowers, "module"])
@pytest.mark.parametrize("name", ["sdr", "ips-v2", "dr-v2"])
def test_propensities_can_be_of_another_kind(name, kind):
    kind = TwoTowers(30, 40) if kind == "module" else kind
    method = fit(name, propensity_model=kind, epochs=2)
    wanted = {"mf": "FactorModel", "ncf": "NeuralModel"}.get(str(kind), "CustomModel")
    assert type(method.models_["propensity"]).__name__ == wanted
    assert np.isfinite(matrix(method)).all()


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *((name, "imputation_model") for name in WITH_IMPUTATION),
        *((name, "propensity_model") for name in WITH_PROPENSITIES),
    ],
)
def test_the_other_models_can_have_features_alone(name, parameter):
    fit(name, featured_log(), epochs=1, **{parameter: "features"})


def starting_propensities(name, **options):
    """Estimated propensities before any training, and the rows that they are of."""
    made = Pieces(name, small_world().log, spread=0.0, **options)
    return made.probabilities("propensity"), made.data


@pytest.mark.parametrize("name", WITH_PROPENSITIES)
def test_learnt_propensities_start_from_those_given(name):
    given = vr.LogisticPropensity().fit(small_world().log)
    found, _ = starting_propensities(name, validation=0, penalty_factors=200.0, fit={"propensities": given})
    expected = given.block(np.arange(30), np.arange(40))
    np.testing.assert_allclose(np.maximum(found, given.floor), expected, rtol=1e-4)


@pytest.mark.parametrize("name", WITH_PROPENSITIES)
def test_learnt_propensities_start_from_those_of_the_rows_that_are_trained_on(name):
    found, data = starting_propensities(name, validation=0.5, fit={"propensities": vr.LogisticPropensity()})
    # Exact for rare pairs only; the whole log's would be twice as much.
    assert found.mean() == pytest.approx(data.density, rel=0.35)


# Saving


@pytest.mark.parametrize("name", SOME)
def test_what_was_saved_predicts_the_same(name, tmp_path):
    method = fitted(name)
    again = vr.methods.load(method.save(tmp_path / "model"))
    assert isinstance(again, Recommender)
    np.testing.assert_array_equal(matrix(again), matrix(method))
    np.testing.assert_array_equal(again.recommend([3, 1], k=5).items, method.recommend([3, 1], k=5).items)
    assert again.report == method.report_
    assert catalogue[again.report.method](**again.report.parameters).get_params() == method.get_params()
    assert again.noise_rates == method.noise_rates_
    for mask in ("cold_users", "cold_items"):
        np.testing.assert_array_equal(getattr(again, mask), getattr(method.recommender_, mask))
    assert (again.user_ids, again.item_ids) == (method.recommender_.user_ids, method.recommender_.item_ids)


def test_what_was_saved_can_be_saved_again(tmp_path):
    first = fitted("ome-dr").save(tmp_path / "first")
    second = vr.load(first).save(tmp_path / "second")
    for name in ("model.json", "model.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_what_was_trained_without_held_out_rows_is_saved(tmp_path):
    method = fit("mf", epochs=1, validation=0)
    again = vr.load(method.save(tmp_path / "model"))
    assert math.isnan(again.report.validation_error)
    assert again.report.validation_estimator is None


def test_rates_of_groups_are_saved(tmp_path):
    rates = vr.GroupedNoiseRates((vr.NoiseRates(0.1, 0.05), vr.NoiseRates(0.3, 0.2)), user_groups=np.arange(30) % 2)
    method = fit("ome", epochs=1, fit={"noise_rates": rates})
    again = vr.methods.load(method.save(tmp_path / "model")).noise_rates
    assert again.rates == rates.rates
    np.testing.assert_array_equal(again.user_groups, rates.user_groups)
    assert again.item_groups is None


@pytest.fixture
def saved(tmp_path):
    return fitted("mf").save(tmp_path / "model")


def no_json(folder):
    (folder / "model.json").unlink()


def other_json(folder):
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | {"best_epoch": 77}, indent=1))


def broken_json(folder):
    (folder / "model.json").write_text("{")


def no_tensors(folder):
    (folder / "model.safetensors").unlink()


def other_tensors(folder):
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(content))


def cut_tensors(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def foreign_tensors(folder):
    from safetensors.torch import save

    (folder / "model.safetensors").write_bytes(save({"a": torch.ones(2)}))


def other_format(difference):
    def rewrite(folder):
        tensors, facts = read_tensors(folder / "model.safetensors")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoints, "FORMAT", FORMAT + difference)
            write_tensors(folder / "model.safetensors", tensors, facts)

    return rewrite


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (no_json, "is no model folder: it has no model.json"),
        (other_json, "model.json: its contents were changed after it was written"),
        (broken_json, "model.json: its contents were changed"),
        (no_tensors, "model.safetensors: there is no such file"),
        (other_tensors, "model.safetensors: its contents were changed"),
        (cut_tensors, "model.safetensors: not a file of verirec's, or a damaged one"),
        (foreign_tensors, "model.safetensors: not a file of verirec's"),
        (other_format(1), f"written by a newer verirec .format {FORMAT + 1}; this one reads {FORMAT}"),
        (other_format(-1), f"written by an older verirec .format {FORMAT - 1}; this one reads {FORMAT}"),
    ],
)
def test_a_damaged_model_is_refused(saved, damage, message):
    damage(saved)
    check_refusal(lambda: vr.methods.load(saved), ModelFileError, message)


def test_a_folder_that_is_not_there_is_no_model(tmp_path):
    check_refusal(lambda: vr.methods.load(tmp_path / "nowhere"), ModelFileError, "is no model folder")


def test_the_tensors_of_a_checkpoint_are_no_model(saved, tmp_path):
    fit("mf", fit={"checkpoint": tmp_path / "run"})
    tensors, facts = read_tensors(tmp_path / "run")
    write_tensors(saved / "model.safetensors", tensors, facts | {"facts": (saved / "model.json").read_text()})
    check_refusal(lambda: vr.methods.load(saved), ModelFileError, "not a model")


# Going on from a checkpoint


@pytest.mark.parametrize("name", SOME)
def test_going_on_from_a_checkpoint_is_as_if_nothing_had_happened(name, tmp_path):
    file = tmp_path / "run"
    # With larger penalties some would have converged before the fifth sweep.
    options = {"epochs": 5, "penalty_factors": 2.0}
    method = method_of(name, **options)
    given = {"propensities": small_world().propensities, "checkpoint": file}
    with pytest.raises(Interrupted):
        method.fit(small_world().log, progress=stop_after(3), **given)
    seen = []
    method.fit(small_world().log, resume=True, progress=lambda *at: seen.append(at[0]), **given)
    assert seen in ([3, 4, 5], [4, 5])  # as often as it was validated
    whole = fit(name, **options)
    np.testing.assert_array_equal(matrix(method), matrix(whole))
    assert method.report_.history == whole.report_.history
    assert method.report_.best_epoch == whole.report_.best_epoch
    assert method.report_.validation_error == whole.report_.validation_error
    for other, model in whole.models_.items():
        for key, value in model.state_dict().items():
            assert torch.equal(value, method.models_[other].state_dict()[key])


@pytest.mark.parametrize(
    ("anchors", "model", "solver"),
    [
        ("batch", "ncf", "gradient"),
        ("epoch", "features", "gradient"),
        ("fixed", "features", "gradient"),
        ("epoch", "features", "sweep"),
        ("batch", "features", "sweep"),
    ],
)
def test_going_on_works_for_other_models_and_learnt_rates(anchors, model, solver, tmp_path):
    log, options = featured_log(), {"anchors": anchors, "model": model, "epochs": 5, "solver": solver}
    propensities = vr.LogisticPropensity(features=False, floor=log.density / 3).fit(log)
    with pytest.raises(Interrupted):
        fit("ome-dr", log, fit={"checkpoint": tmp_path / "a", "progress": stop_after(3)}, **options)
    given = {"checkpoint": tmp_path / "a", "resume": True, "propensities": propensities}
    again = fit("ome-dr", log, fit=given, **options)
    whole = fit("ome-dr", log, **options)
    np.testing.assert_array_equal(matrix(again), matrix(whole))
    assert again.noise_rates_ == whole.noise_rates_
    assert again.report_.history == whole.report_.history


def test_going_on_from_a_finished_run_changes_nothing(tmp_path):
    given = {"checkpoint": tmp_path / "run", "propensities": small_world().propensities}
    first = fit("mf", small_world().log, fit=given)
    again = fit("mf", small_world().log, fit=given | {"resume": True})
    assert len(again.report_.history) == len(first.report_.history) == 4
    np.testing.assert_array_equal(matrix(again), matrix(first))


@pytest.mark.parametrize("solver", ["gradient", "sweep"])
def test_going_on_from_a_run_that_was_stopped_changes_nothing(solver, tmp_path):
    given = {"checkpoint": tmp_path / "run", "propensities": small_world().propensities}
    options = {"learning_rate": 0.1, "epochs": 200, "penalty_factors": 0.01, "patience": 2, "solver": solver}
    first = fit("mf", small_world().log, fit=given, **options)
    again = fit("mf", small_world().log, fit=given | {"resume": True}, **options)
    assert again.report_.history == first.report_.history
    assert again.report_.stopped_because == first.report_.stopped_because
    np.testing.assert_array_equal(matrix(again), matrix(first))


def test_without_a_checkpoint_to_go_on_from_training_starts(tmp_path):
    given = {"checkpoint": tmp_path / "run", "resume": True, "propensities": small_world().propensities}
    np.testing.assert_array_equal(matrix(fit("mf", small_world().log, fit=given)), matrix(fitted("mf")))


def test_without_resume_a_checkpoint_is_written_over(tmp_path):
    given = {"checkpoint": tmp_path / "run", "propensities": small_world().propensities}
    fit("mf", small_world().log, fit=given, random_state=9)
    np.testing.assert_array_equal(matrix(fit("mf", small_world().log, fit=given)), matrix(fitted("mf")))


@pytest.mark.parametrize(
    ("name", "parameters", "given"),
    [
        ("ips", {}, {}),
        ("mf", {"dim": 4}, {}),
        ("mf", {"random_state": 1}, {}),
        ("mf", {"epochs": 9}, {}),
        ("mf", {}, {"noise_rates": vr.NoiseRates(0.1, 0.1)}),
        ("mf", {}, {"propensities": np.full((30, 40), 0.3)}),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(name, parameters, given, tmp_path):
    kept = {"checkpoint": tmp_path / "run", "propensities": small_world().propensities}
    fit("mf", small_world().log, fit=kept)
    call = lambda: fit(name, small_world().log, fit=kept | {"resume": True} | given, **parameters)  # noqa: E731
    check_refusal(call, TrainingError, "is of another run")


def test_a_checkpoint_of_another_log_is_refused(tmp_path):
    kept = {"checkpoint": tmp_path / "run", "propensities": np.full((30, 40), 0.3)}
    fit("mf", small_world().log, fit=kept)
    call = lambda: fit("mf", small_world(1).log, fit=kept | {"resume": True})  # noqa: E731
    check_refusal(call, TrainingError, "is of another run")


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("mf", {"model": TwoTowers(30, 40, 4)}, {"model": TwoTowers(30, 40, 5)}),
        (
            "ome",
            {"h": np.linspace(0.1, 0.9, 1200).reshape(30, 40)},
            {"h": np.linspace(0.9, 0.1, 1200).reshape(30, 40)},
        ),
    ],
)
def test_a_checkpoint_with_another_object_of_ones_own_is_refused(name, first, second, tmp_path):
    kept = {"checkpoint": tmp_path / "run", "propensities": small_world().propensities}
    with pytest.raises(Interrupted):
        fit(name, small_world().log, fit=kept | {"progress": stop_after(2)}, **first)
    call = lambda: fit(name, small_world().log, fit=kept | {"resume": True}, **second)  # noqa: E731
    check_refusal(call, TrainingError, "is of another run")


def test_progress_hears_of_every_epoch():
    heard = []
    fit("mf", fit={"progress": lambda *at: heard.append(at)})
    assert [at[:2] for at in heard] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [math.isnan(at[2]) for at in heard] == [True, False, True, False]


def test_an_interrupted_method_is_what_it_was():
    method = fit("mr", epochs=1)
    before, kept = matrix(method), dict(vars(method))
    other = vr.simulate.world(12, 15, observed=0.5, random_state=1).log
    with pytest.raises(Interrupted):
        method.fit(other, progress=stop_after(1))
    check_refusal(lambda: method.set_params(epochs=0).fit(other), ParameterError, "epochs must be")
    method.set_params(epochs=1)
    np.testing.assert_array_equal(matrix(method), before)
    assert vars(method) == kept
    assert method.recommender_ is kept["recommender_"]
    assert method.models_ is kept["models_"]
    method.set_params(by_popularity=False).fit(small_world().log)
    assert set(method.models_) == {"prediction", "imputation"}


def test_an_interrupted_method_is_not_fitted():
    method = method_of("mf")
    with pytest.raises(Interrupted):
        method.fit(small_world().log, progress=stop_after(1))
    assert not hasattr(method, "recommender_")
    assert not hasattr(method, "models_")
