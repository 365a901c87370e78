"""verirec plan."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from verirec.cli.groups import takes_groups
from verirec.cli.options import LogOptions, OutFile, RateOptions, Seed
from verirec.exceptions import ParameterError
from verirec.nuisance.noise_rates import AuditPlan, plan_labels
from verirec.pages.writing import check_writable_file, write_table

app = typer.Typer(add_completion=False)


@app.command("plan")
@takes_groups
def plan_command(
    log: LogOptions,
    out: OutFile,
    guess: RateOptions,
    half_width: Annotated[float, typer.Option(help="Wanted half-width of the intervals of both noise rates.")] = 0.03,
    confidence: Annotated[float, typer.Option(help="Confidence level of these intervals.")] = 0.95,
    seed: Seed = 0,
) -> None:
    """Choose the pairs to ask people about, and write them to a CSV file with an empty true_label column.

    --rho01 and --rho10 are your guess of the noise rates. `verirec assess --audit` reads the file back.

    Example: verirec plan ratings.csv --positive-from 4 --half-width .03 --out audit.csv
    """
    check_writable_file(out)
    _refuse_to_lose(out, log.files)
    with Console(stderr=True).status("Choosing the pairs"):
        plan = plan_labels(
            log.load(), half_width=half_width, confidence=confidence, guess=guess.rates, random_state=seed
        )
        write_table(out, plan.to_frame())
    console = Console(markup=False, highlight=False)
    console.print(f"{len(plan):,} pairs to ask about are in {out}; fill in true_label with 0 or 1.", soft_wrap=True)
    if plan.simple is not None:
        console.print(f"Chosen at random it would take {plan.simple:,}.", soft_wrap=True)
    console.print(
        f"Expected half-widths: {plan.expected[0]:.3f} of rho01, {plan.expected[1]:.3f} of rho10, {_made_for(plan)}.",
        soft_wrap=True,
    )


def _refuse_to_lose(out: Path, read: list[Path]) -> None:
    """Refuse to write over a file that is read, or over a plan that somebody has begun to fill in."""
    if not out.is_file():
        return
    for file in read:
        if file.is_file() and out.samefile(file):
            raise ParameterError(f"--out {str(out)!r} is a file that is read: name another one")
    filled = _filled_in(out)
    if filled:
        raise ParameterError(
            f"--out {str(out)!r} has {filled:,} true label{'s' if filled > 1 else ''} filled in, which would be "
            "lost: name another file, or move this one"
        )


def _filled_in(file: Path) -> int:
    """Count the true labels in a plan, as we or a spreadsheet wrote it; a file of another kind has none."""
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="replace") as opened:
            delimiter = max(",;\t", key=opened.readline().count)
            opened.seek(0)
            rows = csv.DictReader(opened, delimiter=delimiter)
            return sum(bool((row.get("true_label") or "").strip()) for row in rows)
    except csv.Error:
        return 0


def _made_for(plan: AuditPlan) -> str:
    if len(plan.guesses) == 1:
        return f"if they are about {plan.guesses[0].rho01:.2f} and {plan.guesses[0].rho10:.2f}"
    most01, most10 = max(one.rho01 for one in plan.guesses), max(one.rho10 for one in plan.guesses)
    return f"at worst, for rates up to {most01:.2f} and {most10:.2f}"
