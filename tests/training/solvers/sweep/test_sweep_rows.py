"""Walks over rows: compiled and plain ones agree, on any number of threads, with rows or without."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sweep_worlds import PENALTIES, World, a_model

from training.tasks import a_log
from verirec import FeedbackLog
from verirec.methods import MF
from verirec.training.solvers.sweep import rows as rows_module
from verirec.training.solvers.sweep import torch_rows
from verirec.training.solvers.sweep.factor_blocks import FactorBlocks
from verirec.training.solvers.sweep.majorizers import CrossEntropy, Squares
from verirec.training.solvers.sweep.rows import Rows, compiled_rows

pytestmark = [
    pytest.mark.skipif(compiled_rows() is None, reason="numba is not installed"),
    # Once a process, by whoever is first; a test of its own looks for such arrays.
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable"),
]


def log_of(users, items, shape):
    return FeedbackLog.from_arrays(users, items, np.arange(len(users)) % 2, n_users=shape[0], n_items=shape[1])


def sparse_log():
    """The first, the last and most other users and items have no row."""
    return log_of([5, 3, 3, 5, 3], [2, 7, 2, 6, 4], (9, 11))


LOGS = {
    "some rows": a_log(60, (12, 9)),
    "most have no row": sparse_log(),
    "one row": log_of([1], [2], (3, 4)),
    "one user": log_of([0, 0, 0], [4, 0, 2], (1, 6)),
    "one item": log_of([4, 0, 2], [0, 0, 0], (6, 1)),
    "in order": log_of([0, 0, 1, 2, 2], [1, 3, 0, 2, 3], (4, 5)),
}
EVERY_LOG = pytest.mark.parametrize("which", LOGS)


@pytest.mark.parametrize(("model", "compiled"), [("features", True), ("mf", False)])
def test_a_log_in_the_order_of_users_makes_no_warning(model, compiled, monkeypatch):
    """Torch warns of arrays that are not writable, as a log's are, once a process: here it does so of each of them."""

    def checked(make):
        def call(values, *given, **named):
            if isinstance(values, np.ndarray) and not values.flags.writeable:
                warnings.warn("torch would warn of an array that cannot be written to", UserWarning, stacklevel=2)
            return make(values, *given, **named)

        return call

    log = FeedbackLog.from_arrays(
        [0, 0, 1, 2, 2], [1, 3, 0, 2, 3], [0, 1, 0, 1, 1], n_users=4, n_items=5,
        user_features=np.eye(4), item_features=np.eye(5),
    )  # fmt: skip
    assert not log.users.flags.writeable
    for name in ("from_numpy", "as_tensor"):
        monkeypatch.setattr(torch, name, checked(getattr(torch, name)))
    if not compiled:
        monkeypatch.setattr(rows_module, "compiled_rows", lambda: None)
    MF(model=model, validation=0, epochs=2).fit(log, propensities=np.full((4, 5), 0.5))


def both(which, kind="mf"):
    """The same world twice, walked by numba and by torch."""
    log = LOGS[which]
    worlds = [World(kind, log=log, shape=(log.n_users, log.n_items)) for _ in range(2)]
    found = [Rows(world.task.sorted_rows, 1, compiled=compiled) for world, compiled in zip(worlds, (True, False))]  # noqa: B905
    assert found[0].walks is not found[1].walks is torch_rows
    return list(zip(worlds, found, strict=True))


