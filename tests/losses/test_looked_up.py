"""Columns of few different numbers: what slices and products of ordinary arrays are."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.losses.correction import correct_labels
from verirec.losses.looked_up import LookedUp, along, looked_up

LENGTH = 200_000
RATES = vr.NoiseRates(0.2, 0.1, ((4e-4, -1e-4), (-1e-4, 2e-4)))


@pytest.fixture(scope="module")
def places():
    return np.random.default_rng(0).integers(0, 2, LENGTH).astype(np.int8)


def test_a_short_column_is_an_array():
    found = looked_up([0.5, 2.0], np.array([1, 0, 1]))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [2.0, 0.5, 2.0]


def test_slices_and_products_of_a_long_column_are_those_of_the_array(places):
    table = np.array([-0.25, 1.5])
    column, array = looked_up(table, places), table[places]
    assert isinstance(column, LookedUp)
    assert len(column) == LENGTH
    assert column.shape == array.shape
    for at in (slice(7, 90), np.array([3, 199_999]), (..., slice(5, 9))):
        assert (column[at] == array[at]).all()
    other = np.random.default_rng(1).random(LENGTH)
    assert column @ other == pytest.approx(array @ other, rel=1e-12)
    assert other @ column == pytest.approx(array @ other, rel=1e-12)
    assert (np.asarray(column) == array).all()
    assert (column.copy() == array).all()


def test_a_function_of_columns_is_one_of_their_tables(places):
    one, two = looked_up([1.0, 2.0], places), looked_up([10.0, 30.0], places)
    assert (np.asarray(along(np.add, one, two)) == np.array([11.0, 32.0])[places]).all()
    assert along(np.add, np.ones(2), np.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("rates", [None, vr.NoiseRates(0.3, 0.2), RATES])
def test_labels_in_parts_are_the_labels(places, rates):
    nobody = np.zeros(LENGTH, np.int32)
    whole, parts = (correct_labels(places, rates, nobody, nobody, in_parts=each) for each in (False, True))
    assert isinstance(parts.values, LookedUp)
    pairs = [
        (whole.values, parts.values),
        (whole.variance, parts.variance),
        *zip(whole.slopes, parts.slopes, strict=True),
    ]
    pairs += [(one.values, two.values) for one, two in zip(whole.moved(0.01), parts.moved(0.01), strict=True)]
    for one, two in pairs:
        assert (one == np.asarray(two)).all()
