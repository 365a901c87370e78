"""Each method's losses on one batch that is the whole log and the whole grid, against loops over all pairs."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
import torch
from method_worlds import EVERY, PAPER, RATES, Pieces, full_log
from method_worlds import validate_often as validate_often

import verirec as vr
from plain_formulas import methods as plain
from verirec.methods import catalogue

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


SEEDS = (0, 1)
KNOWN = tuple(plain.PREDICTION)
"""Methods with plain formulas."""
CORRECTABLE = tuple(name for name in KNOWN if catalogue[name].takes_correction)
STATEFUL = ("t-mf", "lcd-mf", "tdr")
"""What their loss finds out in one batch it remembers for the next."""


def world(seed):
    return vr.simulate.world(9, 11, observed=0.5, random_state=seed)


def pieces(name, seed=0, **parameters):
    """A method in pieces, its models somewhere, and these as plain matrices."""
    its = world(seed)
    fit = {"propensities": np.clip(its.propensities, 0.1, 0.9)}
    if parameters.get("correction", catalogue[name]().correction) != "none":
        fit["noise_rates"] = RATES
    made = Pieces(name, its.log, fit=fit, **parameters)
    options = {key: value for key, value in made.method.get_params().items() if isinstance(value, float)}
    if name == "lcd-mf":
        made.models.epoch = 16
        made.models.state["outputs"].copy_(torch.linspace(0.05, 0.95, len(made.data.log)))
        rows = zip(made.data.log.users, made.data.log.items, made.models.state["outputs"].tolist(), strict=True)
        trust = made.method.most * 16 / made.method.warm_up
        options |= {"trust": trust, "averages": {(int(u), int(i)): value for u, i, value in rows}}
    if name == "t-mf":
        made.models.state["steps"] = torch.tensor(7)
        options["dropped"] = min(made.method.drop_rate * 7, made.method.drop_most)
    return made, made.plain(**options)


def close(found, expected):
    assert float(found.detach()) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_there_is_a_plain_formula_for_every_method_of_the_paper():
    assert set(PAPER) <= set(plain.PREDICTION)
    learns_labels = {name for name in plain.PREDICTION if "imputation" in catalogue[name]().extra_models()}
    # MR has more than one, with weights of their own.
    assert set(plain.IMPUTATION) == learns_labels - {"mr"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("name", KNOWN)
def test_the_prediction_model_minimises_its_plain_formula(name, loss, seed):
    more = {"drop_rate": 0.05, "drop_most": 0.4} if name == "t-mf" else {}
    made, state = pieces(name, seed, loss=loss, **more)
    expected = plain.PREDICTION[name](state)
    if name in ("ips-v2", "dr-v2"):
        expected += plain.joint_loss(state, made.probabilities("propensity"))
    close(made.loss(), expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("correction", "loss"), [("surrogate", "log"), ("surrogate", "squared"), ("forward", "log")])
@pytest.mark.parametrize("name", CORRECTABLE)
def test_any_method_that_takes_one_is_corrected_by_the_same_formula(name, correction, loss, seed):
    made, state = pieces(name, seed, correction=correction, loss=loss)
    assert state.rates == (RATES.rho01, RATES.rho10)
    assert state.forward == (correction == "forward")
    close(made.loss(), plain.PREDICTION[name](state))
    if name in plain.IMPUTATION:
        close(made.loss_of("imputation_loss"), plain.imputation_loss(name, state))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("name", plain.IMPUTATION)
def test_the_imputation_model_minimises_its_plain_formula(name, loss, seed):
    """With the weights of SDR and DR-V2, and TDR's epsilon, that a step takes."""
    made, state = pieces(name, seed, loss=loss)
    if name == "tdr":
        made.loss()
        state.options["epsilon"] = plain.tdr_epsilon(state)
        assert float(made.models.state["epsilon"]) == pytest.approx(state.options["epsilon"], rel=1e-4)
    close(made.loss_of("imputation_loss"), plain.imputation_loss(name, state))


