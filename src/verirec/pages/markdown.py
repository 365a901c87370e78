"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown, the first column to the left and the others to the right.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["x", "1"]]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    rule = "|".join(["---", *("---:" for _ in header[1:])])
    body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(header)} |", f"|{rule}|", *body])
