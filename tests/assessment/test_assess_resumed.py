"""An assessment that was stopped goes on: to the same page, without doing again what was done."""

from __future__ import annotations

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.assessment import assess
from verirec.assessment.level_bounds import LevelBounds
from verirec.estimation.pair_ends import PairEnds
from verirec.exceptions import ParameterError, ReusedWorkWarning
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.noise_rates import AuditTransitionMatrix
from verirec.nuisance.propensities import Propensities
from verirec.resuming import pieces

SHAPE = (30, 40)
RATES = vr.NoiseRates(0.2, 0.1)


@pytest.fixture(autouse=True)
def _all_is_kept(monkeypatch):
    monkeypatch.setattr(pieces, "WORTH_KEEPING", 0.0)


def survey_of(world, size=300):
    users, items = np.random.default_rng(1).integers([[SHAPE[0]], [SHAPE[1]]], size=(2, size))
    return vr.SurveySample(users, items, world.at(users, items).true_labels)


def audit_of(world, size=200):
    rows = np.random.default_rng(2).choice(len(world.log), size, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    return vr.AuditSample(users, items, world.at(users, items).true_labels)


WORLD = vr.simulate.world(*SHAPE, observed=0.4, selectivity=1, noise_rates=RATES, random_state=3)
BOTH = {"sharp": 0.1 + 0.8 * WORLD.preferences, "blunt": 0.4 + 0.2 * WORLD.preferences}

GIVEN = {
    "the range": {},
    "a sample": {"sample": 500},
    "a survey": {"survey": survey_of(WORLD)},
    "an audit": {"audit": audit_of(WORLD), "propensities": vr.GivenPropensity(WORLD.propensity_values)},
    "rates, and training": {"noise_rates": RATES, "train": ["mf"], "hold_out": 0.5},
    "scores": {"predictions": {"scores": 5 * WORLD.preferences}, "calibrate": "platt"},
}


def found_in(given, **more):
    """Assess; give the figures and the sentences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = assess(WORLD.log, **{"predictions": BOTH} | given | more)
    return found.summary, found.conclusions, found.warnings


def stop_after(count, monkeypatch, run):
    """Run, and stop when so many pieces have been kept; return whether it came to that."""
    keep, kept = pieces.Pieces._keep, []

    def stopping(self, *given):
        kept.append(keep(self, *given))
        if sum(kept) == count:
            raise KeyboardInterrupt
        return kept[-1]

    with monkeypatch.context() as patched:
        patched.setattr(pieces.Pieces, "_keep", stopping)
        try:
            run()
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("kind", GIVEN)
def test_stopped_early_or_late_it_finds_the_same(kind, tmp_path, monkeypatch):
    given = GIVEN[kind]
    wanted, run = found_in(given), partial(found_in, given, checkpoint=tmp_path / "work")
    for count in (3, 10):
        assert stop_after(count, monkeypatch, run)
        assert run() == wanted, f"stopped after {count} pieces"
        assert not (tmp_path / "work").exists()


def test_what_is_finished_is_not_worked_out_again(tmp_path, monkeypatch):
    fits, walks, fit, ends = [], [], LabelModel.fit, PairEnds.of
    monkeypatch.setattr(LabelModel, "fit", lambda *given: fits.append(1) or fit(*given))
    monkeypatch.setattr(PairEnds, "of", lambda *given: walks.append(1) or ends(*given))
    wanted = found_in({})
    whole, run = (len(fits), len(walks)), partial(found_in, {}, checkpoint=tmp_path / "work")
    done = []
    for count in (5, 18, 30, 53):
        assert stop_after(count, monkeypatch, run)
        fits.clear()
        walks.clear()
        assert run() == wanted
        done.append((len(fits), len(walks)))
    # Of the noise's five folds, of five models at each of five corners, and of the plan; two walks a corner.
    assert whole == (31, 40)
    assert done == [(26, 40), (6, 40), (1, 22), (1, 0)]


def test_it_says_what_it_goes_on_from_and_the_page_does_not(tmp_path, monkeypatch):
    run = partial(assess, WORLD.log, BOTH, checkpoint=tmp_path / "work")
    assert stop_after(3, monkeypatch, run)
    with pytest.warns(ReusedWorkWarning, match=r"^going on from an earlier run: 2 finished parts, 0 s of work$"):
        found = run()
    assert not any("earlier run" in one for one in found.warnings)


@pytest.mark.parametrize(
    "changed", [{"confidence": 0.9}, {"random_state": 1}, {"predictions": BOTH | {"third": BOTH["blunt"]}}]
)
def test_other_settings_take_nothing(tmp_path, monkeypatch, changed):
    assert stop_after(6, monkeypatch, partial(found_in, {}, checkpoint=tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(pieces.Pieces, "count", property(lambda self: pytest.fail("taken") if self._seconds else 0))
        assert found_in(changed, checkpoint=tmp_path) == found_in(changed)


def test_what_cannot_be_recognised_is_refused_before_any_work(tmp_path):
    functions = {"mine": lambda users, items: np.full(len(users), 0.5)}
    call = partial(assess, WORLD.log, functions, checkpoint=tmp_path, progress=pytest.fail)
    check_refusal(call, ParameterError, "^checkpoint needs what .* predictions of mine is of type function$")
    call = partial(assess, WORLD.log, BOTH, checkpoint=tmp_path, random_state=np.random.default_rng(0))
    check_refusal(call, ParameterError, "^checkpoint needs a random_state that is a whole number")


def test_recommenders_may_have_any_names(tmp_path):
    names = ("a", "b", "a with b", "b with a", "a/estimates from 0", "('a', 'b')")
    given = {"predictions": dict.fromkeys(names, BOTH["sharp"]), "propensities": vr.GivenPropensity(WORLD.propensities)}
    given |= {"noise_rates": RATES, "sample": 100}
    assert found_in(given, checkpoint=tmp_path) == found_in(given)


@pytest.fixture
def stars(monkeypatch):
    """What an assessment of levels is given; the log is the world's."""
    random = np.random.default_rng(0)
    log = WORLD.log
    sizes = {"n_users": SHAPE[0], "n_items": SHAPE[1], "levels": [1, 2, 3, 4, 5]}
    stars = vr.FeedbackLog.from_arrays(log.users, log.items, random.integers(1, 6, len(log)), **sizes)
    users, items = np.divmod(random.choice(SHAPE[0] * SHAPE[1], 300, replace=False), SHAPE[1])
    survey = vr.SurveySample(users, items, random.integers(1, 6, 300), levels=stars.levels)
    monkeypatch.setattr(f"{__name__}.WORLD", SimpleNamespace(log=stars))
    return {"predictions": {name: 1 + 4 * one for name, one in BOTH.items()}, "survey": survey}


def test_levels_go_on_too(tmp_path, monkeypatch, stars):
    wanted = found_in(stars)
    for count in (2, 5):
        assert stop_after(count, monkeypatch, partial(found_in, stars, checkpoint=tmp_path))
        assert found_in(stars, checkpoint=tmp_path) == wanted


def test_of_levels_nothing_that_takes_long_is_worked_out_again(tmp_path, monkeypatch, stars):
    log, random = WORLD.log, np.random.default_rng(4)
    rows = random.choice(len(log), 300, replace=False)
    near = np.clip(log.label_values[rows] + random.choice([-1, 0, 0, 0, 1], 300), 1, 5)
    given = stars | {"audit": vr.AuditSample(log.users[rows], log.items[rows], near, levels=log.levels)}
    wanted = found_in(given)
    with monkeypatch.context() as patched:
        patched.setattr(pieces.Pieces, "remove", _stop)
        with pytest.raises(KeyboardInterrupt):
            found_in(given, checkpoint=tmp_path)
    for one in (LevelBounds, "_losses"), (AuditTransitionMatrix, "fit"), (Propensities, "diagnostics"):
        monkeypatch.setattr(*one, lambda *_, **__: pytest.fail("worked out again"))
    assert found_in(given, checkpoint=tmp_path) == wanted


def _stop(*_):
    raise KeyboardInterrupt
