"""Work by threads: in order, the same whatever their number, and without threads inside of threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import verirec as vr
from verirec.data.grid import Grid
from verirec.data.predictions import as_predictions
from verirec.data.threads import mapped
from verirec.progress import working


def product_threads():
    """Give the number of threads that matrix products may take."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_results_are_in_the_order_of_the_parts(threads):
    assert list(mapped(lambda part: part**2, range(50), threads=threads)) == [part**2 for part in range(50)]


def test_few_parts_are_worked_on_before_their_turn():
    begun = []
    results = mapped(lambda part: begun.append(part), range(1_000), threads=2)
    next(results)
    assert len(begun) < 50
    assert len(list(results)) == 999


def test_no_parts_give_no_results():
    assert list(mapped(len, [])) == []


def test_errors_come_through_and_products_get_their_threads_back():
    with threadpool_limits(2, user_api="blas"):
        before = product_threads()
        with pytest.raises(ZeroDivisionError):
            list(mapped(lambda part: 1 // part, [2, 1, 0], threads=2))
        assert product_threads() == before


def test_what_nobody_waits_for_any_more_ends_where_it_tells_how_far_it_has_come():
    begun, done = threading.Event(), []

    def work(part):
        if part == 0:
            begun.wait(60)
            raise KeyboardInterrupt
        with working("Counting", 10**9) as task:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                begun.set()
                task.advance(1)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        list(mapped(work, range(6), threads=2))
    assert done == []


def test_matrix_products_keep_to_their_thread_until_the_last_walk_has_ended():
    with threadpool_limits(2, user_api="blas"):
        before = product_threads()
        outer = mapped(lambda _: list(mapped(lambda _: product_threads(), [0, 1], threads=2)), [0, 1], threads=2)
        assert [inside for found in outer for inside in found] == [{1}] * 4
        assert product_threads() == before
        unfinished = mapped(lambda _: product_threads(), [0, 1, 2], threads=2)
        assert next(unfinished) == {1}
        unfinished.close()
        assert product_threads() == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_a_grid_are_the_same_bits_for_any_number_of_threads(dtype):
    random = np.random.default_rng(0)
    factors = vr.Factors(random.normal(size=(301, 12)).astype(dtype), random.normal(size=(97, 12)).astype(dtype))
    cells = as_predictions(factors, 301, 97)
    sums = {Grid((301, 97), block_cells=2_000, threads=threads).total(cells.cells) for threads in (1, 2, 3, 7)}
    assert len(sums) == 1
