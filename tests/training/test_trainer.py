"""The loop: when it stops, what it keeps, what it says when a loss runs away, and going on from a checkpoint."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

from refusals import check_refusal
from training.tasks import a_log, a_task, known_propensities
from verirec import GivenPropensity, NoiseRates
from verirec.exceptions import DivergenceWarning, ModelFileError, TrainingError
from verirec.models import FactorModel, Penalties
from verirec.training.checkpoints import read_tensors, write_tensors
from verirec.training.heads import BinaryHead
from verirec.training.learner import Learner, Learners, minimise_together
from verirec.training.losses import LogLoss
from verirec.training.schedule import RateSchedule
from verirec.training.solvers.gradient import GradientSolver
from verirec.training.threads import one_thread
from verirec.training.trainer import Plan, Trainer
from verirec.training.validation import Validator

SHAPE = 7, 9
STEPS = 5
ADVICE = "lower learning_rate, raise the penalties or, of methods that have it, take correction='forward'"


class Fake:
    """A solver of two models that learn from each other, a count that matters, and a loss that can be made to go wrong.

    It is validated after every epoch, though that has few steps.
    """

    name, validation_interval, converged, long_epochs = "fake", STEPS, False, False

    def __init__(self, wrong=(None, math.nan), fact=0.5, which="loss"):
        random = torch.Generator().manual_seed(3)
        self.first, self.second = (
            Learner(FactorModel(*SHAPE, 2, random=random), Penalties(0.1, 0.1, 0.1), 0.02) for _ in range(2)
        )
        self.models = Learners({"prediction": self.first, "second": self.second}, {"count": torch.tensor(0)})
        self.wrong, self.fact, self.which = wrong, fact, which
        self.objective = self
        self.epochs, self.threads, self.corrections = [], set(), []

    @property
    def count(self):
        return int(self.models.state["count"])

    def correct(self, correction):
        self.corrections.append(correction)

    def train_epoch(self, epoch, after_prediction):
        self.epochs.append(epoch)
        assert self.models.epoch == epoch
        yield from (self.step(batch) for batch in self.data.batches(epoch))

    def step(self, batch):
        self.models.state["count"] = self.models.state["count"] + 1
        self.threads.add(torch.get_num_threads())
        logits = [batch.on_rows(learner.model) for learner in (self.first, self.second)]
        loss = LogLoss()(logits[0], batch.labels).mean() + ((logits[0] - logits[1]) ** 2).mean() / self.count
        found = minimise_together(loss, self.first, self.second)
        own = self.second.minimise(LogLoss()(batch.on_rows(self.second.model), batch.labels).mean())
        losses = {"loss": found, "second_loss": own}
        if len(self.epochs) and self.epochs[-1] + 1 == self.wrong[0]:
            losses[self.which] = losses[self.which] + self.wrong[1]
        return losses

    def facts(self, models):
        return {"fact": self.fact}


class Values:
    """A validator with a mind of its own: the n-th validation is the n-th value, and the last ever after."""

    def __init__(self, *values):
        self.values, self.states, self.modes = list(values), [], []

    def __call__(self, model):
        self.states.append({name: value.clone() for name, value in model.state_dict().items()})
        self.modes.append(model.training)
        return self.values[min(len(self.states), len(self.values)) - 1]


def task(batch_size=10, seed=0):
    return a_task(a_log(50), batch_size=batch_size, seed=seed)


def a_validator():
    log = a_log(20, seed=9)
    return Validator(log, GivenPropensity(known_propensities()).on_grid(SHAPE), "snips", None, BinaryHead(), 0)


def run(solver, validator, patience=None, epochs=4, batch_size=10, schedule=None, **plan):
    solver.data = task(batch_size)
    schedule = RateSchedule("none", BinaryHead(), None, solver.data) if schedule is None else schedule
    return Trainer("fake", solver, schedule, validator, solver.data.cold, patience, Plan(epochs, **plan)).run()


def state_of(solver):
    return {name: value.clone() for name, value in solver.first.model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


# When it stops, and what it keeps


def test_without_a_validator_all_epochs_are_run_and_the_last_state_kept():
    solver, told = Fake(), []
    outcome = run(solver, None, patience=1, epochs=3, progress=lambda *event: told.append(event))
    assert outcome.reason == "all 3 epochs"
    assert outcome.best_epoch == 3
    assert math.isnan(outcome.best_value)
    assert solver.epochs == [0, 1, 2]
    assert solver.count == 3 * STEPS
    assert [event[:2] for event in told] == [(1, 3), (2, 3), (3, 3)]
    assert all(math.isnan(event[2]) for event in told)
    assert [set(entry) for entry in outcome.history] == [{"loss", "second_loss", "fact"}] * 3


def test_steps_are_those_of_the_tasks_batches():
    solver, by_hand = Fake(), Fake()
    outcome = run(solver, None, epochs=2)
    with one_thread():
        for epoch in range(2):
            by_hand.models.epoch = epoch
            losses = [by_hand.step(batch) for batch in task().batches(epoch)]
            for name in ("loss", "second_loss"):
                mean = sum(float(one[name]) for one in losses) / STEPS
                assert outcome.history[epoch][name] == pytest.approx(mean, rel=1e-5)
    assert same(state_of(solver), state_of(by_hand))


def test_patience_ends_it_and_the_best_state_is_kept():
    solver, validator, told = Fake(), Values(3, 1, 2, 2, 0), []
    outcome = run(solver, validator, patience=2, epochs=9, progress=lambda *event: told.append(event))
    assert outcome.reason == "no better validation error for 2 validations"
    assert (outcome.best_epoch, outcome.best_value) == (2, 1)
    assert told == [(1, 9, 3), (2, 9, 1), (3, 9, 2), (4, 9, 2)]
    assert [entry["validation_error"] for entry in outcome.history] == [3, 1, 2, 2]
    assert same(state_of(solver), validator.states[1])
    assert not same(validator.states[1], validator.states[3])


def test_epochs_end_it_and_the_best_state_is_kept():
    solver, validator = Fake(), Values(3, 1, 2)
    outcome = run(solver, validator, patience=9, epochs=3)
    assert outcome.reason == "all 3 epochs"
    assert (outcome.best_epoch, outcome.best_value) == (2, 1)
    assert same(state_of(solver), validator.states[1])


def test_without_patience_it_never_gives_up():
    outcome = run(Fake(), Values(1, 2), patience=None, epochs=6)
    assert outcome.reason == "all 6 epochs"
    assert (len(outcome.history), outcome.best_epoch) == (6, 1)


def test_patience_over_in_the_last_epoch_is_the_reason_given():
    assert run(Fake(), Values(1, 2), patience=2, epochs=3).reason == "no better validation error for 2 validations"


def test_a_validation_error_that_is_no_number_is_never_the_best():
    solver, validator = Fake(), Values(math.nan)
    outcome = run(solver, validator, patience=None, epochs=2)
    assert outcome.best_epoch == 2
    assert math.isnan(outcome.best_value)
    assert same(state_of(solver), validator.states[-1])


def test_models_are_validated_in_evaluation_mode_and_trained_in_training_mode():
    solver, validator = Fake(), Values(1)
    run(solver, validator, epochs=2)
    assert validator.modes == [False, False]
    assert solver.first.model.training


@pytest.mark.parametrize(("batch_size", "epochs", "validated"), [(1, 3, [1, 2, 3]), (5, 12, [5, 10, 12]), (50, 3, [3])])
def test_some_steps_pass_between_validations_and_the_last_epoch_is_validated(batch_size, epochs, validated, tmp_path):
    path, validator, written, solver = tmp_path / "x", Values(1), [], Fake()
    solver.validation_interval = GradientSolver.validation_interval

    def progress(epoch, *_):
        if path.exists() and (done := read_tensors(path)[1]["done"]) not in written:
            written.append(done)

    outcome = run(solver, validator, epochs=epochs, batch_size=batch_size, checkpoint=path, progress=progress)
    assert [epoch for epoch, entry in enumerate(outcome.history, 1) if "validation_error" in entry] == validated
    assert written == validated


class Converges(Fake):
    """Changes nothing any more from some epoch on."""

    def __init__(self, epoch):
        super().__init__()
        self.converges = epoch

    @property
    def converged(self):
        return self.count >= self.converges * STEPS


@pytest.mark.parametrize("between", [1, 1_000])
def test_what_has_converged_is_validated_once_more_and_over(between):
    solver, validator = Converges(3), Values(3, 2, 1)
    solver.validation_interval = between
    outcome = run(solver, validator, patience=9, epochs=9)
    assert outcome.reason == "converged"
    assert len(outcome.history) == outcome.best_epoch == 3
    assert "validation_error" in outcome.history[-1]
    assert len(validator.states) == (3 if between == 1 else 1)


def test_what_converges_in_the_last_epoch_has_converged():
    assert run(Converges(3), None, epochs=3).reason == "converged"
    assert run(Converges(4), None, epochs=3).reason == "all 3 epochs"


def test_patience_over_where_it_converges_is_the_reason_given():
    assert run(Converges(3), Values(1, 2), patience=2).reason == "no better validation error for 2 validations"


class Learnt(RateSchedule):
    """Rates that move with every epoch, and are first due in some epoch."""

    def __init__(self, data, due=1):
        super().__init__("surrogate", BinaryHead(), NoiseRates(0.0, 0.0), data)
        self.due, self.begun, self.finished = due, -1, 0

    @property
    def waiting(self):
        return self.begun < self.due

    def begin_epoch(self, epoch, model):
        self.begun = epoch
        self.use(NoiseRates(self.rates.rho01 + 0.01, 0.0))

    def state(self):
        return {"rate": torch.tensor(self.rates.rho01, dtype=torch.float64)}

    def load(self, state):
        self.use(NoiseRates(float(state["rate"]), 0.0))

    def finish(self):
        self.finished += 1


def test_what_has_converged_waits_for_rates_that_are_yet_to_be_learnt():
    schedule = Learnt(task(), due=5)
    outcome = run(Converges(2), None, epochs=9, schedule=schedule)
    assert (outcome.reason, len(outcome.history)) == ("converged", 6)
    assert [entry["rho01"] for entry in outcome.history] == pytest.approx([0.01 * n for n in range(1, 7)])
    assert schedule.finished == 1


def test_the_solver_hears_of_each_epochs_correction_before_it_trains():
    solver, schedule = Fake(), Learnt(task())
    run(solver, None, epochs=3, schedule=schedule)
    assert [one.rates.rho01 for one in solver.corrections] == pytest.approx([0.01, 0.02, 0.03])
    assert solver.corrections[-1] is schedule.correction


def test_rates_are_gone_on_with_from_a_checkpoint(tmp_path):
    plan = {"epochs": 6, "checkpoint": tmp_path / "x"}
    whole_run = run(Fake(), None, epochs=6, schedule=Learnt(task()))
    with pytest.raises(Stop):
        run(Fake(), None, schedule=Learnt(task()), progress=stop_after(3), **plan)
    again = run(Fake(), None, schedule=Learnt(task()), resume=True, **plan)
    assert repr(again) == repr(whole_run)


def test_what_has_converged_is_not_gone_on_with(tmp_path):
    plan = {"checkpoint": tmp_path / "x", "epochs": 9}
    first, again = Converges(2), Converges(2)
    run(first, None, **plan)
    outcome = run(again, None, resume=True, **plan)
    assert (outcome.reason, again.epochs) == ("converged", [])
    assert same(state_of(first), state_of(again))


# Divergence


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e4, -1e5])
def test_a_loss_that_runs_away_ends_it_with_the_best_state_and_advice(value):
    solver, validator = Fake(wrong=(3, value)), Values(3, 4)
    with pytest.warns(DivergenceWarning) as caught:
        outcome = run(solver, validator, epochs=9)
    (warning,) = caught
    assert str(warning.message) == f"fake diverged in epoch 3; the state of epoch 1 is kept. To train on: {ADVICE}"
    assert warning.filename == __file__
    assert outcome.reason == "diverged in epoch 3"
    assert (outcome.best_epoch, outcome.best_value, len(outcome.history)) == (1, 3, 3)
    assert "validation_error" not in outcome.history[-1]
    assert same(state_of(solver), validator.states[0])


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e5])
@pytest.mark.parametrize("validator", [None, Values(3), Values(math.nan)])
def test_a_loss_that_runs_away_before_anything_was_worth_keeping_is_an_error(value, validator):
    epoch = 1 if validator is None or validator.values == [3] else 2
    check_refusal(
        lambda: run(Fake(wrong=(epoch, value)), validator, epochs=9),
        TrainingError,
        f"^fake diverged in epoch {epoch}, before any state was worth keeping: {ADVICE}$".replace("(", r"\("),
    )


def test_a_fact_that_is_no_number_is_a_divergence_too():
    check_refusal(lambda: run(Fake(fact=math.nan), None), TrainingError, "diverged in epoch 1")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_another_loss_that_is_no_number_is_a_divergence_too(value):
    solver = Fake(wrong=(2, value), which="second_loss")
    check_refusal(lambda: run(solver, None), TrainingError, "diverged in epoch 2")


@pytest.mark.parametrize("value", [1e6, -1e6])
def test_only_the_loss_itself_is_held_to_a_limit(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = run(Fake(wrong=(2, value), which="second_loss", fact=value), None, epochs=3)
    assert outcome.reason == "all 3 epochs"
    assert abs(outcome.history[1]["second_loss"]) > 9e5
    assert [entry["fact"] for entry in outcome.history] == [value] * 3


class Broken(Fake):
    """Parameters that are lost in the very last step of an epoch, after all its losses."""

    def __init__(self, epoch, value):
        super().__init__()
        self.epoch, self.value = epoch, value

    def step(self, batch):
        losses = super().step(batch)
        if self.count == self.epoch * STEPS:
            with torch.no_grad():
                self.first.model.item_factors[1, 1] = self.value
        return losses


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("validator", [None, Values(math.nan)])
def test_parameters_that_are_not_finite_in_the_end_are_an_error(value, validator):
    check_refusal(
        lambda: run(Broken(3, value), validator, epochs=3), TrainingError, f"^fake diverged in epoch 3: {ADVICE}$"
    )


def test_parameters_that_are_lost_after_the_best_epoch_are_put_back():
    solver, validator = Broken(3, math.nan), Values(3, 1, 2)
    outcome = run(solver, validator, epochs=3)
    assert (outcome.best_epoch, outcome.best_value) == (2, 1)
    assert same(state_of(solver), validator.states[1])
    assert all(bool(torch.isfinite(value).all()) for value in state_of(solver).values())


def test_a_loss_that_stays_within_bounds_is_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(Fake(wrong=(2, 9e3)), None, epochs=3).reason == "all 3 epochs"


def test_a_diverged_epoch_is_not_written_down(tmp_path):
    with pytest.warns(DivergenceWarning):
        run(Fake(wrong=(3, math.nan)), Values(3), epochs=9, checkpoint=tmp_path / "x")
    assert read_tensors(tmp_path / "x")[1]["done"] == 2


# Checkpoints


class Stop(Exception):
    """The machine went off."""


def stop_after(last):
    def progress(epoch, *_):
        if epoch == last:
            raise Stop

    return progress


EPOCHS = 7


def whole(validator, **options):
    solver = Fake()
    return solver, run(solver, validator(), epochs=EPOCHS, **options)


def check_resumes(tmp_path, last, validator, **options):
    """Stop after an epoch, go on with everything made anew, and get what an uninterrupted run gets, bit for bit."""
    expected_solver, expected = whole(validator, **options)
    plan = {"checkpoint": tmp_path / "x", "key": "k", "epochs": EPOCHS} | options
    with pytest.raises(Stop):
        run(Fake(), validator(), progress=stop_after(last), **plan)
    solver, told = Fake(), []
    outcome = run(solver, validator(), resume=True, progress=lambda *event: told.append(event[0]), **plan)
    assert repr(outcome) == repr(expected)
    assert same(state_of(solver), state_of(expected_solver))
    for name, learner in solver.models.by_name.items():
        assert same(learner.state(), expected_solver.models.by_name[name].state()), name
    assert solver.count == expected_solver.count
    return told


LAST = [1, 2, 4, EPOCHS]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("validator", [a_validator, lambda: None], ids=["validated", "not validated"])
def test_going_on_from_any_epoch_is_as_if_never_stopped(tmp_path, last, validator):
    assert check_resumes(tmp_path, last, validator) == list(range(last + 1, EPOCHS + 1))


@pytest.mark.parametrize("last", range(1, EPOCHS))
def test_between_validations_it_goes_on_from_the_last_one(tmp_path, last):
    told = check_resumes(tmp_path, last, a_validator, batch_size=20)
    assert told == list(range(last - last % 2 + 1, EPOCHS + 1))


@pytest.mark.parametrize("last", [1, 2, 3])
def test_of_long_epochs_it_goes_on_from_the_last_one_validated_or_not(tmp_path, last, monkeypatch):
    monkeypatch.setattr(Fake, "long_epochs", True)
    told = check_resumes(tmp_path, last, a_validator, batch_size=20)
    assert told == list(range(last + 1, EPOCHS + 1))


@pytest.mark.parametrize("last", [1, 2, 3])
def test_patience_is_remembered(tmp_path, last):
    class Worse:
        """A better one in the first epoch only, by what the model is."""

        def __call__(self, model):
            return 1.0 + float((model.user_factors.detach() - Fake().first.model.user_factors.detach()).abs().sum())

    _, expected = whole(Worse, patience=2)
    assert expected.reason == "no better validation error for 2 validations"
    assert (expected.best_epoch, len(expected.history)) == (1, 3)
    # After the third epoch training is over, and nothing is left to do.
    assert check_resumes(tmp_path, last, Worse, patience=2) == list(range(last + 1, 4))


def test_a_checkpoint_is_only_gone_on_from_if_asked_to(tmp_path):
    plan = {"checkpoint": tmp_path / "x", "epochs": 2}
    first, again = Fake(), Fake()
    run(first, None, **plan)
    run(again, None, **plan)
    assert again.epochs == [0, 1]
    assert same(state_of(first), state_of(again))


def test_without_a_checkpoint_to_go_on_from_it_starts_at_the_start(tmp_path):
    solver = Fake()
    outcome = run(solver, None, epochs=2, resume=True, checkpoint=tmp_path / "new" / "x")
    assert solver.epochs == [0, 1]
    assert len(outcome.history) == 2
    assert run(Fake(), None, epochs=2, resume=True).reason == "all 2 epochs"


def test_checkpoints_of_another_run_are_refused(tmp_path):
    path = tmp_path / "x"
    run(Fake(), None, epochs=2, checkpoint=path, key="one")
    content = path.read_bytes()
    for key in ("another", ""):
        solver = Fake()
        check_refusal(
            lambda key=key, solver=solver: run(solver, None, checkpoint=path, key=key, resume=True),
            TrainingError,
            "of another run: method, parameters, log, noise rates, propensities and versions must be the same",
        )
        assert solver.epochs == []
        assert path.read_bytes() == content


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"not a checkpoint")
    check_refusal(lambda: run(Fake(), None, checkpoint=path, resume=True), ModelFileError, "damaged")
    write_tensors(path, {}, {"kind": "model"})
    check_refusal(lambda: run(Fake(), None, checkpoint=path, key="k", resume=True), TrainingError, "another run")


# Threads


@pytest.mark.parametrize("ends", ["well", "badly", "resuming"])
def test_training_is_on_one_thread_and_the_number_of_threads_put_back(tmp_path, ends):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        solver = Fake(wrong=(2 if ends == "badly" else None, math.nan))
        if ends == "well":
            run(solver, None, epochs=1)
        elif ends == "badly":
            with pytest.raises(TrainingError):
                run(solver, None)
        else:
            (tmp_path / "x").write_bytes(b"")
            with pytest.raises(ModelFileError):
                run(solver, None, checkpoint=tmp_path / "x", resume=True)
        assert torch.get_num_threads() == 2
        assert solver.threads <= {1}
    finally:
        torch.set_num_threads(before)


def test_training_leaves_global_random_numbers_alone():
    state = torch.get_rng_state()
    run(Fake(), a_validator(), epochs=1)
    assert torch.equal(torch.get_rng_state(), state)