@pytest.mark.parametrize("name", [name for name in plain.IMPUTATION if catalogue[name]().correction == "none"])
def test_a_step_takes_the_losses_that_the_formulas_give(name):
    """As TDR finds its epsilon within the step."""
    made, _ = pieces(name)
    made.stand_still()
    state = made.plain(**{key: value for key, value in made.method.get_params().items() if isinstance(value, float)})
    if name == "tdr":
        state.options["epsilon"] = plain.tdr_epsilon(state)
    losses = made.step()
    close(losses["imputation_loss"], plain.imputation_loss(name, state))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by_popularity", [True, False])
def test_each_imputation_of_mr_has_its_own_weights(by_popularity, seed):
    made, state = pieces("mr", seed, by_popularity=by_popularity)
    made.stand_still()
    losses = made.step()
    close(losses["imputation_loss"], plain.squares(state, plain.by_inverse))
    if by_popularity:
        second = replace(state, g=state.second_g, p=state.second_p)
        close(losses["second_imputation_loss"], plain.squares(second, plain.by_inverse))
    assert ("second_imputation_loss" in losses) == by_popularity
    close(losses["loss"], plain.mr(state))


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_adversary_climbs_the_discrepancy(loss, steps):
    made, state = pieces("damf", loss=loss, adversary_steps=steps)
    close(made.loss_of("discrepancy"), plain.discrepancy(state))
    before = float(made.loss_of("discrepancy").detach())
    made.models.by_name["prediction"].optimiser.learning_rate = 0.0
    adversary = made.models.by_name["adversary"]
    adversary.decay.zero_()
    adversary.optimiser.learning_rate = 1e-3
    losses = made.step()
    assert float(losses["discrepancy"]) == pytest.approx(before, abs=2e-2)
    assert float(made.loss_of("discrepancy").detach()) > before
    assert int(adversary.optimiser.moments["step"]) == steps


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("floor", [0.02, 0.45])
@pytest.mark.parametrize("name", ["sdr", "ips-v2", "dr-v2"])
def test_learnt_propensities_minimise_their_plain_formula(name, floor, seed):
    made, state = pieces(name, seed, propensity_floor=floor, balance_weight=0.7)
    raw = made.probabilities("propensity")
    if name == "sdr":
        close(made.objective.balance(made.models, made.batch), plain.stable_balance(state))
        expected = plain.selection_loss(state, raw) + 0.7 * plain.stable_balance(state) ** 2
        close(made.loss_of("propensity_loss"), expected)
    else:
        close(made.objective.joint_loss(made.models, made.batch), plain.joint_loss(state, raw))


@pytest.mark.parametrize("name", ["sdr", "ips-v2", "dr-v2"])
def test_a_step_takes_the_sum_of_these_losses(name):
    made, state = pieces(name, balance_weight=0.7)
    raw = made.probabilities("propensity")
    made.stand_still()
    losses = made.step()
    if name == "sdr":
        close(losses["propensity_loss"], plain.selection_loss(state, raw) + 0.7 * plain.stable_balance(state) ** 2)
        close(losses["loss"], plain.sdr(state))
    else:
        close(losses["loss"], plain.PREDICTION[name](state) + plain.joint_loss(state, raw))


MOVED = {
    "dib": {"loss": {"prediction", "biased"}},
    "damf": {"discrepancy": {"adversary"}, "loss": {"prediction"}},
    "ips-v2": {"loss": {"prediction", "propensity"}},
    "dr-v2": {"loss": {"prediction", "propensity"}, "imputation_loss": {"imputation"}},
    "sdr": {"propensity_loss": {"propensity"}, "imputation_loss": {"imputation"}, "loss": {"prediction"}},
    "mr": {"loss": {"prediction"}, **{f"{one}_loss": {one} for one in ("imputation", "second_imputation")}},
}
"""What each loss moves, where it is not the prediction model and then, if there is one, the imputation model."""


@pytest.mark.parametrize("name", PAPER)
def test_each_loss_moves_its_own_models_alone(name):
    made, _ = pieces(name)
    usual = {"loss": {"prediction"}} | ({"imputation_loss": {"imputation"}} if name in plain.IMPUTATION else {})
    found = {step.name: made.moved_by(step.loss(made.models, made.batch)) for step in made.objective.steps}
    assert found == MOVED.get(name, usual)
    assert list(found) == list(MOVED.get(name, usual))


