"""Noise corrections: the paper's surrogate, forward correction by hand; immutable, and all finite."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from scipy.special import expit

from plain_formulas.correction import surrogate
from refusals import check_refusal
from training.tasks import SHAPE, a_task
from verirec import GroupedNoiseRates, NoiseRates
from verirec.exceptions import ParameterError
from verirec.losses import get_loss
from verirec.training.correction import KINDS, Forward, NoCorrection, Surrogate, make_correction
from verirec.training.heads import BinaryHead
from verirec.training.losses import LOSSES, LogLoss
from verirec.training.schedule import RateSchedule

RATES = [NoiseRates(0.2, 0.1), NoiseRates(0, 0), NoiseRates(0.3, 0), NoiseRates(0, 0.45)]
GROUPS = {
    "users": GroupedNoiseRates([NoiseRates(0.2, 0.1), NoiseRates(0.05, 0.3)], user_groups=np.arange(7) % 2),
    "items": GroupedNoiseRates([NoiseRates(0, 0.1), NoiseRates(0.05, 0.3)], item_groups=np.arange(9) % 2),
}
LOGITS = torch.linspace(-6, 6, 25, dtype=torch.float64)
CORRECTIONS = [("none", "log"), ("none", "squared"), ("surrogate", "log"), ("surrogate", "squared"), ("forward", "log")]


def batches(data):
    """Give a task's batches with some logit for each of their rows."""
    for batch in data.batches(0):
        yield batch, LOGITS[batch.rows]


def forward(rates):
    return make_correction("forward", "log", rates, a_task())


@pytest.mark.parametrize("rates", [None, *RATES, *GROUPS.values()])
@pytest.mark.parametrize("name", LOSSES)
def test_without_correction_labels_are_taken_as_they_are(name, rates):
    data = a_task()
    plain = make_correction("none", name, rates, data)
    assert isinstance(plain, NoCorrection)
    for batch, logits in batches(data):
        expected = get_loss(name).of(expit(logits.numpy()), batch.labels.numpy())
        np.testing.assert_allclose(plain.errors(logits, batch).numpy(), expected, rtol=1e-6)
    assert plain.labels(data.all_rows).tolist() == data.log.labels.tolist()
    assert not plain.bounded
    assert torch.equal(plain.imputed(LOGITS, 0.3), LOSSES[name]()(LOGITS, 0.3))


@pytest.mark.parametrize("kind", KINDS)
def test_without_rates_there_is_nothing_to_correct(kind):
    assert isinstance(make_correction(kind, "log", None, a_task()), NoCorrection)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rates", [*RATES, *GROUPS.values()])
def test_the_surrogate_is_the_papers(name, rates):
    data = a_task()
    corrected = make_correction("surrogate", name, rates, data)
    seen = set()
    for batch, logits in batches(data):
        found = corrected.errors(logits, batch).numpy()
        rho01, rho10 = (np.broadcast_to(one, len(found)) for one in rates.of_pairs(batch.users, batch.items))
        for row, logit in enumerate(logits.numpy()):
            if_positive, if_negative = (float(half[0]) for half in get_loss(name).halves(expit([logit])))
            label = int(batch.labels[row])
            expected = surrogate(label, if_positive, if_negative, rho01[row], rho10[row])
            assert found[row] == pytest.approx(expected, rel=1e-5, abs=1e-6)
            seen.add(label)
    assert seen == {0, 1}
    for row, label in enumerate(corrected.labels(data.all_rows)):
        at = data.log.users[[row]], data.log.items[[row]]
        rho01, rho10 = (float(np.ravel(one)[0]) for one in rates.of_pairs(*at))
        # In float32, as training is.
        assert label.item() == pytest.approx((data.log.labels[row] - rho10) / (1 - rho01 - rho10), rel=1e-6)
    assert not corrected.bounded
    assert torch.equal(corrected.imputed(LOGITS, 0.3), LOSSES[name]()(LOGITS, 0.3))


