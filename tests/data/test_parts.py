"""Long arrays part by part: the same numbers as at once, and nothing else of their length."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from held import HALF_A_NUMBER, held, held_a_row
from verirec.data.cells import CellValues, FactorCells
from verirec.data.parts import looked_up, order_of, order_statistics
from verirec.data.predictions import as_predictions
from verirec.estimation.calibration import are_probabilities, need_calibration
from verirec.exceptions import PredictionError
from verirec.nuisance.label_model import parts_by_score

LONG = 1_300_000
"""Longer than what is put in order at once."""

RANDOM = np.random.default_rng(0)
VALUES = {
    "spread": RANDOM.random(LONG),
    "ascending": np.sort(RANDOM.random(LONG)),
    "tied": RANDOM.integers(0, 4, LONG) / 4,
    "all the same": np.zeros(LONG),
    # Those that are looked at first are all 0.
    "misleading": np.where(np.arange(LONG) % (LONG // (1 << 16)) == 0, 0.0, RANDOM.random(LONG)),
    "short": RANDOM.random(100),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_order_statistics_are_those_of_the_sorted_values(values):
    ranks = np.array([0, 1, len(values) // 3, len(values) // 2, len(values) - 2, len(values) - 1])
    assert order_statistics(values, ranks).tolist() == np.sort(values)[ranks].tolist()


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_order_of_values_is_that_of_a_stable_sort(values):
    assert np.array_equal(order_of(values), np.argsort(values, kind="stable"))


def test_the_order_of_many_values_takes_little_room(limited):
    values = np.random.default_rng(0).random(6_000_000)
    assert held(lambda: order_of(values)) < 50e6 < 1.5 * 8 * len(values)


@pytest.mark.parametrize("name", ["tied", "spread"])
def test_rows_are_parted_by_score_with_ties_by_chance(name):
    scores, ends = VALUES[name], [1_000, LONG - 2_000]
    parts = parts_by_score(scores, ends, np.random.default_rng(0))
    assert np.bincount(parts).tolist() == [1_000, LONG - 3_000, 2_000]
    assert scores[parts == 0].max() <= scores[parts == 1].min()
    assert scores[parts == 1].max() <= scores[parts == 2].min()


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("length", [0, 1, 70_000, LONG])
def test_what_is_looked_up_part_by_part_is_what_is_looked_up_at_once(length, parallel):
    values = RANDOM.random(length).astype(np.float32)
    found = looked_up(lambda at: values[at], length, parallel=parallel)
    assert found.dtype == np.float32
    assert np.array_equal(found, values)


def test_pairs_that_have_no_value_are_counted_over_all_pairs():
    users = np.arange(200_000) % 500
    values = as_predictions(([0], [0], [0.5]), 500, 2)
    with pytest.raises(PredictionError, match=r"do not cover 199,600 of the 200,000 pairs"):
        values.at(users, np.zeros(200_000, np.int32))


def test_where_the_first_wrong_value_is_is_told_of_all_pairs():
    values = as_predictions(lambda users, items: np.where(users >= 490, np.nan, 0.5), 500, 400)
    users = np.repeat(np.arange(500), 400)
    with pytest.raises(PredictionError, match=r"; 4,000 of 200,000 are not \(first: the one at \[196000\]\)") as caught:
        values.at(users, np.tile(np.arange(400), 500))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_pairs_that_have_no_value_are_not_counted_all_at_once(in_small_parts):
    def looking(log):
        half = log.users < 100
        given = as_predictions((log.users[half], log.items[half], np.ones(half.sum())), *log.shape)

        def refused():
            with pytest.raises(PredictionError, match="do not cover"):
                given.at(log.users, log.items)

        return refused

    # Refused parts that wait for their turn, some dozens however long the log is, hold what they looked at: 2 to 5
    # bytes a row of these logs, by how threads take turns. All pairs at once took 25.
    assert held_a_row(looking) < 3 * HALF_A_NUMBER


class Wide(CellValues):
    """Values that take sixteen times their room on the way."""

    shape = (1_000, 2_000)

    def cells(self, users, items):
        """Add sixteen numbers a cell up."""
        return (np.ones((len(users), 16)) * users[:, None]).mean(axis=1) + items


def test_long_values_are_made_with_little_room(limited):
    users, items = np.divmod(np.arange(LONG, dtype=np.int32), 2_000)
    found: list[np.ndarray] = []
    assert held(lambda: found.append(Wide().at(users, items))) < 60e6 < 16 * 8 * LONG
    assert np.array_equal(found[0], users + items)


@pytest.mark.parametrize("work", [are_probabilities, need_calibration])
def test_nothing_of_a_logs_length_is_made_where_predictions_are_looked_at(work, in_small_parts):
    def looking(log):
        sides = [np.ones((size, 2)) for size in log.shape]
        factors = FactorCells(*sides, *(np.zeros(size) for size in log.shape))
        return lambda: work(factors, log)

    assert held_a_row(looking) < HALF_A_NUMBER
