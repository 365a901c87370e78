"""Batches: every row once an epoch, rectangles within the grid, means over the grid without bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from draws import fits
from held import held
from training.tasks import SHAPE, a_log, a_task, known_propensities
from verirec import ConstantPropensity, FeedbackLog, scratch
from verirec.models import CustomModel
from verirec.training import data
from verirec.training.data import TrainingData


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 25), (4, 7), (24, 2), (25, 1), (10**9, 1)])
@pytest.mark.parametrize("grid_cells", [0, 6])
def test_every_row_comes_once_an_epoch(batch_size, steps, grid_cells):
    task = a_task(batch_size=batch_size, grid_cells=grid_cells)
    for epoch in range(3):
        batches = list(task.batches(epoch))
        assert len(batches) == task.steps == steps
        sizes = [len(batch.rows) for batch in batches]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1
        assert sorted(torch.cat([batch.rows for batch in batches]).tolist()) == list(range(25))


def test_rows_come_with_what_the_log_says_of_them():
    task, log, p = a_task(), a_log(), known_propensities()
    for batch in task.batches(3):
        rows = batch.rows.numpy()
        assert batch.users.tolist() == log.users[rows].tolist()
        assert batch.items.tolist() == log.items[rows].tolist()
        assert batch.labels.tolist() == log.labels[rows].tolist()
        np.testing.assert_allclose(batch.weights.numpy(), 1 / p[log.users[rows], log.items[rows]], rtol=1e-6)
        expected = 1 / p[np.ix_(batch.grid_users.numpy(), batch.grid_items.numpy())]
        found = task.weights_on_grid(batch)
        assert found.shape == (len(batch.grid_users), len(batch.grid_items))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    assert (task.shape, task.density, batch.density) == (SHAPE, 25 / 63, 25 / 63)
    assert {batch.labels.dtype, batch.weights.dtype, found.dtype} == {torch.float32}
    assert {batch.users.dtype, batch.items.dtype, batch.rows.dtype} == {torch.int64}


def test_a_batch_asks_a_model_for_its_rows_and_for_its_rectangle():
    logits = torch.arange(63.0).view(SHAPE)

    class Table(torch.nn.Module):
        def forward(self, users, items):
            return logits[users, items]

    model = CustomModel(Table())
    for batch in a_task().batches(0):
        assert torch.equal(batch.on_rows(model), logits[batch.users, batch.items])
        assert torch.equal(batch.on_grid(model), logits[batch.grid_users][:, batch.grid_items])


def test_all_rows_are_in_their_order():
    task, log = a_task(), a_log()
    every = task.all_rows
    assert len(every.rows) == 0
    for found, column in ((every.users, log.users), (every.items, log.items), (every.labels, log.labels)):
        assert found.tolist() == column.tolist()
    assert torch.equal(every.weights, task.weights)
    assert every.density == task.density


@pytest.mark.parametrize("grid_cells", [0, 6])
def test_a_sample_batch_has_rows_of_the_log_and_a_rectangle_and_is_that_of_seed_and_epoch(grid_cells):
    task, log = a_task(grid_cells=grid_cells, batch_size=8, seed=3), a_log()
    batch = task.sample_batch(2)
    rows = batch.rows.numpy()
    assert len(rows) == 8
    for found, column in ((batch.users, log.users), (batch.items, log.items), (batch.labels, log.labels)):
        assert found.tolist() == column[rows].tolist()
    assert torch.equal(batch.weights, task.weights[batch.rows])
    assert (len(batch.grid_users), len(batch.grid_items)) == ((2, 3) if grid_cells else (0, 0))
    assert same([batch], [a_task(grid_cells=grid_cells, batch_size=8, seed=3).sample_batch(2)])
    for other in (task.sample_batch(3), a_task(grid_cells=grid_cells, batch_size=8, seed=4).sample_batch(2)):
        assert not torch.equal(batch.rows, other.rows)
    assert len(a_task(batch_size=1_000).sample_batch(0).rows) == 25


def same(one, other):
    return all(
        first.density == second.density and all(torch.equal(a, b) for a, b in zip(first[:7], second[:7], strict=True))
        for first, second in zip(one, other, strict=True)
    )


def test_batches_are_those_of_seed_and_epoch():
    first = list(a_task(seed=5).batches(2))
    assert same(first, a_task(seed=5).batches(2))
    task = a_task(seed=5)
    for epoch in (0, 1):
        list(task.batches(epoch))
    assert same(first, task.batches(2))
    for other in (a_task(seed=5).batches(3), a_task(seed=6).batches(2)):
        others = list(other)
        for column in ("rows", "grid_users", "grid_items"):
            mine, theirs = (torch.cat([getattr(batch, column) for batch in batches]) for batches in (first, others))
            assert not torch.equal(mine, theirs), column


def test_rows_do_not_depend_on_the_rectangles():
    for with_grid, without in zip(a_task(grid_cells=6).batches(1), a_task(grid_cells=0).batches(1), strict=True):
        assert torch.equal(with_grid.rows, without.rows)
        assert without.grid_users.shape == without.grid_items.shape == (0,)


@pytest.mark.parametrize(
    ("shape", "cells", "sides"),
    [
        ((7, 9), 1, (1, 1)),
        ((7, 9), 6, (2, 3)),
        ((7, 9), 16, (3, 5)),
        ((7, 9), 63, (7, 9)),
        ((7, 9), 10**9, (7, 9)),
        ((30, 2), 16, (16, 1)),
        ((2, 30), 16, (1, 15)),
        ((1, 40), 9, (1, 9)),
    ],
)
def test_rectangles_have_about_the_cells_asked_for_and_fit_the_grid(shape, cells, sides):
    task = a_task(a_log(min(25, shape[0] * shape[1]), shape), grid_cells=cells)
    for batch in task.batches(0):
        assert (len(batch.grid_users), len(batch.grid_items)) == sides
        assert sides[0] * sides[1] <= max(cells, 1)
        assert 0 <= int(batch.grid_users.min()) <= int(batch.grid_users.max()) < shape[0]
        assert 0 <= int(batch.grid_items.min()) <= int(batch.grid_items.max()) < shape[1]


def test_each_batch_has_a_rectangle_of_its_own():
    corners = {tuple(batch.grid_users.tolist() + batch.grid_items.tolist()) for batch in a_task().batches(0)}
    assert len(corners) == 7


def test_means_over_the_grid_are_estimated_without_bias():
    task, log = a_task(), a_log()
    random = np.random.default_rng(3)
    a, b = random.normal(size=SHAPE), random.normal(2, 1, size=SHAPE)
    observed = np.zeros(SHAPE)
    observed[log.users, log.items] = 1
    truth = (a + observed * b).mean()
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    values = []
    for epoch in range(1_500):
        parts = [
            a[batch.grid_users][:, batch.grid_items].mean() + batch.over_log(b[batch.users, batch.items])
            for batch in task.batches(epoch)
        ]
        values.append(float(torch.stack(parts).mean()))
    spread = np.std(values, ddof=1) / np.sqrt(len(values))
    assert spread < 0.02
    assert fits((np.mean(values) - truth) / spread)


def test_every_cell_is_in_rectangles_alike():
    task, counts = a_task(grid_cells=20), torch.zeros(SHAPE)
    epochs = 400
    for epoch in range(epochs):
        for batch in task.batches(epoch):
            counts += torch.bincount(batch.grid_users, minlength=7)[:, None] * torch.bincount(
                batch.grid_items, minlength=9
            )
    # By user and by item, whose draws are independent.
    draws = epochs * task.steps
    for side, (length, size) in enumerate(((5, 7), (4, 9))):
        by_one = counts.sum(1 - side).numpy() / (4 if side == 0 else 5)
        mean, variance = draws * length / size, draws * length / size * (1 - 1 / size)
        assert fits((by_one - mean) / np.sqrt(variance))


def test_streams_are_apart_and_always_the_same():
    def numbers(seed, *stream):
        return tuple(torch.rand(4, generator=a_task(seed=seed).generator(*stream)).tolist())

    streams = [(seed, *stream) for seed in (0, 1, 2**40) for stream in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2))]
    assert len({numbers(*stream) for stream in streams}) == len(streams)
    assert numbers(3, 0, 1) == numbers(3, 0, 1)


def test_global_random_numbers_are_left_alone():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    list(a_task().batches(0))
    assert torch.equal(torch.get_rng_state(), torch_state)
    now = np.random.get_state()  # noqa: NPY002
    assert (now[1] == numpy_state[1]).all()
    assert now[2:] == numpy_state[2:]


@pytest.mark.parametrize("at_once", [1, 3, 10, 1 << 20])
def test_how_many_rows_are_looked_up_together_changes_no_bit(at_once, limited, monkeypatch):
    expected = list(a_task().batches(2))
    monkeypatch.setattr(data, "_AT_ONCE", at_once)
    assert same(expected, list(a_task().batches(2)))
    monkeypatch.setattr(scratch._KEEPER, "memory", None)
    assert same(expected, list(a_task().batches(2)))


def test_numbers_of_all_rows_are_those_of_the_rows_part_by_part(limited, monkeypatch):
    def numbers(batch):
        return batch.weights * batch.labels + batch.users + 2 * batch.items

    task, expected = a_task(), numbers(a_task().all_rows)
    monkeypatch.setattr(data, "_AT_ONCE", 4)
    assert torch.equal(task.of_rows(numbers), expected)
    assert torch.equal(task.of_rows(lambda batch: torch.stack([numbers(batch)] * 2)), expected.expand(2, -1))
    assert task.of_rows(lambda batch: torch.tensor(2.0)) == 2
    assert torch.cat([batch.rows for batch in task.row_parts()]).tolist() == list(range(25))


def test_an_epoch_holds_no_column_of_the_log(limited):
    """But the order of its rows, 4 bytes each, while that is drawn by torch, which is not counted here."""
    kept = np.flatnonzero(np.random.default_rng(0).random(4_000_000) < 0.8)
    users, items = np.divmod(kept, 2_000)
    log = FeedbackLog.from_arrays(users, items, users % 2, n_users=2_000, n_items=2_000)
    propensities = ConstantPropensity().fit(log)
    task = TrainingData(log, propensities, 4_096, 64, 0, torch.device("cpu"))
    _ = next(task.batches(0))
    seen = []

    def work():
        fresh = TrainingData(log, propensities, 4_096, 64, 0, torch.device("cpu"))
        seen.append(sum(len(batch.rows) for batch in fresh.batches(0)) + fresh.effective_rows)

    assert held(work) < 8e6 < 4 * len(log)
    assert seen[0] == pytest.approx(2 * len(log), rel=1e-6)
