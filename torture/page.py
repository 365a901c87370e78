"""Writes docs/reliability.md from the JSON: `python -m torture.page`.

The prose is in `reliability.md.jinja`, which has no figure of its own: all come from the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from torture.__main__ import FILE
from torture.campaign import ROOT, Figures, Results
from torture.determinism.run import TOLERANCE

PAGE = ROOT / "docs" / "reliability.md"


def table(rows: list[dict[str, Any]]) -> str:
    """Show rows as a table.

    Examples
    --------
    >>> print(table([{"verb": "train", "operations": 12}]))
    | verb | operations |
    | --- | --- |
    | train | 12 |
    """
    head = [*rows[0]] if rows else []
    lines = [head, ["---"] * len(head), *([_shown(row[name]) for name in head] for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"`{value}`"
        if isinstance(value, str) and "(" in value
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def rendered(results: Results) -> str:
    """Fill in the page."""
    template = (Path(__file__).parent / "reliability.md.jinja").read_text()
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    return environment.from_string(template).render(
        results=results,
        table=table,
        tolerance=TOLERANCE,
        count=lambda figures, name: f"{figures.counts.get(name, 0):,.0f}",
        share=lambda figures, part: f"{_share(figures, part):.0%}",
    )


def _share(figures: Figures, part: str) -> float:
    return figures.counts.get(part, 0) / max(1, figures.counts.get("inputs", 0))


def main() -> None:
    """Write the page."""
    PAGE.write_text(rendered(Results.load(FILE)))


if __name__ == "__main__":
    main()