@pytest.mark.parametrize("name", EVERY)
def test_a_step_trains_what_its_loss_moves_and_every_model_has_one(name):
    made, _ = pieces(name)
    trained = set()
    for step in made.objective.steps:
        assert made.moved_by(step.loss(made.models, made.batch)) == set(step.trained)
        trained |= set(step.trained)
    assert trained == set(made.all_models)
    (own,) = (step for step in made.objective.steps if "prediction" in step.trained)
    assert own.name == "loss"


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("t-mf", "r-mf", "lcd-mf")])
def test_the_gradient_is_that_of_the_plain_formula(name):
    """By moving the one constant that all logits share: T-MF's, R-MF's and LCD-MF's weights are held fixed."""
    made, state = pieces(name)
    (slope,) = torch.autograd.grad(made.loss(), [made.f.constant])
    values = []
    for shift in (-1e-4, 1e-4):
        odds = state.f / (1 - state.f) * np.exp(shift)
        moved = replace(state, f=odds / (1 + odds))
        more = plain.joint_loss(moved, made.probabilities("propensity")) if name in ("ips-v2", "dr-v2") else 0.0
        values.append(plain.PREDICTION[name](moved) + more)
    assert float(slope) == pytest.approx((values[1] - values[0]) / 2e-4, rel=1e-3, abs=1e-5)


def test_the_weights_of_r_mf_move_unless_they_are_detached():
    slopes = {}
    for detach in (True, False):
        made, state = pieces("r-mf", beta=0.8, detach=detach)
        (slope,) = torch.autograd.grad(made.loss(), [made.f.constant])
        slopes[detach] = float(slope)
    values = []
    for shift in (-1e-4, 1e-4):
        odds = state.f / (1 - state.f) * np.exp(shift)
        values.append(plain.r_mf(replace(state, f=odds / (1 + odds))))
    assert slopes[False] == pytest.approx((values[1] - values[0]) / 2e-4, rel=1e-3)
    assert slopes[True] != pytest.approx(slopes[False], rel=1e-2)


def test_t_mf_drops_more_with_every_step_and_no_more_than_its_most():
    made, state = pieces("t-mf", drop_rate=0.05, drop_most=0.17)
    made.models.state.update(made.objective.initial_state())
    for step in range(6):
        state.options["dropped"] = min(0.05 * step, 0.17)
        close(made.loss(), plain.t_mf(state))


