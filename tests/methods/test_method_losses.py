"""Each method's losses on one batch that is the whole log and the whole grid, against loops over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from method_worlds import DENOISING, EVERY, RATES, built, full_log, probabilities, state_of, whole_batch
from method_worlds import judge_often as judge_often

import verirec as vr
from plain_formulas import methods as plain
from verirec.methods import catalogue

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


SEEDS = (0, 1)


def world(seed):
    return vr.simulate.world(9, 11, observed=0.5, random_state=seed)


def caught(name, seed=0, **parameters):
    """A method in the middle of training, and its state in plain matrices."""
    its = world(seed)
    fit = {"propensities": np.clip(its.propensities, 0.1, 0.9)}
    if catalogue[name].corrects:
        fit["noise_rates"] = RATES
    method = built(name, its.log, fit=fit, **parameters)
    options = {key: value for key, value in method.get_params().items() if isinstance(value, float)}
    if name == "lcd-mf":
        rows = zip(method.task_.log.users, method.task_.log.items, method.outputs_.tolist(), strict=True)
        options |= {"trust": method.trust_, "averages": {(int(u), int(i)): value for u, i, value in rows}}
    if name == "t-mf":
        options["dropped"] = min(method.drop_rate * method.steps_, method.drop_most)
    return method, state_of(method, **options)


def close(found, expected):
    assert float(found.detach()) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_there_is_a_plain_formula_for_every_method():
    assert set(plain.PREDICTION) == set(EVERY)
    assert set(plain.IMPUTATION) == {name for name in EVERY if hasattr(catalogue[name], "imputation_loss")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("name", EVERY)
def test_the_prediction_model_minimises_its_plain_formula(name, loss, seed):
    more = {"drop_rate": 0.1, "drop_most": 0.4} if name == "t-mf" else {}
    method, state = caught(name, seed, loss=loss, **more)
    if name == "lcd-mf":
        method.trust_ = state.options["trust"] = 0.4
    close(method.prediction_loss(whole_batch(method)), plain.PREDICTION[name](state))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DENOISING)
def test_the_forward_correction_is_the_log_loss_of_what_noise_leaves(name, seed):
    method, state = caught(name, seed, correction="forward")
    assert state.forward
    close(method.prediction_loss(whole_batch(method)), plain.PREDICTION[name](state))
    if name in plain.IMPUTATION:
        close(method.imputation_loss(whole_batch(method)), plain.imputation_loss(name, state))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("name", plain.IMPUTATION)
def test_the_imputation_model_minimises_its_plain_formula(name, loss, seed):
    method, state = caught(name, seed, loss=loss)
    batch = whole_batch(method)
    if name == "tdr":
        method.prediction_loss(batch)
        state.options["epsilon"] = plain.tdr_epsilon(state)
        assert float(method.epsilon_) == pytest.approx(state.options["epsilon"], rel=1e-4)
    if name in ("sdr", "dr-v2"):
        learnt = torch.tensor(1 / state.learnt_p[method.task_.log.users, method.task_.log.items], dtype=torch.float32)
        batch = batch._replace(weights=learnt)
    close(method.imputation_loss(batch), plain.imputation_loss(name, state))


@pytest.mark.parametrize("name", [name for name in plain.IMPUTATION if not catalogue[name].corrects])
def test_a_step_takes_the_loss_of_the_imputation_model_that_the_formula_gives(name):
    """As SDR and DR-V2 give their own weights, and TDR its epsilon, within the step."""
    method, _ = caught(name)
    for learner in method.learners().values():
        learner.optimiser.param_groups[0]["lr"] = 0.0
    options = {key: value for key, value in method.get_params().items() if isinstance(value, float)}
    state = state_of(method, **options)
    if name == "tdr":
        state.options["epsilon"] = plain.tdr_epsilon(state)
    losses = method.step(whole_batch(method))
    close(losses["imputation_loss"], plain.imputation_loss(name, state))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by_popularity", [True, False])
def test_each_imputation_of_mr_has_its_own_weights(by_popularity, seed):
    method, state = caught("mr", seed, by_popularity=by_popularity)
    for learner in method.learners().values():
        learner.optimiser.param_groups[0]["lr"] = 0.0
    losses = method.step(whole_batch(method))
    both = [plain.squares(state, plain.by_inverse)]
    if by_popularity:
        both.append(plain.squares(replace(state, g=state.second_g, p=state.second_p), plain.by_inverse))
    close(losses["imputation_loss"], sum(both) / len(both))
    close(losses["loss"], plain.mr(state))


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_adversary_climbs_the_discrepancy(loss, steps):
    method, state = caught("damf", loss=loss, adversary_steps=steps)
    batch = whole_batch(method)
    close(method.discrepancy(batch, of_f=False), plain.discrepancy(state))
    before = float(method.discrepancy(batch, of_f=False).detach())
    method.prediction_.optimiser.param_groups[0]["lr"] = 0.0
    method.adversary_.decay.zero_()
    method.adversary_.optimiser.state.clear()
    method.adversary_.optimiser.param_groups[0]["lr"] = 1e-3
    losses = method.step(batch)
    assert float(losses["discrepancy"]) == pytest.approx(before, abs=2e-2)
    assert float(method.discrepancy(batch, of_f=False).detach()) > before


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("floor", [0.02, 0.45])
@pytest.mark.parametrize("name", ["sdr", "ips-v2", "dr-v2"])
def test_learnt_propensities_minimise_their_plain_formula(name, floor, seed):
    method, state = caught(name, seed, propensity_floor=floor, balance_weight=0.7)
    raw = probabilities(method, method.propensity_.model)
    batch = whole_batch(method)
    close(method.propensity_loss(batch), plain.selection_loss(state, raw))
    if name == "sdr":
        close(method.balance(batch), plain.stable_balance(state))
    else:
        close(method.joint_loss(batch), plain.joint_loss(state, raw))


@pytest.mark.parametrize("name", ["sdr", "ips-v2", "dr-v2"])
def test_a_step_takes_the_sum_of_these_losses(name):
    method, state = caught(name, balance_weight=0.7)
    raw = probabilities(method, method.propensity_.model)
    for learner in method.learners().values():
        learner.optimiser.param_groups[0]["lr"] = 0.0
    losses = method.step(whole_batch(method))
    if name == "sdr":
        close(losses["propensity_loss"], plain.selection_loss(state, raw) + 0.7 * plain.stable_balance(state) ** 2)
        close(losses["loss"], plain.sdr(state))
    else:
        close(losses["loss"], plain.PREDICTION[name](state) + plain.joint_loss(state, raw))


MOVED_BY_PREDICTIONS = {"dib": {"prediction", "biased"}}


@pytest.mark.parametrize("name", EVERY)
def test_the_prediction_loss_moves_the_prediction_model_alone(name):
    method, _ = caught(name)
    loss = method.prediction_loss(whole_batch(method))
    moved = set()
    for learner_name, learner in method.learners().items():
        gradients = torch.autograd.grad(loss, list(learner.model.parameters()), retain_graph=True, allow_unused=True)
        if any(one is not None and bool((one != 0).any()) for one in gradients):
            moved.add(learner_name)
    assert moved == MOVED_BY_PREDICTIONS.get(name, {"prediction"})


@pytest.mark.parametrize("name", plain.IMPUTATION)
def test_the_imputation_loss_moves_the_imputation_model_alone(name):
    method, _ = caught(name)
    if name == "tdr":
        method.prediction_loss(whole_batch(method))
    loss = method.imputation_loss(whole_batch(method))
    for learner_name, learner in method.learners().items():
        gradients = torch.autograd.grad(loss, list(learner.model.parameters()), retain_graph=True, allow_unused=True)
        assert any(one is not None for one in gradients) == (learner_name == "imputation")


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("t-mf", "r-mf", "lcd-mf")])
def test_the_gradient_is_that_of_the_plain_formula(name):
    """By moving the one constant that all logits share: T-MF's, R-MF's and LCD-MF's weights are held fixed."""
    method, state = caught(name)
    loss = method.prediction_loss(whole_batch(method))
    (slope,) = torch.autograd.grad(loss, [method.f.constant])
    values = []
    for shift in (-1e-4, 1e-4):
        odds = state.f / (1 - state.f) * np.exp(shift)
        values.append(plain.PREDICTION[name](replace(state, f=odds / (1 + odds))))
    assert float(slope) == pytest.approx((values[1] - values[0]) / 2e-4, rel=1e-3, abs=1e-5)


