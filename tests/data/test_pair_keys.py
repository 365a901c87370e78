"""Sets of pairs by their keys, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from held import held
from verirec.data.pair_keys import among, keys_of, pairs_of, places_in, union

KEYS = st.lists(st.integers(0, 60), max_size=30).map(lambda keys: np.array(keys, np.int64))


@given(st.lists(KEYS, min_size=1, max_size=3))
def test_a_union_has_each_key_once_and_in_order(parts):
    before = [part.copy() for part in parts]
    assert union(*parts).tolist() == np.unique(np.concatenate(parts)).tolist()
    assert all(np.array_equal(one, two) for one, two in zip(parts, before, strict=True))


@given(KEYS, KEYS)
def test_keys_are_found_among_others(keys, others):
    assert among(keys, np.unique(others)).tolist() == np.isin(keys, others).tolist()


@given(KEYS, KEYS)
def test_rows_of_pairs_are_found_in_a_log(logged, asked):
    logged = np.unique(logged)
    rows, there = places_in(*pairs_of(asked, 7), *pairs_of(logged, 7))
    assert there.tolist() == np.isin(asked, logged).tolist()
    assert logged[rows[there]].tolist() == asked[there].tolist()


def test_positions_of_other_kinds_are_found_too():
    users, items = np.array([0, 0, 2], np.int32), np.array([1, 3, 0], np.int32)
    rows, there = places_in(np.array([2, 0, 1]), np.array([0, 3, 3]), users, items)
    assert (rows[there].tolist(), there.tolist()) == ([2, 1], [True, True, False])


def test_pairs_and_keys_are_the_same_thing():
    users, items = np.array([3, 0, 2**31 - 2], np.int32), np.array([4, 6, 0], np.int32)
    assert [side.tolist() for side in pairs_of(keys_of(users, items, 7), 7)] == [users.tolist(), items.tolist()]


@pytest.mark.parametrize("count", [2_000_000])
def test_nothing_of_the_length_of_the_keys_is_held(limited, count):
    some, others = (np.random.default_rng(seed).integers(0, 10**9, count) for seed in (0, 1))
    found = []
    assert held(lambda: found.append(union(some, others))) < 8e6 < 8 * count
    assert np.array_equal(found[0], np.union1d(some, others))
    users, items = pairs_of(found[0], 1_000)
    asked = np.arange(0, len(users), 1_000)
    assert held(lambda: found.append(places_in(users[asked].astype(np.int64), items[asked], users, items))) < 2e6
    assert found[1][0].tolist() == asked.tolist()
