"""Small tensors are trained on one thread, in the tests as in the loop."""

from __future__ import annotations

import pytest

from verirec.training.threads import one_thread


@pytest.fixture(autouse=True)
def on_one_thread():
    with one_thread():
        yield
