"""What an estimate refuses before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(40, 50, observed=0.2, random_state=0)


@pytest.fixture(scope="module")
def survey(world):
    cells = np.random.default_rng(0).choice(40 * 50, 200, replace=False)
    return vr.SurveySample(cells // 50, cells % 50, world.true_labels.ravel()[cells])


@pytest.mark.parametrize("judge", ["estimate", "compare"])
def test_estimators_of_a_log_do_not_speak_of_fewer_than_all_pairs(world, survey, judge):
    ask, given = getattr(vr, judge), [0.2 + 0.6 * world.preferences] * (2 if judge == "compare" else 1)
    left_out = (world.log.users[:100], world.log.items[:100])
    check_refusal(lambda: ask(*given, world.log, exclude=left_out), ParameterError, "exclude needs a survey.*naive")
    named = {"survey": survey, "estimators": ("dr", "survey")}
    check_refusal(
        lambda: ask(*given, world.log, exclude=left_out, **named), ParameterError, "exclude needs a survey.*: dr"
    )
    assert list(ask(*given, world.log, exclude=left_out, survey=survey)) == ["survey", "survey-ppi"]