@EVERY_LOG
@pytest.mark.parametrize("kind", ["mf", "features"])
def test_logits_agree_and_are_those_of_the_model(which, kind):
    found = []
    for world, rows in both(which, kind):
        found.append(rows.logits(world.factors))
        pairs = (torch.tensor(side).long() for side in (world.log.users, world.log.items))
        torch.testing.assert_close(found[-1], world.model(*pairs).detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@EVERY_LOG
@pytest.mark.parametrize("number", [0, 1])
def test_sums_agree_and_are_plain_ones(which, number):
    for world, rows in both(which):
        values, matrix = world.of_rows(-2, 3)
        side = world.factors.sides[number]
        expected = (matrix, matrix.T)[number] @ side.other.double().numpy()
        n = len(side.own)
        for part in (slice(0, n), slice(n // 3, n), slice(0, 1)):
            found = rows.push(side.other, values)[part] if number else rows.gather(side.other, values, part)
            np.testing.assert_allclose(found, expected[part], rtol=1e-4, atol=1e-5)


@EVERY_LOG
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("loss", ["entropy", "squares"])
@pytest.mark.parametrize("kind", ["mf", "without constants", "constants"])
def test_descents_agree(which, number, loss, kind):
    found = []
    for world, rows in both(which, kind):
        level, label = world.of_rows(0.5, 8)[0], world.of_rows(-0.3, 1.3, seed=4)[0]
        made = CrossEntropy(level, level * label) if loss == "entropy" else Squares(level, label)
        side = world.factors.sides[number]
        before = side.own.clone()
        above = made.above(rows.logits(world.factors))
        rows.descend(side, number, above)
        if number == 0:
            torch.testing.assert_close(above.logits, rows.logits(world.factors), rtol=1e-4, atol=1e-5)
        kept = [column for column in range(before.shape[1]) if column not in range(*side.columns.indices(99))]
        assert torch.equal(side.own[:, kept], before[:, kept])
        assert not torch.equal(side.own, before)
        found.append(side.own.clone())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_parameters_without_rows_shrink_to_nothing():
    for world, rows in both("most have no row"):
        level = world.of_rows(0.5, 8)[0]
        rows.descend(world.factors.sides[0], 0, CrossEntropy(level, level / 2).above(rows.logits(world.factors)))
        idle = [user for user in range(9) if user not in (3, 5)]
        assert float(world.factors.sides[0].parameters[idle].abs().max()) < 1e-5


def test_descents_of_many_rows_agree_a_part_at_a_time(monkeypatch):
    found = []
    for at_once in (torch_rows._AT_ONCE, 7):
        monkeypatch.setattr(torch_rows, "_AT_ONCE", at_once)
        world, rows = both("some rows")[1]
        level = world.of_rows(0.5, 8)[0]
        rows.descend(world.factors.sides[0], 0, CrossEntropy(level, level / 2).above(rows.logits(world.factors)))
        found.append(world.factors.users.clone())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("which", ["some rows", "most have no row", "one row"])
@pytest.mark.parametrize("compiled", [True, False])
def test_any_number_of_threads_gives_the_same_bits(which, compiled, monkeypatch):
    monkeypatch.setattr(rows_module, "_ROWS_AN_ITEM", 0)
    monkeypatch.setattr(rows_module, "ROWS_A_PART", 1)
    found = []
    for threads in (1, 2, 3, 7):
        world = both(which)[0][0]
        rows = Rows(world.task.sorted_rows, threads, compiled=compiled)
        assert rows.pool.threads == min(threads, len(rows.parts))
        level = world.of_rows(0.5, 8)[0]
        for number, side in enumerate(world.factors.sides):
            rows.descend(side, number, CrossEntropy(level, level / 2).above(rows.logits(world.factors)))
        sums = rows.push(world.factors.users, level)
        found.append((world.factors.users.clone(), world.factors.items.clone(), rows.logits(world.factors), sums))
    for one in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(one, found[0], strict=True))


def test_little_work_is_done_by_one_thread():
    assert Rows(both("some rows")[0][0].task.sorted_rows, 8).pool.threads == 1


def test_an_error_in_a_thread_is_not_lost(monkeypatch):
    monkeypatch.setattr(rows_module, "ROWS_A_PART", 1)
    monkeypatch.setattr(rows_module, "_ROWS_AN_ITEM", 0)
    world = both("some rows")[0][0]
    rows = Rows(world.task.sorted_rows, 3)
    assert rows.pool.threads == 3

    class Fails:
        @staticmethod
        def inner(*given):
            raise RuntimeError("no luck")

    rows.walks = Fails
    with pytest.raises(RuntimeError, match="no luck"):
        rows.logits(world.factors)


def test_a_models_parameters_are_views_of_its_blocks():
    model = a_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    factors = FactorBlocks(model, PENALTIES, 1.0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    with torch.no_grad():
        factors.users += 1
    assert torch.equal(model.user_factors, before["user_factors"] + 1)
    assert torch.equal(model.user_constants, before["user_constants"] + 1)
