"""Writes docs/speed.md and its picture from the JSON: `python -m benchmarks.speed.page`.

The prose is in `speed.md.jinja`, which has no figure of its own: all come from the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jinja2
from benchmarks.speed.case import Target
from benchmarks.speed.cases import CASES
from benchmarks.speed.results import MEASURES, Result, Results
from benchmarks.speed.run import ROOT

DOCS = ROOT / "docs"


def number(value: float) -> str:
    """Show three digits at most.

    Examples
    --------
    >>> [number(one) for one in (0.00774, 0.523, 1.234, 28.31, 3600.0)]
    ['0.0077', '0.52', '1.23', '28.3', '3,600']
    """
    if value < 1:
        return f"{value:.2g}"
    return f"{value:,.{max(0, 3 - len(str(int(value))))}f}"


@dataclass(frozen=True)
class Goal:
    """A target of a case, with the figures for it now and before."""

    case: Result
    target: Target
    now: float | None
    before: float | None

    @property
    def unit(self) -> str:
        """Say what the figures are."""
        unit = {"cpu": "CPU s", "wall": "s", "extra_gb": "GB"}[self.target.measure]
        return unit if self.target.of is None else f"{unit} / {self.target.of}"

    def shown(self, value: float | None) -> str:
        """Show a figure; a ratio that should be far below 1 as a fraction, 1/60 for sixty times less."""
        if value is None:
            return ""
        return f"1/{1 / value:.0f}" if self.target.of is not None and self.target.at_most < 0.1 else number(value)

    @property
    def verdict(self) -> str:
        """Say whether it was met."""
        return {None: "not measured", True: "met", False: "**missed**"}[self.case.met(self.target)]


def goals(now: Results, before: Results | None) -> list[Goal]:
    """Return all targets, in the order of the cases."""
    return [
        Goal(one, target, one.figure(target), _earlier(before, one, target))
        for one in now.cases.values()
        for target in one.targets
    ]


def _earlier(before: Results | None, now: Result, target: Target) -> float | None:
    found = None if before is None else before.cases.get(now.name)
    if found is None or now.ours not in found.rounds or (target.of is not None and target.of not in found.rounds):
        return None
    return found.figure(target)


def _table(head: list[str], rows: Iterator[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def target_table(now: Results, before: Results | None) -> str:
    """Show all targets, met or missed."""
    rows = (
        [_label(one.case), one.unit, *map(one.shown, (one.target.at_most, one.before, one.now)), one.verdict]
        for one in goals(now, before)
    )
    return _table(["", "in", "at most", "before", "now", ""], rows)


def group_table(now: Results, before: Results | None, group: str) -> str:
    """Show a group's cases: a row for each contender, with our CPU time divided by its own, now and before."""
    cases = [one for one in now.cases.values() if one.group == group]
    rows = (_row(one, name, before and before.cases.get(one.name)) for one in cases for name in one.rounds)
    head = ["", "", "CPU s", "wall s", "GB", "ours / it, CPU", "before"]
    return _table(head, rows) if cases else "Not measured yet."


def _row(one: Result, name: str, before: Result | None) -> list[str]:
    """Show a contender; the first with the case's title and its own CPU seconds before, the others with ratios."""
    cpu, wall, extra = (one.least(name, measure) for measure in MEASURES)
    figures = [number(cpu), number(wall), number(extra) if extra > 0.005 else ""]
    known = before if before is not None and name in before.rounds else None
    if name == one.ours:
        earlier = "" if known is None else f"{number(known.least(name, 'cpu'))} s"
        return [_label(one), f"**{name}**", *figures, "", earlier]
    earlier = "" if known is None else number(known.ratio(name, "cpu"))
    return ["", name, *figures, number(one.ratio(name, "cpu")), earlier]


def _label(one: Result) -> str:
    threads = {None: "", 1: ", one thread"}.get(one.threads, f", {one.threads} threads")
    return f"{one.title}, {one.size}{threads}"


def _ratio(now: Results, case: str, one: str, other: str) -> str:
    """Show the ratio of two contenders' CPU seconds, whichever is judged."""
    found = now.cases.get(case)
    if found is None or not {one, other} <= found.rounds.keys():
        return "?"
    return number(found.least(one, "cpu") / found.least(other, "cpu"))


def _nanoseconds(now: Results, case: str) -> str:
    """Show a case's CPU nanoseconds a row, or a pair, whatever it has many of."""
    one = now.cases.get(case)
    return "?" if one is None else number(one.least(one.ours, "cpu") / CASES[case].units * 1e9)


def rendered(template: str, now: Results, before: Results | None) -> str:
    """Fill in the page."""
    comparable = before if before is not None and before.machine == now.machine else None
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    return environment.from_string(template).render(
        now=now,
        before=before,
        number=number,
        targets=target_table(now, comparable),
        goals=goals(now, comparable),
        table=lambda group: group_table(now, comparable, group),
        ratio=partial(_ratio, now),
        nanoseconds=partial(_nanoseconds, now),
    )


def draw(now: Results, before: Results | None, path: Path) -> None:
    """Draw each target's figure as a multiple of what was asked for, before and now."""
    import matplotlib.pyplot as plt

    shown = [one for one in goals(now, before) if one.now is not None][::-1]
    figure, axes = plt.subplots(figsize=(8.4, 0.27 * len(shown) + 1.1), layout="constrained")
    for place, one in enumerate(shown):
        reached = (one.now or 0.0) / one.target.at_most
        if one.before is not None:
            axes.plot([one.before / one.target.at_most, reached], [place, place], color="#cccccc", zorder=1)
            axes.scatter(one.before / one.target.at_most, place, color="#999999", zorder=2)
        axes.scatter(reached, place, color="#1f77b4" if reached <= 1 else "#d62728", zorder=3)
    axes.axvline(1, color="#333333", linewidth=1)
    names = [one.case.name + ("" if one.target.measure == "cpu" else f", {one.unit.split(' /')[0]}") for one in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.set(xscale="log", xlabel="multiple of the target: left of the line it is met (grey: before)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--now", type=Path, default=DOCS / "speed" / "bench.json")
    parser.add_argument("--before", type=Path, default=DOCS / "speed" / "before.json")
    options = parser.parse_args()
    now = Results.load(options.now)
    now.cases = {name: replace(now.cases[name], title=one.title) for name, one in CASES.items() if name in now.cases}
    before = Results.load(options.before) if options.before.exists() else None
    template = (Path(__file__).parent / "speed.md.jinja").read_text()
    (DOCS / "speed.md").write_text(rendered(template, now, before))
    draw(now, before, DOCS / "speed" / "bench.png")


if __name__ == "__main__":
    main()
