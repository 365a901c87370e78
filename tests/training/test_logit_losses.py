"""Losses of logits: those of `verirec.losses`, the paper's surrogate, forward correction by hand; all finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from plain_formulas.correction import surrogate
from training.tasks import SHAPE, a_task
from verirec import GroupedNoiseRates, NoiseRates
from verirec.losses import get_loss
from verirec.training.losses import LOSSES, Forward, LogLoss, Plain, Surrogate

RATES = [NoiseRates(0.2, 0.1), NoiseRates(0, 0), NoiseRates(0.3, 0), NoiseRates(0, 0.45)]
GROUPS = {
    "users": GroupedNoiseRates([NoiseRates(0.2, 0.1), NoiseRates(0.05, 0.3)], user_groups=np.arange(7) % 2),
    "items": GroupedNoiseRates([NoiseRates(0, 0.1), NoiseRates(0.05, 0.3)], item_groups=np.arange(9) % 2),
}
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


def batches(task):
    """Give a task's batches with some logit for each of their rows."""
    for batch in task.batches(0):
        yield batch, LOGITS[batch.rows]


@pytest.mark.parametrize("name", LOSSES)
def test_without_correction_labels_are_taken_as_they_are(name):
    plain, task = Plain(LOSSES[name]()), a_task()
    plain.use(RATES[0], task)
    for batch, logits in batches(task):
        expected = get_loss(name).of(expit(logits.numpy()), batch.labels.numpy())
        np.testing.assert_allclose(plain.errors(logits, batch).numpy(), expected, rtol=1e-6)
    assert plain.labels(task.whole).tolist() == task.log.labels.tolist()
    assert not plain.bounded
    assert torch.equal(plain.imputed(LOGITS, 0.3), LOSSES[name]()(LOGITS, 0.3))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rates", [*RATES, *GROUPS.values()])
def test_the_surrogate_is_the_papers(name, rates):
    corrected, task = Surrogate(LOSSES[name]()), a_task()
    corrected.use(rates, task)
    seen = set()
    for batch, logits in batches(task):
        found = corrected.errors(logits, batch).numpy()
        rho01, rho10 = (np.broadcast_to(one, len(found)) for one in rates.of_pairs(batch.users, batch.items))
        for row, logit in enumerate(logits.numpy()):
            if_positive, if_negative = (float(half[0]) for half in get_loss(name).halves(expit([logit])))
            label = int(batch.labels[row])
            expected = surrogate(label, if_positive, if_negative, rho01[row], rho10[row])
            assert found[row] == pytest.approx(expected, rel=1e-5, abs=1e-6)
            seen.add(label)
    assert seen == {0, 1}
    for row, label in enumerate(corrected.labels(task.whole)):
        at = task.log.users[[row]], task.log.items[[row]]
        rho01, rho10 = (float(np.ravel(one)[0]) for one in rates.of_pairs(*at))
        # In float32, as training is.
        assert label.item() == pytest.approx((task.log.labels[row] - rho10) / (1 - rho01 - rho10), rel=1e-6)
    assert not corrected.bounded
    assert torch.equal(corrected.imputed(LOGITS, 0.3), LOSSES[name]()(LOGITS, 0.3))


@pytest.mark.parametrize("second", [RATES[2], GROUPS["items"]])
def test_rates_can_be_changed(second):
    task = a_task()
    changed, fresh = Surrogate(LogLoss()), Surrogate(LogLoss())
    for rates in (RATES[0], second):
        changed.use(rates, task)
    fresh.use(second, task)
    for batch, logits in batches(task):
        assert torch.equal(changed.errors(logits, batch), fresh.errors(logits, batch))


def test_rates_can_be_changed_from_groups_to_one_for_all():
    task = a_task()
    changed, fresh = Surrogate(LogLoss()), Surrogate(LogLoss())
    for rates in (GROUPS["users"], RATES[0]):
        changed.use(rates, task)
    fresh.use(RATES[0], task)
    for batch, logits in batches(task):
        assert torch.equal(changed.errors(logits, batch), fresh.errors(logits, batch))


def forward(rates):
    made = Forward(LogLoss())
    made.use(rates, a_task())
    return made


@pytest.mark.parametrize("rates", RATES)
def test_forward_correction_is_the_log_loss_of_the_noisy_label(rates):
    made, task = forward(rates), a_task()
    for batch, logits in batches(task):
        for logit, label, found in zip(logits, batch.labels, made.errors(logits, batch), strict=True):
            noisy = rates.rho10 + rates.kappa * expit(logit.item())
            assert found.item() == pytest.approx(-math.log(noisy if label == 1 else 1 - noisy), rel=1e-9, abs=1e-12)
    # Without one kind of noise a probability can be 0, and the loss is not bounded.
    assert made.bounded == (rates.rho01 > 0 and rates.rho10 > 0)