@pytest.mark.parametrize(
    ("first", "second"), [(RATES[0], RATES[2]), (RATES[0], GROUPS["items"]), (GROUPS["users"], RATES[0])]
)
def test_other_rates_are_another_correction_and_leave_the_first_as_it_was(first, second):
    data = a_task()
    schedule = RateSchedule("surrogate", BinaryHead(), first, data)
    before = schedule.correction
    expected = [before.errors(logits, batch) for batch, logits in batches(data)]
    schedule.use(second)
    fresh = make_correction("surrogate", "log", second, data)
    for (batch, logits), once in zip(batches(data), expected, strict=True):
        assert torch.equal(schedule.correction.errors(logits, batch), fresh.errors(logits, batch))
        assert torch.equal(before.errors(logits, batch), once)
    assert schedule.rates is second


@pytest.mark.parametrize("kind", KINDS)
def test_corrections_are_frozen(kind):
    made = make_correction(kind, "log", RATES[0], a_task())
    for name in ("loss", "rates", "by_row"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(made, name, None)


@pytest.mark.parametrize("rates", RATES)
def test_forward_correction_is_the_log_loss_of_the_noisy_label(rates):
    made, data = forward(rates), a_task()
    assert isinstance(made, Forward)
    for batch, logits in batches(data):
        for logit, label, found in zip(logits, batch.labels, made.errors(logits, batch), strict=True):
            noisy = rates.rho10 + rates.kappa * expit(logit.item())
            assert found.item() == pytest.approx(-math.log(noisy if label == 1 else 1 - noisy), rel=1e-9, abs=1e-12)
    # Without one kind of noise a probability can be 0, and the loss is not bounded.
    assert made.bounded == (rates.rho01 > 0 and rates.rho10 > 0)


@pytest.mark.parametrize("soft", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("kind", "name"), CORRECTIONS)
def test_the_gap_is_the_error_less_the_imputed_one(kind, name, rates, soft):
    data = a_task()
    made = make_correction(kind, name, rates, data)
    for batch, logits in batches(data):
        labels = torch.full_like(logits, soft)
        expected = made.errors(logits, batch) - made.imputed(logits, labels)
        np.testing.assert_allclose(made.gap(logits, batch, labels), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rates", [RATES[0], *GROUPS.values()])
def test_labels_of_a_batch_are_those_of_its_rows_of_the_whole(rates):
    data = a_task()
    made = make_correction("surrogate", "log", rates, data)
    assert (made.by_row is None) == isinstance(rates, NoiseRates)
    every = made.labels(data.all_rows)
    for batch in data.batches(0):
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
    data = a_task(batch_size=100)
    batch = next(data.batches(0))
    unbounded = Surrogate(LogLoss(), rates)
    for logit in (-1e3, -30.0, 0.0, 30.0, 1e3):
        logits = torch.full((25,), logit, dtype=torch.float64)
        assert (forward(rates).errors(logits, batch) >= -1e-12).all()
        if rates.rho01 and logit == 1e3:
            assert unbounded.errors(logits, batch).min() < -100
        if rates.rho10 and logit == -1e3:
            assert unbounded.errors(logits, batch).min() < -100


def test_forward_correction_of_no_noise_is_the_plain_loss():
    data = a_task()
    for batch, logits in batches(data):
        expected = NoCorrection(LogLoss()).errors(logits, batch)
        assert torch.equal(forward(NoiseRates(0, 0)).errors(logits, batch), expected)
        assert torch.equal(forward(NoiseRates(0, 0)).imputed(logits, 0.25), LogLoss()(logits, 0.25))


def test_forward_correction_takes_one_pair_of_rates():
    check_refusal(lambda: forward(GROUPS["users"]), ParameterError, "one pair of noise rates for all pairs; got groups")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("kind", "name"), CORRECTIONS)
def test_extreme_logits_have_finite_losses_and_gradients(kind, name, rates, dtype):
    data = a_task(batch_size=100)
    made, batch = make_correction(kind, name, rates, data), next(data.batches(0))
    for logit in (-80.0, 80.0, -1e4, 1e4):
        logits = torch.full((25,), logit, dtype=dtype, requires_grad=True)
        errors = made.errors(logits, batch) + made.imputed(logits, 0.4)
        errors.sum().backward()
        assert torch.isfinite(errors).all()
        assert torch.isfinite(logits.grad).all()


def test_the_grid_of_the_tasks_is_that_of_the_groups():
    assert (len(GROUPS["users"].user_groups), len(GROUPS["items"].item_groups)) == SHAPE