def test_lcd_mf_remembers_its_outputs_and_trusts_them_more_with_every_epoch():
    made, state = pieces("lcd-mf", warm_up=4, most=0.6, memory=0.7)
    made.models.state.update(made.objective.initial_state())
    state.options["averages"] = dict(state.labels)
    for epoch, trust in enumerate((0.0, 0.15, 0.3, 0.45, 0.6, 0.6)):
        made.models.epoch = epoch
        state.options["trust"] = trust
        close(made.loss(), plain.lcd_mf(state))
        averages = state.options["averages"]
        state.options["averages"] = {c: 0.7 * value + 0.3 * state.f[c] for c, value in averages.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_mr_is_dr_with_its_own_imputed_errors_for_every_propensity_at_once(seed):
    made, state = pieces("mr", seed, ridge=1e-9)
    eta = plain.mr_eta(state)
    rows = np.array([plain.candidates(state, cell) for cell in state.labels])
    missed = np.array([state.error(cell) for cell in state.labels]) - rows @ eta
    np.testing.assert_allclose(rows.T @ missed, 0, atol=1e-5 * np.abs(rows).sum())
    found = float(made.loss().detach())
    for p in (state.p, state.second_p):
        as_dr = plain.identity(state, lambda c, p=p: 1 / p[c], lambda c: float(plain.candidates(state, c) @ eta))
        assert found == pytest.approx(as_dr, rel=2e-3)


def test_propensities_are_those_of_the_rows_that_are_trained_on():
    its = world(0)
    data = Pieces("ips", its.log, fit={"propensities": its.propensities}).data
    share = len(data.log) / len(its.log)
    assert share == pytest.approx(0.8, abs=0.02)
    found = data.propensities.block(np.arange(9), np.arange(11))
    np.testing.assert_allclose(found, share * its.propensities)
    np.testing.assert_allclose(data.weights.numpy(), 1 / found[data.log.users, data.log.items], rtol=1e-6)


def test_the_balance_of_sdr_is_0_where_a_full_log_has_weights_of_1():
    made = Pieces("sdr", full_log(), validation=0, penalty_factors=20.0, fit={"propensities": np.ones((12, 15))})
    of_one = replace(made.objective, floor=1.0)
    assert float(of_one.balance(made.models, made.batch).detach()) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", CORRECTABLE)
def test_rates_of_groups_correct_each_row_with_its_own(name):
    its = world(3)
    of_group = (vr.NoiseRates(0.1, 0.05), vr.NoiseRates(0.3, 0.2))
    groups = np.arange(9) % 2
    rates = vr.GroupedNoiseRates(of_group, user_groups=groups)
    fit = {"propensities": np.clip(its.propensities, 0.1, 0.9), "noise_rates": rates}
    made = Pieces(name, its.log, fit=fit, correction="surrogate")
    options = {key: value for key, value in made.method.get_params().items() if isinstance(value, float)}
    state = replace(made.plain(**options), rates=(0.1, 0.05))

    class OfGroups(plain.State):
        def corrected_label(self, cell):
            one = of_group[groups[cell[0]]]
            return plain.State.corrected_label(replace(state, rates=(one.rho01, one.rho10)), cell)

        def error(self, cell):
            one = of_group[groups[cell[0]]]
            return plain.State.error(replace(state, rates=(one.rho01, one.rho10)), cell)

    grouped = OfGroups(**vars(state))
    close(made.loss(), plain.PREDICTION[name](grouped))
    if name in plain.IMPUTATION:
        close(made.loss_of("imputation_loss"), plain.imputation_loss(name, grouped))


# Objectives are pure


@pytest.mark.parametrize("name", EVERY)
def test_the_same_models_and_the_same_batch_have_the_same_losses(name):
    made, _ = pieces(name)
    before = {one: model.state_dict() for one, model in made.all_models.items()}
    before = {one: {key: value.clone() for key, value in state.items()} for one, state in before.items()}
    if name in STATEFUL:
        assert made.objective.initial_state()
        made.models.state.update(made.objective.initial_state())
    else:
        assert made.objective.initial_state() == {}
    for step in made.objective.steps:
        if name not in STATEFUL:
            assert torch.equal(step.loss(made.models, made.batch), step.loss(made.models, made.batch))
    first = made.loss().detach()
    made.models.state.update(made.objective.initial_state())
    assert torch.equal(made.loss().detach(), first)
    assert set(made.models.state) == set(made.objective.initial_state())
    for one, state in before.items():
        assert all(torch.equal(value, made.models[one].state_dict()[key]) for key, value in state.items())


@pytest.mark.parametrize("name", ["t-mf", "lcd-mf", "tdr"])
def test_a_state_to_start_from_is_new_each_time(name):
    made, _ = pieces(name, drop_rate=0.05) if name == "t-mf" else pieces(name)
    (key,) = made.objective.initial_state()
    expected = made.objective.initial_state()[key].clone()
    made.models.state.update(made.objective.initial_state())
    made.loss()
    assert torch.equal(made.objective.initial_state()[key], expected)
    assert not torch.equal(made.models.state[key], expected)


@pytest.mark.parametrize("name", EVERY)
def test_objectives_are_frozen_and_another_correction_is_another_objective(name):
    made, _ = pieces(name)
    for one in fields(made.objective):
        with pytest.raises(FrozenInstanceError):
            setattr(made.objective, one.name, None)
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.objective.something = 1
    correction = made.objective.correction
    other = made.objective.corrected(type(correction)(**vars(correction)))
    assert other is not made.objective
    assert type(other) is type(made.objective)
    assert made.objective.correction is correction is not other.correction
