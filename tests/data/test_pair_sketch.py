"""Which pairs a log has, by their smallest hashes: shares are right, and rows that were trained on are warned of."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import verirec as vr
from verirec.data import pair_sketch
from verirec.data.ids import IdMap
from verirec.data.pair_sketch import KEPT, PairSketch, hashed_ids
from verirec.exceptions import TrainedRowsWarning


def log_of(rows, **ids):
    """Make a log of some cells of a grid of 200 x 100."""
    users, items = np.divmod(np.asarray(rows), 100)
    return vr.FeedbackLog.from_arrays(users, items, users % 2, n_users=200, n_items=100, **ids)


@pytest.mark.parametrize("size", [40, KEPT, 6_000])
@pytest.mark.parametrize("looked_at", [1_000_000, 500])
def test_the_share_is_that_of_the_rows_in_both(size, looked_at, monkeypatch):
    monkeypatch.setattr(pair_sketch, "_LOOKED_AT", looked_at)
    cells = np.random.default_rng(0).permutation(20_000)
    trained = PairSketch.of(log_of(cells[:size]))
    assert trained.whole == (size <= KEPT)
    assert trained.share_of(log_of(cells[:size])) == 1
    assert trained.share_of(log_of(cells[size : 2 * size])) == 0
    half = log_of(cells[size // 2 : size // 2 + size])
    # Of a small log all rows are looked at; of others as many as tell, at random.
    off = 1e-9 if looked_at > size and trained.whole else 5 * 0.5 / np.sqrt(min(size, 40))
    assert trained.share_of(half) == pytest.approx(0.5, abs=off)


def test_pairs_are_known_by_their_ids_and_not_by_their_places():
    cells = np.random.default_rng(1).permutation(20_000)[:3_000]
    names = IdMap.of([f"user {number:03d}" for number in range(200)])
    trained = PairSketch.of(log_of(cells, user_ids=names))
    assert trained.share_of(log_of(cells, user_ids=names)) == 1
    assert trained.share_of(log_of(cells)) == 0
    as_text = {"user_ids": IdMap.in_order([str(one) for one in range(200)])}
    assert PairSketch.of(log_of(cells)).share_of(log_of(cells, **as_text)) == 1


@pytest.mark.parametrize(
    "ids", [["a", "aa", "ab", "ba", "é", "日本", "x" * 300], [*range(-5, 1_000)]], ids=["text", "integers"]
)
def test_hashes_of_ids_differ_and_are_the_same_in_any_order(ids):
    found = hashed_ids(IdMap.in_order(ids))
    assert len(set(found.tolist())) == len(ids)
    assert hashed_ids(IdMap.in_order(ids[::-1])).tolist() == found[::-1].tolist()


def test_hashes_do_not_depend_on_the_process():
    code = (
        "from verirec.data.ids import IdMap; from verirec.data.pair_sketch import hashed_ids;"
        "print(hashed_ids(IdMap.of(['ann', 'bob'])).tolist())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(hashed_ids(IdMap.of(["ann", "bob"])).tolist())


def test_what_is_held_comes_back_and_what_is_no_sketch_is_refused():
    trained = PairSketch.of(log_of(range(5_000)))
    assert PairSketch.read(trained.plain()).hashes.tolist() == trained.hashes.tolist()
    for change in ({"hashes": []}, {"hashes": ["2", "1"]}, {"hashes": ["x"]}, {"whole": "no"}):
        with pytest.raises(ValueError, match=r"sketch|invalid"):
            PairSketch.read(trained.plain() | change)


# Recommenders that are judged on what they were trained on


@pytest.fixture(scope="module")
def trained():
    world = vr.simulate.world(100, 80, observed=0.3, random_state=0)
    train, test = vr.split(world.log, 0.3, random_state=0)
    return vr.methods.MF(epochs=2).fit(train), train, test, world.log


CALLS = {
    "estimate": lambda model, log: vr.estimate(model, log),
    "compare": lambda model, log: vr.compare(model, np.full(log.shape, 0.5), log),
    "ranking": lambda model, log: vr.estimate_ranking(model, log),
    "evaluate": lambda model, log: vr.metrics.evaluate(model.predictions, log),
    "calibrated": lambda model, log: vr.estimate(vr.calibrate(model, log), log),
}


def told(call, *given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*given)
    return {str(one.message) for one in caught if one.category is TrainedRowsWarning}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_rows_that_were_trained_on_are_warned_of_and_others_are_not(trained, call):
    model, train, test, whole = trained
    (message,) = told(call, model, train)
    assert message.startswith(f"about 100% of the {len(train):,} rows that judge this recommender are among those that")
    assert "verirec split" in message
    assert len(told(call, model, whole)) == 1
    assert told(call, model, test) == set()


def test_rows_that_are_left_out_are_not_warned_of(trained):
    model, train, _, whole = trained
    assert told(lambda: vr.estimate(model, whole, exclude=train)) == set()
    assert told(lambda: vr.estimate_ranking(model, whole, exclude=train)) == set()


def test_an_assessment_says_it_and_so_does_a_model_that_was_saved(trained, tmp_path):
    model, train, _, _ = trained
    model.recommender_.save(tmp_path / "model")
    loaded = vr.load(tmp_path / "model")
    found = vr.assess(train, {"mine": loaded.predictions_for(train)}, noise_rates=vr.NoiseRates(0.1, 0.1))
    assert sum("was trained on" in one for one in found.warnings) == 1
    folded = loaded.fold_in(train)
    assert len(told(vr.estimate, folded, train)) == 1
