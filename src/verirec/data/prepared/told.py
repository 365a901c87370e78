"""What was found in pieces of a log, said once for all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from verirec.data.pairs import Agreement
from verirec.exceptions import VerirecWarning, warn_caller
from verirec.formatting import short

_LEFT_OUT: Final = re.compile(r"([\d,]+) of [\d,]+ rows are left out: ")


def warn_of_all(told: Sequence[Sequence[str]], total: int) -> None:
    """Pass on what was warned of in pieces: of rows that are left out how many all of them are, else the first.

    Parameters
    ----------
    told
        Names of warnings, and their messages.
    total
        How many rows there are in all pieces, those included that warned of nothing.
    """
    by_kind: dict[str, list[str]] = defaultdict(list)
    for kind, message in told:
        by_kind[kind].append(message)
    for kind, messages in by_kind.items():
        category = next(one for one in VerirecWarning.__subclasses__() if one.__name__ == kind)
        warn_caller(_in_one(messages, total), category)


def settle_repeats(each: list[dict[str, Any]], total: int) -> None:
    """Judge the pairs that occur more than once in all ranges together; `total` is how many rows all pairs have."""
    if not each:
        return
    sums = {name: sum(one[name] for one in each) for name in ("pairs", "rows", "split", "wrong")}
    kinds = "different" if any(one["kinds"] == "different" for one in each) else "both"
    wrong = sums.pop("wrong")
    all_of_them = Agreement(**sums, wrong=np.empty(0, np.int64), kinds=kinds, total=total)
    if all_of_them.split:
        user, item = next(one["first"] for one in each if one["first"])
        first = f"the first is user {short(user)}, item {short(item)}"
        raise all_of_them.conflict(f"{wrong:,} of {total:,} rows ({first})")
    all_of_them.settle()


def _in_one(messages: Sequence[str], total: int) -> str:
    """Return one message for those of one kind.

    Examples
    --------
    >>> _in_one(["a.csv: 2 of 9 rows are left out: no user", "b.csv: 1 of 9 rows are left out: no item"], 27)
    '3 of 27 rows are left out, in 2 pieces (first: a.csv: 2 of 9 rows are left out: no user)'
    """
    if len(messages) == 1:
        return messages[0]
    counts = [_LEFT_OUT.search(message) for message in messages]
    if all(counts):
        out = sum(int(found[1].replace(",", "")) for found in counts if found)
        return f"{out:,} of {total:,} rows are left out, in {len(messages):,} pieces (first: {messages[0]})"
    return f"{messages[0]} (and the like in {len(messages) - 1:,} more pieces)"
