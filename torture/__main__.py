"""Runs campaigns: `python -m torture`, about twenty minutes on two cores, or `--seconds 60` for all of them in short.

Each prints what it counted, and what repeats a failure; figures go to docs/reliability/torture.json, from which
`python -m torture.page` writes docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from torture.campaign import ROOT, Figures, Results

SHARES = {"fuzz": 0.3, "guided": 0.05, "kill": 0.3, "worlds": 0.15, "environments": 0.1, "determinism": 0.1}
"""Campaigns, each with its share of the time."""
FILE = ROOT / "docs" / "reliability" / "torture.json"


def told(name: str, figures: Figures) -> str:
    """Say what a campaign counted, and what failed."""
    counts = ", ".join(f"{count:,.0f} {what}" for what, count in sorted(figures.counts.items()))
    lines = [f"{name}, seed {figures.seed}, {figures.seconds:.0f} s: {counts}"]
    lines += [f"  not run: {part}, {reason}" for part, reason in figures.skipped.items()]
    lines += [f"  {one.what}\n    again: {one.repeat}" for one in figures.failures]
    return "\n".join(lines)


def main() -> None:
    """Run what was asked for; the exit code says whether something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SHARES, default=[*SHARES])
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    results = Results.load(options.out) if options.out.exists() else Results()
    whole = sum(SHARES[name] for name in options.only)
    failed = 0
    for name in options.only:
        run = import_module(f"torture.{name}.run").run
        figures: Figures = run(options.seconds * SHARES[name] / whole, options.seed)
        print(told(name, figures), flush=True)
        results.add(name, figures)
        results.save(options.out)
        failed += int(figures.counts.get("failures", 0))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