def made_of(kind, name, rates):
    made, task = kind(LOSSES[name]()), a_task()
    made.use(rates, task)
    return made, task


CORRECTIONS = [(Plain, "log"), (Plain, "squared"), (Surrogate, "log"), (Surrogate, "squared"), (Forward, "log")]


@pytest.mark.parametrize("soft", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("kind", "name"), CORRECTIONS)
def test_the_gap_is_the_error_less_the_imputed_one(kind, name, rates, soft):
    made, task = made_of(kind, name, rates)
    for batch, logits in batches(task):
        labels = torch.full_like(logits, soft)
        expected = made.errors(logits, batch) - made.imputed(logits, labels)
        np.testing.assert_allclose(made.gap(logits, batch, labels), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_what_they_are_at_0_and_a_rise(name):
    loss = LOSSES[name]()
    for label in (0, 1):
        expected = loss.base(LOGITS) + label * loss.rise(LOGITS)
        np.testing.assert_allclose(loss(LOGITS, label), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(loss(LOGITS, 0), loss.base(LOGITS))


@pytest.mark.parametrize("rates", [RATES[0], *GROUPS.values()])
def test_labels_of_a_batch_are_those_of_its_rows_of_the_whole(rates):
    made, task = made_of(Surrogate, "log", rates)
    every = made.labels(task.whole)
    for batch in task.batches(0):
        torch.testing.assert_close(made.labels(batch), every[batch.rows])


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("soft", [0.0, 0.3, 1.0])
def test_imputed_labels_go_through_the_noise_as_well(rates, soft):
    label = rates.rho10 + rates.kappa * soft
    noisy = rates.rho10 + rates.kappa * expit(LOGITS.numpy())
    expected = -label * np.log(noisy) - (1 - label) * np.log(1 - noisy)
    found = forward(rates).imputed(LOGITS, soft)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)
    if 0 < soft < 1:
        # Least where f is the imputed label.
        fine = torch.linspace(-5, 5, 2_001, dtype=torch.float64)
        best = fine[forward(rates).imputed(fine, soft).argmin()]
        assert expit(best.item()) == pytest.approx(soft, abs=2e-3)


@pytest.mark.parametrize("rates", RATES)
def test_forward_correction_is_bounded_below_where_the_surrogate_is_not(rates):
    task = a_task(batch_size=100)
    batch = next(task.batches(0))
    unbounded = Surrogate(LogLoss())
    unbounded.use(rates, task)
    for logit in (-1e3, -30.0, 0.0, 30.0, 1e3):
        logits = torch.full((25,), logit, dtype=torch.float64)
        assert (forward(rates).errors(logits, batch) >= -1e-12).all()
        if rates.rho01 and logit == 1e3:
            assert unbounded.errors(logits, batch).min() < -100
        if rates.rho10 and logit == -1e3:
            assert unbounded.errors(logits, batch).min() < -100


def test_forward_correction_of_no_noise_is_the_plain_loss():
    task = a_task()
    for batch, logits in batches(task):
        expected = Plain(LogLoss()).errors(logits, batch)
        assert torch.equal(forward(NoiseRates(0, 0)).errors(logits, batch), expected)
        assert torch.equal(forward(NoiseRates(0, 0)).imputed(logits, 0.25), LogLoss()(logits, 0.25))


def test_forward_correction_has_one_pair_of_rates():
    with pytest.raises(NotImplementedError, match="one pair of noise rates"):
        forward(GROUPS["users"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("make", [Plain, Surrogate, Forward])
@pytest.mark.parametrize("name", LOSSES)
def test_extreme_logits_have_finite_losses_and_gradients(name, make, rates, dtype):
    made, task = make(LOSSES[name]()), a_task(batch_size=100)
    made.use(rates, task)
    batch = next(task.batches(0))
    for logit in (-80.0, 80.0, -1e4, 1e4):
        logits = torch.full((25,), logit, dtype=dtype, requires_grad=True)
        errors = made.errors(logits, batch) + made.imputed(logits, 0.4)
        errors.sum().backward()
        assert torch.isfinite(errors).all()
        assert torch.isfinite(logits.grad).all()


def test_the_grid_of_the_tasks_is_that_of_the_groups():
    assert (len(GROUPS["users"].user_groups), len(GROUPS["items"].item_groups)) == SHAPE
