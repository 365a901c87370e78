"""verirec demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.options import OutFolder
from verirec.estimation import Estimate

app = typer.Typer(add_completion=False)


@app.command("demo")
def demo(
    out: OutFolder = Path("verirec-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated world.")] = 0,
) -> None:
    """Assess two recommenders in a simulated world whose truth is known.

    Example: verirec demo --out demo
    """
    # Plotting takes a second to import, and only this verb needs it.
    from verirec.assessment import run_demo
    from verirec.assessment.demo_page import demo_page, demo_summary
    from verirec.pages.writing import check_writable, write_report

    check_writable(out)
    console = Console(markup=False, highlight=False)
    with Console(stderr=True).status("Making a world and judging two recommenders in it"):
        result = run_demo(seed)
        page = write_report(out, demo_page(result), demo_summary(result))
    table = Table(title="Prediction inaccuracy (log loss, smaller is better)", title_justify="left")
    table.add_column("Recommender")
    table.add_column("As logged", justify="right", no_wrap=True)
    table.add_column("Corrected", justify="right", no_wrap=True)
    table.add_column("Truth", justify="right", no_wrap=True)
    for name, one in result.assessment.recommenders.items():
        table.add_row(name, _cell(one.estimates["naive"]), _cell(one.estimates[one.main]), f"{result.truth[name]:.3f}")
    console.print(table)
    settled = result.assessment.comparisons[0].established
    console.print(
        f"As it stands, the log prefers the one {result.preferred_by_log}; the better one is the one "
        f"{result.truly_better}. Corrected for selection and noise, "
        + (f"it says that the one {settled} is better." if settled else "it leaves that open."),
        soft_wrap=True,
    )
    console.print(f"The page: {page}", soft_wrap=True)


def _cell(one: Estimate) -> str:
    return f"{one.value:.3f} [{one.interval[0]:.3f}, {one.interval[1]:.3f}]"
