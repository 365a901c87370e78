"""The quadratics above the losses of rows: they lie above, touch in value and slope, bend no more than they must."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from scipy.special import expit

from verirec.training.solvers.sweep import arrays
from verirec.training.solvers.sweep.majorizers import CrossEntropy, Squares, largest_curvature

EVERYWHERE = np.linspace(-30, 30, 1_201)
FLOATS = {"allow_nan": False, "width": 32}
levels, labels = some.floats(0.0078125, 64, **FLOATS), some.floats(-2, 3, **FLOATS)
logits = some.floats(-20, 20, **FLOATS)


def entropy(level, label, z):
    return level * (np.logaddexp(0, z) - label * z)


def squares(level, label, z):
    return level * (expit(z) - label) ** 2


def made(kind, level, label):
    level, label = torch.tensor([level]), torch.tensor([label])
    return CrossEntropy(level, level * label) if kind is entropy else Squares(level, label)


@pytest.mark.parametrize("kind", [entropy, squares])
@given(level=levels, label=labels, at=logits)
def test_the_quadratic_lies_above_the_loss_and_touches_it(kind, level, label, at):
    above = made(kind, level, label).above(torch.tensor([at]))
    value, slope = float(above.value), float(above.slopes[0])
    curvature = float(above.levels[0]) * above.curvature
    small = 1e-6 * level * (4 + abs(at)) * (4 + abs(label))
    assert value == pytest.approx(kind(level, label, at), rel=1e-5, abs=small)
    step = 1e-5
    by_difference = (kind(level, label, at + step) - kind(level, label, at - step)) / (2 * step)
    assert slope == pytest.approx(by_difference, rel=1e-4, abs=small)
    moved = EVERYWHERE - at
    quadratic = kind(level, label, at) + slope * moved + curvature / 2 * moved**2
    # Slopes and curvatures are of single precision.
    slack = 1e-6 * level * (1 + abs(label)) * (1 + np.abs(moved)) + 1e-6 * curvature * moved**2
    assert (quadratic >= kind(level, label, EVERYWHERE) - slack).all()


@given(at=some.floats(-15, 15, **FLOATS))
def test_entropy_bends_as_little_as_it_can(at):
    """The quadratic touches the loss at the opposite logit too: any that bends less would cut it."""
    above = made(entropy, 1.0, 0.5).above(torch.tensor([at]))
    moved = -2 * at
    quadratic = float(above.value) + float(above.slopes[0]) * moved + float(above.levels[0]) / 2 * moved**2
    assert quadratic == pytest.approx(entropy(1.0, 0.5, -at), abs=2e-5)


@given(least=some.floats(-2, 0.5), more=some.floats(0, 2.5))
def test_the_largest_curvature_is_the_largest_second_derivative(least, more):
    z, step = np.linspace(-12, 12, 4_001), 1e-3
    bends = [
        (squares(1, y, z + step) - 2 * squares(1, y, z) + squares(1, y, z - step)) / step**2
        for y in (least, (2 * least + more) / 2, least + more)
    ]
    assert largest_curvature(least, least + more) == pytest.approx(np.max(bends), rel=1e-3)


def test_many_rows_are_each_row_by_itself(monkeypatch):
    random = torch.Generator().manual_seed(0)
    level, label, z = (torch.rand(50, generator=random) for _ in range(3))
    for kind in (entropy, squares):
        one = lambda: CrossEntropy(level, level * label) if kind is entropy else Squares(level, label)  # noqa: B023, E731
        whole = one().above(z.clone())
        expected = kind(level.double().numpy(), label.double().numpy(), z.double().numpy()).sum()
        assert float(whole.value) == pytest.approx(expected, rel=1e-5)
        with monkeypatch.context() as patch:
            patch.setattr(arrays, "_AT_ONCE", 7)
            parts = one().above(z.clone())
        # Sums of 50 numbers of single precision, in another order: each addition may be off by half a last digit of the
        # sum of their sizes, which is at most that of all levels times 3.
        slack = 50 * torch.finfo(torch.float32).eps * 3 * float(level.sum())
        assert float(parts.value) == pytest.approx(float(whole.value), rel=0, abs=slack)
        torch.testing.assert_close(parts.slopes, whole.slopes)
        torch.testing.assert_close(parts.levels, whole.levels)
