"""Losses of logits: those of `verirec.losses`, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from verirec.losses import get_loss
from verirec.training.losses import LOSSES

LOGITS = torch.linspace(-6, 6, 25, dtype=torch.float64)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [0, 1, 0.3, -0.7, 2.5])
def test_losses_are_those_of_probabilities(name, label):
    if_positive, if_negative = get_loss(name).halves(expit(LOGITS.numpy()))
    expected = label * if_positive + (1 - label) * if_negative
    for given in (label, torch.full_like(LOGITS, label)):
        np.testing.assert_allclose(LOSSES[name]()(LOGITS, given).numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_differences(name):
    loss, labels = LOSSES[name](), torch.linspace(-0.5, 1.5, 25, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda logits: loss(logits, labels), (LOGITS.clone().requires_grad_(),))


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_what_they_are_at_0_and_the_effect_of_the_label(name):
    loss = LOSSES[name]()
    for label in (0, 1):
        expected = loss.base(LOGITS) + label * loss.label_effect(LOGITS)
        np.testing.assert_allclose(loss(LOGITS, label), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(loss(LOGITS, 0), loss.base(LOGITS))
