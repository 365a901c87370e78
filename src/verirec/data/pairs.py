"""User-item pairs that occur more than once in a log: finding them, and the policies for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of
from verirec.data.cells import cell_keys
from verirec.data.parts import over_parts
from verirec.exceptions import DuplicatePairError, ParameterError, RepeatedPairWarning, warn_caller
from verirec.formatting import rows_in_words

DuplicatePolicy = Literal["error", "first", "last", "latest", "highest"]

_HASH_MULTIPLIER: Final = np.uint32(2654435761)
_FILTER_BITS: Final = np.uint32((1 << 24) - 1)

Rows = npt.NDArray[np.int64]
Column = npt.NDArray[Any]


def repeated_rows(users: Column, items: Column, n_users: int, n_items: int) -> Rows:
    """Find the rows whose user-item pair occurs more than once.

    Sorting 32-bit keys costs a fifth of sorting 64-bit ones. Where the grid has more than 2^32 cells two pairs can
    share a key, so the few rows with a shared key are then compared by their whole pair.

    Parameters
    ----------
    users, items
        int32 positions, shape (n,).

    Examples
    --------
    >>> users, items = np.array([0, 1, 0, 2], np.int32), np.array([5, 5, 5, 5], np.int32)
    >>> repeated_rows(users, items, 3, 6).tolist()
    [0, 2]
    """
    multiplier = np.uint32(n_items) if n_users * n_items < 2**32 else _HASH_MULTIPLIER
    keys = np.empty(len(users), np.uint32)

    def short_keys(part: slice, out: Column | None = None) -> Column:
        product = np.multiply(users[part].view(np.uint32), multiplier, out=out)
        return np.add(product, items[part].view(np.uint32), out=product)

    over_parts(lambda part: short_keys(part, keys[part]), len(users))
    keys.sort()
    shared = keys[1:][keys[1:] == keys[:-1]]
    if shared.size == 0:
        return np.empty(0, np.int64)
    maybe = np.zeros(int(_FILTER_BITS) + 1, bool)
    maybe[shared & _FILTER_BITS] = True
    # The keys are worked out anew, part by part: that is cheaper than to touch as much new memory again.
    candidates = np.concatenate(
        over_parts(lambda part: part.start + np.flatnonzero(maybe[short_keys(part) & _FILTER_BITS]), len(users))
    )
    pairs = cell_keys(users[candidates], items[candidates], n_items)
    _, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    return np.asarray(candidates[count[which] > 1], dtype=np.int64)


def rows_to_keep(
    policy: str, rows: Rows, pairs: Column, labels: Column, values: Column, times: Any
) -> npt.NDArray[np.bool_] | None:
    """Apply a policy for repeated pairs: flag the rows that stay; `None` means that all do.

    Parameters
    ----------
    policy
        "error": repeats that disagree in their label are refused, and repeats that agree are merged into their first
        row, with a warning. "first" and "last": by row. "latest": by timestamp. "highest": by rating (or label).
        Ties go to the later row.
    rows, pairs
        The rows whose pair occurs more than once, and a number for each one's pair.
    labels
        Of all rows, shape (n,).
    values
        What "highest" compares, shape (n,).
    times
        Timestamps, or `None`.
    """
    one_of("duplicates", policy, ("error", *_ORDERINGS))
    if policy == "latest" and times is None:
        raise ParameterError("duplicates='latest' needs timestamps; name their column: timestamp=...")
    if rows.size == 0:
        return None
    if policy == "error":
        _check_agreement(rows, pairs, labels, len(labels))
        policy = "first"
    preference = _ORDERINGS[policy](rows, values, times)
    order = np.lexsort((preference, pairs)) if preference is not None else np.argsort(pairs, kind="stable")
    is_best = np.append(pairs[order][1:] != pairs[order][:-1], True)
    keep = np.ones(len(labels), bool)
    keep[rows[order[~is_best]]] = False
    return keep


def _check_agreement(rows: Rows, pairs: Column, labels: Column, total: int) -> None:
    """Refuse pairs whose rows have both labels; warn that the others are merged."""
    of_pair = labels[rows]
    _, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    positives = np.bincount(which, weights=of_pair)
    split = (positives > 0) & (positives < count)
    if split.any():
        wrong = rows[split[which]]
        raise DuplicatePairError(
            f"{int(split.sum()):,} user-item pairs occur with both labels, in {rows_in_words(wrong, total)}; "
            "choose which row counts, first, last, highest or (by timestamp) latest: duplicates='first'"
        )
    warn_caller(
        f"{len(count):,} user-item pairs occur more than once with the same label; the first row of each is kept "
        f"({len(rows) - len(count):,} of {total:,} rows dropped)",
        RepeatedPairWarning,
    )


# What to sort a pair's rows by, the winner last; `None` means by row number.
_ORDERINGS: Final[dict[str, Callable[[Rows, Column, Any], Column | None]]] = {
    "first": lambda rows, values, times: -rows,
    "last": lambda rows, values, times: None,
    "latest": lambda rows, values, times: times[rows],
    "highest": lambda rows, values, times: values[rows],
}
