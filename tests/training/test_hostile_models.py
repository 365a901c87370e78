"""Model folders that were changed on purpose, with checksums that fit: a model, or one named error."""

from __future__ import annotations

import copy
import json
import random
import warnings

import numpy as np
import pytest
import torch

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ModelFileError
from verirec.training.checkpoints import read_tensors, write_tensors

KINDS = {
    "mf": vr.methods.MF(dim=3, epochs=2),
    "features": vr.methods.MF(model="features", dim=2, covariates="both", epochs=2),
    "ncf": vr.methods.MF(model="ncf", dim=2, epochs=2),
    "constants": vr.methods.MF(model="constants", covariates="propensity", epochs=2),
}


@pytest.fixture(scope="module")
def log():
    world = vr.simulate.world(30, 20, observed=0.4, random_state=0).log
    rng = np.random.default_rng(0)
    return vr.FeedbackLog.from_arrays(
        world.users,
        world.items,
        world.labels,
        n_users=30,
        n_items=20,
        user_features=rng.normal(size=(30, 3)),
        item_features=rng.normal(size=(20, 2)),
    )


@pytest.fixture(scope="module", params=KINDS)
def saved(request, log, tmp_path_factory):
    """A saved model of each kind, with a level from a survey, taken apart: tensors and facts."""
    folder = tmp_path_factory.mktemp("models") / request.param
    survey = vr.SurveySample(np.arange(20), np.arange(20), np.arange(20) % 2)
    with pytest.warns(vr.exceptions.SurveyWarning, match="may do harm"):
        KINDS[request.param].fit(log).recommender_.calibrated(survey).save(folder)
    tensors, wrapped = read_tensors(folder / "model.safetensors")
    return tensors, json.loads(wrapped["facts"])


def written(folder, tensors, facts):
    """Write a folder whose checksums fit whatever it holds."""
    text = json.dumps(facts, indent=1)
    write_tensors(folder / "model.safetensors", tensors, {"kind": "model", "facts": text})
    (folder / "model.json").write_bytes(text.encode())
    return folder


def test_a_folder_taken_apart_and_put_together_again_is_a_model(saved, tmp_path):
    assert np.isfinite(vr.load(written(tmp_path, *saved)).predict([0, 29], [0, 19])).all()


ODD = (None, -1, 0, 1e300, 10**12, "x", [], {}, True, [1, 2], {"a": 1}, float("nan"))


def places(facts, path=()):
    """Every place in nested facts."""
    for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
        yield (*path, key)
        if isinstance(value, dict | list) and len(value) < 20:
            yield from places(value, (*path, key))


def changed_facts(facts, rng):
    found = copy.deepcopy(facts)
    *way, last = rng.choice(list(places(found)))
    inside = found
    for step in way:
        inside = inside[step]
    if rng.random() < 0.3:
        del inside[last]
    else:
        inside[last] = rng.choice(ODD)
    return found


def changed_tensors(tensors, rng):
    found = dict(tensors)
    name = rng.choice(sorted(found))
    value = found.pop(name)
    odd = [
        None,
        value[:1] if value.ndim else value.reshape(1),
        value.repeat(2, *[1] * (value.ndim - 1)) if value.ndim else value,
        value.to(torch.float16),
        value.to(torch.int64) * 0 - 5,
        value.to(torch.float32) * torch.nan,
        value.flatten()[None],
    ]
    choice = rng.choice(odd)
    return found if choice is None else found | {name: choice}


def outcome(folder):
    """A model that predicts finite numbers, or the one named error, in a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vr.exceptions.VerirecWarning)
        try:
            found = vr.load(folder)
        except ModelFileError as error:
            return "refused" if "\n" not in str(error) and len(str(error)) < 500 else str(error)
        found.recommend([0, 1], k=3)
        return "model" if np.isfinite(found.predict([0, 29], [0, 19])).all() else "not finite"


@pytest.mark.parametrize("what", ["facts", "tensors"])
def test_whatever_is_changed_a_folder_is_a_model_or_refused(saved, what, tmp_path):
    rng = random.Random(what + "3")
    counts = {"refused": 0, "model": 0}
    for _ in range(60):
        tensors, facts = saved
        if what == "facts":
            facts = changed_facts(facts, rng)
        else:
            tensors = changed_tensors(tensors, rng)
        counts[outcome(written(tmp_path, tensors, facts))] += 1
    assert counts["refused"] > 10, counts


def test_numbers_that_are_not_finite_are_refused(saved, tmp_path):
    tensors, facts = saved
    name = next(name for name, value in tensors.items() if value.is_floating_point() and not name.endswith(".scale"))
    broken = torch.full_like(tensors[name], torch.nan)
    check_refusal(lambda: vr.load(written(tmp_path, tensors | {name: broken}, facts)), ModelFileError, "not finite")


@pytest.mark.parametrize("dim", [10**7, 2.5, "3", None])
def test_a_size_that_is_only_claimed_is_refused_before_anything_is_built(saved, dim, tmp_path):
    tensors, facts = saved
    facts = facts | {"model": facts["model"] | {"dim": dim}}
    if dim == 10**7 and "user_factors" not in tensors:
        tensors = tensors | {"user_factors": torch.zeros(30, 1)}
    check_refusal(lambda: vr.load(written(tmp_path, tensors, facts)), ModelFileError, "not a whole file")


@pytest.mark.parametrize("shape", [(1, 12), (12, 1)])
@pytest.mark.parametrize("kind", ["mf", "constants", "ncf"])
def test_one_user_or_one_item_can_be_saved(shape, kind, tmp_path):
    users, items = np.divmod(np.arange(12), shape[1])
    log = vr.FeedbackLog.from_arrays(users, items, np.arange(12) % 2, n_users=shape[0], n_items=shape[1])
    recommender = vr.methods.MF(model=kind, dim=1, epochs=2, validation=0).fit(log)
    recommender.save(tmp_path)
    both = [one.predict(users[:3], items[:3]) for one in (vr.load(tmp_path), recommender)]
    np.testing.assert_array_equal(*both)


def test_a_place_with_a_null_in_its_name_is_refused(log):
    fitted = vr.methods.MF(dim=1, epochs=1).fit(log)
    for call in (fitted.save, vr.load):
        check_refusal(lambda call=call: call("a\0b"), vr.exceptions.ParameterError, "must be named by text")
