"""Judgements after every few steps, as these tests take few."""

from __future__ import annotations

import pytest

from verirec.training import loop


@pytest.fixture(scope="module", autouse=True)
def judge_often():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "STEPS_BETWEEN", 10)
        yield