def test_the_weights_of_r_mf_move_unless_they_are_detached():
    slopes = {}
    for detach in (True, False):
        method, state = caught("r-mf", beta=0.8, detach=detach)
        (slope,) = torch.autograd.grad(method.prediction_loss(whole_batch(method)), [method.f.constant])
        slopes[detach] = float(slope)
    values = []
    for shift in (-1e-4, 1e-4):
        odds = state.f / (1 - state.f) * np.exp(shift)
        values.append(plain.r_mf(replace(state, f=odds / (1 + odds))))
    assert slopes[False] == pytest.approx((values[1] - values[0]) / 2e-4, rel=1e-3)
    assert slopes[True] != pytest.approx(slopes[False], rel=1e-2)


def test_t_mf_drops_more_with_every_step_and_no_more_than_its_most():
    method, state = caught("t-mf", drop_rate=0.05, drop_most=0.17)
    method.steps_ = 0
    batch = whole_batch(method)
    for step in range(6):
        state.options["dropped"] = min(0.05 * step, 0.17)
        close(method.prediction_loss(batch), plain.t_mf(state))


def test_lcd_mf_remembers_its_outputs_and_trusts_them_more_with_every_epoch():
    method, state = caught("lcd-mf", warm_up=4, most=0.6, memory=0.7)
    batch = whole_batch(method)
    for epoch, trust in enumerate((0.0, 0.15, 0.3, 0.45, 0.6, 0.6)):
        method.begin_epoch(epoch)
        state.options["trust"] = trust
        close(method.prediction_loss(batch), plain.lcd_mf(state))
        averages = state.options["averages"]
        state.options["averages"] = {c: 0.7 * value + 0.3 * state.f[c] for c, value in averages.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_mr_is_dr_with_its_own_imputed_errors_for_every_propensity_at_once(seed):
    method, state = caught("mr", seed, ridge=1e-9)
    eta = plain.mr_eta(state)
    rows = np.array([plain.candidates(state, cell) for cell in state.labels])
    missed = np.array([state.error(cell) for cell in state.labels]) - rows @ eta
    np.testing.assert_allclose(rows.T @ missed, 0, atol=1e-5 * np.abs(rows).sum())
    found = float(method.prediction_loss(whole_batch(method)).detach())
    for p in (state.p, state.second_p):
        as_dr = plain.identity(state, lambda c, p=p: 1 / p[c], lambda c: float(plain.candidates(state, c) @ eta))
        assert found == pytest.approx(as_dr, rel=2e-3)


def test_propensities_are_those_of_the_rows_that_are_trained_on():
    its = world(0)
    method = built("ips", its.log, fit={"propensities": its.propensities})
    share = len(method.task_.log) / len(its.log)
    assert share == pytest.approx(0.8, abs=0.02)
    found = method.task_.propensities.block(np.arange(9), np.arange(11))
    np.testing.assert_allclose(found, share * its.propensities)
    np.testing.assert_allclose(
        method.task_.weights.numpy(), 1 / found[method.task_.log.users, method.task_.log.items], rtol=1e-6
    )


def test_the_balance_of_sdr_is_0_where_a_full_log_has_weights_of_1():
    log = full_log()
    method = built("sdr", log, validation=0, penalty_factors=20.0, fit={"propensities": np.ones((12, 15))})
    method.floor_ = 1.0
    assert float(method.balance(whole_batch(method)).detach()) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["ome", "ome-ips", "ome-eib", "ome-dr"])
def test_rates_of_groups_correct_each_row_with_its_own(name):
    its = world(3)
    of_group = (vr.NoiseRates(0.1, 0.05), vr.NoiseRates(0.3, 0.2))
    groups = np.arange(9) % 2
    rates = vr.GroupedNoiseRates(of_group, user_groups=groups)
    method = built(name, its.log, fit={"propensities": np.clip(its.propensities, 0.1, 0.9), "noise_rates": rates})
    method.noise_rates_ = of_group[0]
    state = state_of(method)

    class OfGroups(plain.State):
        def error(self, cell):
            one = of_group[groups[cell[0]]]
            return plain.State.error(replace(state, rates=(one.rho01, one.rho10)), cell)

    grouped = OfGroups(**vars(state))
    close(method.prediction_loss(whole_batch(method)), plain.PREDICTION[name](grouped))
