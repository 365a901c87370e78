"""Keys of checkpoints: another one for all that training or a search depends on, the same for the same."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data.parts import parts_of
from verirec.exceptions import TrainingError
from verirec.methods import keys, tuning
from verirec.methods.folds import folds_of
from verirec.methods.keys import training_key
from verirec.methods.search import Budget
from verirec.resuming import identity

WORLD = vr.simulate.world(60, 50, observed=0.4, random_state=0)
PAIRS = {"users": WORLD.log.users, "items": WORLD.log.items, "n_users": 60, "n_items": 50}
RATED = np.zeros((60, 50), bool)
RATED[WORLD.log.users, WORLD.log.items] = True
AUDITED = WORLD.log.users[:400], WORLD.log.items[:400]
STARS = np.random.default_rng(0).integers(0, 5, len(WORLD.log))
FEATURES = np.random.default_rng(0).normal(size=(60, 2))
KEPT = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
TO_ONE = np.where(np.arange(5)[:, None] == 0, KEPT, 0.8 * np.eye(5) + 0.2 * np.eye(5)[:1])


def binary(**options):
    return vr.FeedbackLog.from_arrays(labels=WORLD.log.labels, **PAIRS, **options)


def starred(*levels):
    return vr.FeedbackLog.from_arrays(labels=np.array(levels)[STARS], levels=levels, **PAIRS)


def of_groups(first):
    rates = vr.NoiseRates(0.2, 0.1), vr.NoiseRates(0.3, 0.05)
    groups = np.isin(np.arange(2_000), [first, 1_999]).astype(int)
    return vr.GroupedNoiseRates(rates, user_groups=groups)


def wide(**options):
    return vr.FeedbackLog.from_arrays(labels=WORLD.log.labels, **PAIRS | {"n_users": 2_000}, **options)


def level(users, items, value=0.3):
    return np.full(len(users), value)


KINDS = {
    "plain": (binary, {}),
    "a matrix of propensities": (binary, {"propensities": np.full((60, 50), 0.3)}),
    "another one beside the log": (binary, {"propensities": np.where(RATED, 0.3, 0.4)}),
    "a function": (binary, {"propensities": level}),
    "another function": (binary, {"propensities": partial(level, value=0.3 + 1e-12)}),
    "features": (partial(binary, user_features=FEATURES), {}),
    "other features": (partial(binary, user_features=FEATURES + 1e-12), {}),
    "rates": (binary, {"noise_rates": vr.NoiseRates(0.2, 0.1)}),
    "nearly those rates": (binary, {"noise_rates": vr.NoiseRates(0.2, 0.1 + 1e-16)}),
    "groups": (wide, {"noise_rates": of_groups(500)}),
    "other groups": (wide, {"noise_rates": of_groups(900)}),
    "stars": (partial(starred, 1, 2, 3, 4, 5), {}),
    "other stars": (partial(starred, 1, 2, 3, 4, 50), {}),
    "a matrix": (partial(starred, 1, 2, 3, 4, 5), {"noise_rates": vr.TransitionMatrix(KEPT)}),
    "another matrix": (partial(starred, 1, 2, 3, 4, 5), {"noise_rates": vr.TransitionMatrix(TO_ONE)}),
    "an audit": (
        binary,
        {"audit": vr.AuditSample(*AUDITED, WORLD.at(*AUDITED).true_labels)},
    ),
}


def of_training(kind, method=vr.methods.MF):
    log, given = KINDS[kind]
    model = method(dim=2)
    prepared = model.prepare(log(), **{"noise_rates": None, "audit": None, "propensities": None} | given)
    return training_key(model, prepared)


def of_search(kind, folder, **changed):
    log, given = KINDS[kind]
    method, given = (
        vr.methods.Auto(trials=2, **changed),
        {"noise_rates": None, "audit": None, "propensities": None} | given,
    )
    folds = folds_of(log(), 3, 0, survey=None, **given)
    return tuning.begun(method, folds, method.objective, Budget(2, None), folder / "x", False, lambda *_: None).key


def test_no_two_trainings_have_one_key():
    found = {kind: of_training(kind) for kind in KINDS}
    assert len(set(found.values())) == len(KINDS)
    assert found == {kind: of_training(kind) for kind in KINDS}


def test_no_two_searches_have_one_key(tmp_path):
    found = {kind: of_search(kind, tmp_path) for kind in KINDS}
    assert len(set(found.values())) == len(KINDS)
    assert found == {kind: of_search(kind, tmp_path) for kind in KINDS}
    assert found["plain"] == of_search("plain", tmp_path, seconds=9.0) != of_search("plain", tmp_path, random_state=1)


def test_keys_are_of_the_code(monkeypatch, tmp_path):
    before = of_training("plain"), of_search("plain", tmp_path)
    monkeypatch.setattr(identity, "versions", lambda: "another")
    assert of_training("plain") != before[0]
    assert of_search("plain", tmp_path) != before[1]


def test_parameters_that_cannot_be_recognised_are_told_by_their_class():
    def told(**parameters):
        return keys.told_parameters(vr.methods.MF(**parameters))

    assert told(random_state=np.random.default_rng(0)) == told(random_state=np.random.default_rng(1)) != told()
    assert told(model=lambda users, items: None) == told(model=lambda *_: 1)
    assert told(dim=np.int64(8)) == told(dim=8) != told(dim=9)
    one, other = (vr.methods.MF(dim=2, epochs=2, random_state=seed).fit(binary()) for seed in (0, 1))
    assert told(h=one) != told(h=other)


def test_functions_as_h_are_told_by_their_values():
    def key(rate):
        model = vr.methods.OMEIPS(dim=2, anchors="epoch", h=lambda users, items: np.where(users > items, rate, 0.5))
        prepared = model.prepare(binary(), noise_rates=None, audit=None, propensities=None)
        return training_key(model, prepared)

    assert key(0.9) == key(0.9) != key(0.8)


def test_propensities_are_looked_at_in_parts(monkeypatch):
    whole, sizes = of_training("a function"), []

    def counted(users, items):
        sizes.append(len(users))
        return level(users, items)

    model = vr.methods.MF(dim=2)
    prepared = model.prepare(binary(), noise_rates=None, audit=None, propensities=counted)
    sizes.clear()
    monkeypatch.setattr(keys, "parts_of", partial(parts_of, size=100))
    assert training_key(model, prepared) == whole
    assert max(sizes) == 100
    assert sum(sizes) == len(WORLD.log)


def test_training_on_other_levels_goes_on_from_no_checkpoint(tmp_path):
    kept = {"checkpoint": tmp_path / "run"}
    vr.methods.MF(dim=2, epochs=2).fit(starred(1, 2, 3, 4, 5), **kept)
    call = lambda: vr.methods.MF(dim=2, epochs=2).fit(starred(1, 2, 3, 4, 50), resume=True, **kept)  # noqa: E731
    check_refusal(call, TrainingError, "is of another run")


@pytest.mark.parametrize(
    "method", [vr.methods.Auto(trials=1, folds=2), vr.methods.MF(dim=2, epochs=2)], ids=["auto", "tune"]
)
def test_a_search_with_other_features_goes_on_from_no_checkpoint(method, tmp_path):
    def search(features, **given):
        log, given = binary(user_features=features), given | {"checkpoint": tmp_path / "search"}
        if isinstance(method, vr.methods.Auto):
            return method.fit(log, **given)
        return vr.methods.tune(method, log, trials=1, folds=2, **given)

    search(FEATURES)
    search(FEATURES, resume=True)
    check_refusal(lambda: search(FEATURES + 1, resume=True), TrainingError, "is of another search")
