"""The page's section on costs is what the script writes, and its sums are those that workers leave."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from benchmarks.scale.cost_model import BEGIN, END, MEASURED, PAGE, Costs, Size, _left, section

from verirec.training.solvers.sweep.tree_sum import TreeSum


def test_the_section_is_what_the_script_writes():
    written = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert written.strip() == section(json.loads(MEASURED.read_text(encoding="utf-8"))).strip()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 11, 62])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_sums_that_are_sent_are_those_that_a_tree_leaves(count, workers):
    for own in np.array_split(np.arange(count), min(count, workers)):
        sums = TreeSum(count)
        for number in own.tolist():
            sums.add((0, number), torch.ones(1))
        assert len(sums.left) == _left(own.tolist(), count)


def test_constants_are_found_again():
    sizes = [
        Size(2_000_000, 20_000, 20_000, 2),
        Size(4_000_000, 400_000, 20_000, 2),
        Size(4_000_000, 40_000, 100_000, 2),
    ]
    known = Costs(200.0, 300.0, 40.0, 500.0, 600.0)
    found = [
        {
            "rows": one.rows,
            "users": one.users,
            "items": one.items,
            "shards": one.shards,
            "workers": 2,
            "shard_seconds": known.shard_seconds(one),
            "driver": known.driver_seconds(one),
        }
        for one in sizes
    ]
    again = Costs.fitted(found)
    for name in vars(known):
        assert getattr(again, name) == pytest.approx(getattr(known, name), rel=1e-6)
