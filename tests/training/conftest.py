"""Small tensors are trained on one thread, in the tests as in the loop; small logs in as many shards as large ones."""

from __future__ import annotations

import pytest

from verirec.training.solvers.sweep import rows
from verirec.training.threads import one_thread


@pytest.fixture(autouse=True)
def on_one_thread():
    with one_thread():
        yield


@pytest.fixture
def small_shards(monkeypatch):
    """Make eight shards of a small log; workers are told what they have."""
    monkeypatch.setattr(rows, "ROWS_A_PART", 40)
    monkeypatch.setattr(rows, "_ROWS_AN_ITEM", 0)
