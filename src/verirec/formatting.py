"""Numbers as people read them, for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt


def rows_in_words(rows: npt.NDArray[np.integer[Any]] | Sequence[int], total: int, *, max: int = 3) -> str:
    """Say how many rows, of how many, and which come first.

    Parameters
    ----------
    rows
        Row numbers, in order, counted from 0.
    total
        Number of rows looked at.

    Examples
    --------
    >>> rows_in_words([4, 17, 80, 81], 1000)
    '4 of 1,000 rows (first: 4, 17, 80, counting from 0)'
    """
    first = ", ".join(str(int(row)) for row in rows[:max])
    return f"{len(rows):,} of {total:,} rows (first: {first}, counting from 0)"


def bytes_in_words(count: float) -> str:
    """Say an amount of memory.

    Examples
    --------
    >>> bytes_in_words(38e9), bytes_in_words(4_560)
    ('38.0 GB', '4.6 kB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:.0f} bytes"


def share_in_words(share: float) -> str:
    """Say a share in percent, with digits enough for a small one.

    Examples
    --------
    >>> share_in_words(0.0712), share_in_words(0.0000123)
    ('7.12%', '0.0012%')
    """
    return f"{share:.2%}" if share >= 0.001 or share == 0 else f"{100 * share:.2g}%"


def short(value: object, *, max: int = 60) -> str:
    """Show a value of the user's, cut if it is long.

    Examples
    --------
    >>> short("ann"), short("a" * 1000, max=10)
    ("'ann'", "'aaaaaaaaa... (1,002 characters)")
    """
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= max else f"{shown[:max]}... ({len(shown):,} characters)"


def names_in_words(names: Sequence[str], *, max: int = 20) -> str:
    """List names, and say how many more there are.

    Examples
    --------
    >>> names_in_words(["a", "b", "c"], max=2)
    'a, b and 1 more'
    >>> names_in_words(["user\\n", "item", "stars "])
    "'user\\\\n', item, 'stars '"
    """
    # A line break in a column's name would end the message's one line, and a blank at its end would not be seen.
    plain = [name if name.isprintable() and name == name.strip() else repr(name) for name in names[:max]]
    listed = ", ".join(name if len(name) <= 60 else name[:60] + "..." for name in plain)
    return f"{listed} and {len(names) - max:,} more" if len(names) > max else listed


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """Return a small table for a notebook: a title, and a line for each name.

    Examples
    --------
    >>> html_table("a < b", {"rho01": "0.2"})
    '<table><caption>a &lt; b</caption><tr><th>rho01</th><td>0.2</td></tr></table>'
    """
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"
