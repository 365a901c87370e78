"""Keys of jobs: the same for the same, another for anything else, and a refusal of what cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.special

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import NotFittedError, ParameterError
from verirec.resuming import identity
from verirec.resuming.identity import job_key

key = partial(job_key, "job")


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(40, 30, observed=0.3, random_state=0)


def factors(**changed):
    random = np.random.default_rng(0)
    given = {"user_factors": random.normal(size=(40, 3)), "item_factors": random.normal(size=(30, 3))}
    return vr.Factors(**given | changed)


KINDS = {
    "numbers": lambda: (1, 1.5, None, "a", b"a", True, [2], {"b": np.float32(2)}),
    "arrays": lambda: (np.arange(4), np.arange(4.0)[::2], np.asfortranarray(np.ones((2, 3))), np.array(["a", None])),
    "factors": factors,
    "frame": lambda: pd.DataFrame({"user": ["a", "b"], "item": [1, 2], "score": [0.5, 0.25]}),
    "model": lambda: vr.LogisticPropensity(l2=0.1),
    "audit": lambda: vr.AuditSample([0, 1], [3, 3], [1, 0]),
    "rates": lambda: vr.NoiseRates(0.2, 0.1),
    "range": lambda: vr.SelectionRange(0, 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_has_the_same_key_whatever_objects_it_is_made_of(kind):
    assert key({"a": KINDS[kind]()}) == key({"a": KINDS[kind]()})


def test_all_that_differs_has_a_key_of_its_own(world):
    log = world.log
    other = log.labels.copy()
    other[-1] = 1 - other[-1]
    values = [kind() for kind in KINDS.values()]
    values += [factors(constant=1e-16), factors(user_factors=factors().user_factors.astype("f4")), factors(link=None)]
    values += [0, 0.0, -0.0, "0", None, False, [], (), [[]], [0], "", ["ab"], ["a", "b"], np.zeros(1), np.zeros((1, 1))]
    values += [log, log.with_labels(other), log.select(np.arange(len(log) - 1)), vr.LogisticPropensity(l2=0.2)]
    values += [vr.FeedbackLog(log.users, log.items, log.labels, 41, 30), pd.DataFrame({"user": ["a"]})]
    values += [vr.LogisticPropensity().fit(log), vr.PopularityPropensity().fit(log), vr.NoiseRates(0.2, 0.1 + 1e-16)]
    keys = [key({"a": value}) for value in values]
    assert len(set(keys)) == len(keys)
    assert key({"a": 0}) != key({"b": 0}) != job_key("other", {"a": 0})


def test_what_an_object_has_worked_out_is_no_part_of_it(world):
    one, two = (vr.LogisticPropensity().fit(world.log) for _ in range(2))
    assert one.inverse_total > 0
    assert key({"a": one}) == key({"a": two})


def test_a_prepared_log_is_told_by_what_is_in_it(tmp_path, world):
    file = tmp_path / "log.parquet"
    world.log.to_frame().to_parquet(file)
    found = [key({"log": vr.scan_log(vr.prepare_log(file, tmp_path / name))}) for name in ("one", "two")]
    assert found[0] == found[1]
    world.log.select(np.arange(9)).to_frame().to_parquet(file)
    assert key({"log": vr.scan_log(vr.prepare_log(file, tmp_path / "three"))}) != found[0]


@pytest.mark.parametrize("model", ["mf", "ncf", "features"])
def test_trained_models_are_told_by_what_they_learnt(model, tmp_path):
    random = np.random.default_rng(0)
    log = vr.simulate.world(20, 15, observed=0.5, random_state=0).log
    log = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=20, n_items=15,
        user_features=random.normal(size=(20, 2)), item_features=random.normal(size=(15, 2)),
    )  # fmt: skip
    found = []
    for seed in (0, 0, 1):
        fitted = vr.methods.MF(model=model, dim=2, epochs=2, solver="gradient", random_state=seed).fit(log)
        fitted.recommender_.save(tmp_path / f"{len(found)}")
        found.append(key({"a": vr.methods.load(tmp_path / f"{len(found)}").predictions_for(log)}))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    "method",
    [
        vr.methods.MF(dim=2, epochs=2),
        vr.methods.MF(model="ncf", dim=2, epochs=2),
        vr.methods.Auto(trials=2, folds=2),
    ],
    ids=repr,
)
def test_fitted_methods_are_told_by_what_they_learnt(method, world):
    def fitted(first):
        return type(method)(**method.get_params()).fit(world.log.select(np.arange(first, len(world.log), 2)))

    one = fitted(0)
    assert key({"a": one}) == key({"a": fitted(0)}) == key({"a": one.recommender_}) == key({"a": one.predictions})
    assert key({"a": one}) != key({"a": fitted(1)})


def test_a_method_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="call fit first"):
        key({"a": vr.methods.MF()})


@dataclass
class Learner:
    size: int = 2


def test_what_fitting_leaves_in_an_object_is_a_part_of_it(monkeypatch):
    monkeypatch.setattr(Learner, "__module__", "verirec.learner")
    fresh, fitted, other = Learner(), Learner(), Learner()
    fitted.weights_, other.weights_ = np.zeros(2), np.ones(2)
    assert len({key({"a": one}) for one in (fresh, fitted, other)}) == 3


def test_the_code_is_a_part_of_the_key(monkeypatch):
    before = key({"a": 0})
    monkeypatch.setattr(identity, "versions", lambda: "another")
    assert key({"a": 0}) != before


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("loss", lambda f, y: f, "loss is of type function"),
        ("predictions", {"mine": scipy.special.expit}, "predictions of mine is of type ufunc"),
        ("predictions", {"a": np.zeros(2), "b": (np.zeros(2), object())}, "predictions of b is of type object"),
        ("propensities", vr.GivenPropensity(lambda users, items: users), "propensities is of type function"),
    ],
)
def test_what_cannot_be_recognised_is_named(name, value, told):
    wanted = f"checkpoint needs what can be recognised in another run; {told}"
    check_refusal(lambda: key({name: value}), ParameterError, wanted)


@pytest.mark.parametrize("given", [None, np.random.default_rng(0)])
def test_a_seed_is_needed(given):
    with pytest.raises(ParameterError, match=r"^checkpoint needs a random_state that is a whole number; got "):
        key({"random_state": given})


def test_text_of_any_length_and_fields_by_name_have_keys_of_their_own():
    long = [np.array([letter * 40], dtype=np.dtypes.StringDType()) for letter in "ab"] if np.__version__ >= "2" else []
    named = [np.zeros(2, [(name, "i4")]) for name in "ab"]
    keys = [key({"a": value}) for value in long + named]
    assert len(set(keys)) == len(keys) > 1


def test_what_cannot_be_read_as_arrays_is_refused_by_name():
    check_refusal(
        lambda: key({"frame": pd.Series(pd.Categorical([object(), 1]))}),
        ParameterError,
        "checkpoint needs what can be recognised in another run; frame is of type Series",
    )


def test_models_of_torch_differ_by_all_that_they_are_and_others_parts_are_refused():
    torch = pytest.importorskip("torch")

    class Own(torch.nn.Module):
        pass

    trained = torch.nn.Sequential(torch.nn.Dropout(0.5))
    heads = [torch.nn.MultiheadAttention(4, count) for count in (2, 4)]
    heads[1].load_state_dict(heads[0].state_dict())
    keys = [key({"a": one}) for one in (trained, torch.nn.Sequential(torch.nn.Dropout(0.5)).eval(), *heads)]
    assert len(set(keys)) == 4
    with pytest.raises(ParameterError, match="a is of type Own"):
        key({"a": torch.nn.Sequential(Own())})
