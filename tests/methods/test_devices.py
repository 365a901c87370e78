"""Training on a second device: nothing is left behind on the processor, and steps do not wait for the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from method_worlds import EVERY, RATES, matrix, method_of, small_world
from method_worlds import validate_often as validate_often
from pretended_device import DEVICE, PlacementError, pretended_device

WAITS = {"t-mf"}
"""It has to know how many positive rows a batch has."""


@pytest.mark.parametrize("constants", [True, False], ids=["", "factors alone"])
@pytest.mark.parametrize("name", EVERY)
def test_every_method_trains_on_a_second_device_as_on_the_first(name, constants, monkeypatch):
    log = small_world().log
    parameters = {"solver": "gradient", "constants": constants, "epochs": 2, "refit": True}
    plain = method_of(name, **parameters).fit(log, noise_rates=RATES)
    with pretended_device(monkeypatch, may_wait=name in WAITS):
        there = method_of(name, device=str(DEVICE), **parameters).fit(log, noise_rates=RATES)
    np.testing.assert_allclose(matrix(there), matrix(plain), atol=1e-6)


def test_the_pretended_device_notices_what_a_device_would(monkeypatch):
    with pretended_device(monkeypatch) as mode:
        there = torch.zeros(3).to(DEVICE)
        assert there.device == DEVICE
        assert (there + 1).device == DEVICE
        assert there.cpu().numpy().tolist() == [0.0, 0.0, 0.0]
        with pytest.raises(PlacementError, match="two devices"):
            there * torch.ones(())
        with pytest.raises(PlacementError, match="two devices"):
            there[torch.tensor([0])]
        with pytest.raises(PlacementError, match="double precision"):
            there.double()
        with pytest.raises(PlacementError, match="NumPy"):
            there.numpy()
        mode.stepping = True
        with pytest.raises(PlacementError, match="waits"):
            float(there.sum())
