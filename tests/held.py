"""How much memory some work has at once."""

from __future__ import annotations

import tracemalloc

import numpy as np

import verirec as vr

HALF_A_NUMBER = 4
"""Bytes a row, where nothing goes by rows: less than a number for each takes, and more than threads differ by."""
SHAPE = (500, 600)
SHARES = (0.25, 0.85)
"""Of the pairs in two logs of one grid: what more the longer one takes goes by its length."""


def held(work):
    """Return the most bytes that some work had at once, its own long arrays on disk not counted."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def long_log(share, levels=None):
    """Make a log of a random share of the pairs."""
    random = np.random.default_rng(0)
    users, items = np.divmod(np.flatnonzero(random.random(SHAPE[0] * SHAPE[1]) < share), SHAPE[1])
    labels = random.integers(0, 2, len(users)) if levels is None else random.choice(levels, len(users))
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=SHAPE[0], n_items=SHAPE[1], levels=levels)


def held_a_row(work, levels=None):
    """Return by how many bytes the most that some work on a log has at once grows with each row of the log.

    Parameters
    ----------
    work
        Given a log, returns what to do with it: what is made before is not counted.
    levels
        Of the log.
    """
    return held_more(work, *(long_log(share, levels) for share in SHARES))


def held_more(work, short, long):
    """Return by how many bytes the most that some work has at once grows from a short input on with each entry more."""
    # Once before, as imports, threads and what is compiled take room too.
    work(short)()
    least, most = (held(work(one)) for one in (short, long))
    return (most - least) / (len(long) - len(short))
