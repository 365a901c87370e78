"""verirec reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from verirec.checks import one_of, whole_number

if TYPE_CHECKING:
    from verirec.experiments.reproduce import Plan

app = typer.Typer(invoke_without_command=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the data sets; by default $VERIREC_DATA, or the cache.")]
Out = Annotated[Path, typer.Option(help="Folder for tables and pictures; finished seeds are kept in its runs/.")]
Workers = Annotated[int, typer.Option(help="Processes; results do not depend on it.")]
Seeds = Annotated[int, typer.Option(help="How many worlds are drawn.")]
Preferences = Annotated[str, typer.Option(help="Whose: movielens-100k or kuairec.")]
PropensityError = Annotated[
    float | None, typer.Option(help="How wrong the given propensities are: 0 not at all, .5 as in the paper.")
]

WRONG: Final = 0.5


@app.callback()
def reproduce(context: typer.Context) -> None:
    """Run the paper's semi-synthetic study again: as printed, and done right.

    Example: verirec reproduce table1 --data ../shared/data --out table1
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("table1")
def table1_command(
    out: Out,
    data: Data = None,
    seeds: Seeds = 20,
    variant: Annotated[str, typer.Option(help="sound, or printed: the paper's own arithmetic.")] = "sound",
    preferences: Preferences = "movielens-100k",
    propensity_error: PropensityError = None,
    aliased: Annotated[bool, typer.Option(help="Of printed: the faulty propensities, or those of the formula.")] = True,
    workers: Workers = 2,
) -> None:
    """Reproduce Table 1, ours beside the paper's.

    Example: verirec reproduce table1 --data ../shared/data --variant printed --out table1
    """
    from verirec.experiments.reproduce import tables
    from verirec.experiments.reproduce.plans import table1_plan
    from verirec.reports.reproduction import table1_page
    from verirec.reports.reproduction_plots import table1_plot, write_pictures
    from verirec.reports.writing import write_file, write_table

    plan = table1_plan(variant, preferences=preferences, propensity_error=propensity_error, aliased=aliased)
    table = tables.table1(_run(plan, data, seeds, workers, out), plan)
    write_table(out / "table1.csv", table)
    write_file(out / "table1.md", table1_page(table).encode())
    write_pictures(out, "table1", table1_plot(table))
    _show_table1(table)
    cells, rmse, largest = tables.gaps(table)
    console = _console()
    if cells:
        console.print(
            f"{cells} cells without estimated rates: RMSE {rmse:.4f} to the printed, largest gap {largest:.4f}"
        )
    console.print(f"The table: {out / 'table1.csv'}", soft_wrap=True)


@app.command("figure1")
def figure1_command(
    out: Out, data: Data = None, seeds: Seeds = 10, preferences: Preferences = "movielens-100k", workers: Workers = 2
) -> None:
    """Reproduce Figure 1: errors of noise rates and of estimates as more of the grid is observed.

    Example: verirec reproduce figure1 --data ../shared/data --out figure1
    """
    from verirec.experiments.reproduce import tables
    from verirec.experiments.reproduce.plans import figure1_plan
    from verirec.reports.reproduction_plots import figure1_plot, write_pictures
    from verirec.reports.writing import write_table

    plan = figure1_plan(preferences)
    table = tables.figure1(_run(plan, data, seeds, workers, out), plan)
    write_table(out / "figure1.csv", table)
    write_pictures(out, "figure1", figure1_plot(table))
    _console().print(f"The picture: {out / 'figure1.png'}, its numbers: {out / 'figure1.csv'}", soft_wrap=True)


@app.command("robustness")
def robustness_command(
    out: Out, data: Data = None, seeds: Seeds = 5, propensity_error: PropensityError = 0.0, workers: Workers = 2
) -> None:
    """Run what the paper lacks: OME-DR by source of noise rates, in seven settings.

    Example: verirec reproduce robustness --data ../shared/data --out robustness
    """
    from verirec.experiments.reproduce import tables
    from verirec.experiments.reproduce.plans import robustness_plan
    from verirec.reports.reproduction_plots import robustness_plot, write_pictures
    from verirec.reports.reproduction_words import rho_in_words
    from verirec.reports.writing import write_table

    table = tables.robustness(_run(robustness_plan(propensity_error or 0.0), data, seeds, workers, out))
    write_table(out / "robustness.csv", table)
    write_pictures(out, "robustness", robustness_plot(table))
    shown = Table(title="Relative error of OME-DR over seven settings", title_justify="left")
    shown.add_column("Noise rates")
    shown.add_column("Mean", justify="right")
    shown.add_column("Coverage", justify="right")
    for one in table[table.setting == tables.OVERALL].itertuples():
        shown.add_row(rho_in_words(one.rho), f"{one.mean:.3f}", f"{one.coverage:.2f}")
    _console().print(shown)
    _console().print(f"The table: {out / 'robustness.csv'}", soft_wrap=True)


@app.command("all")
def all_command(out: Out, data: Data = None, seeds: Seeds = 20, workers: Workers = 2) -> None:
    """Run every study of the page, each into a folder of its own.

    Example: verirec reproduce all --data ../shared/data --out results
    """
    whole_number("seeds", seeds)
    shared: dict[str, Any] = {"data": data, "workers": workers}
    few = -(-seeds // 2)
    table1_command(out / "printed", seeds=seeds, variant="printed", **shared)
    table1_command(out / "printed-not-aliased", seeds=seeds, variant="printed", aliased=False, **shared)
    table1_command(out / "sound", seeds=seeds, **shared)
    table1_command(out / "wrong-propensities", seeds=seeds, propensity_error=WRONG, **shared)
    table1_command(out / "kuairec", seeds=few, preferences="kuairec", **shared)
    figure1_command(out / "figure1", seeds=few, **shared)
    robustness_command(out / "robustness", seeds=few, **shared)
    robustness_command(out / "robustness-wrong-propensities", seeds=few, propensity_error=WRONG, **shared)


@app.command("page")
def page_command(
    results: Annotated[Path, typer.Option(help="Folder that `verirec reproduce all` wrote.")],
    out: Annotated[Path, typer.Option(help="The page, a Markdown file.")],
) -> None:
    """Write the page that tells what reproduces, what does not, and why, from results.

    Example: verirec reproduce page --results docs/reproduction --out docs/reproduction.md
    """
    from verirec.reports import check_writable
    from verirec.reports.reproduction import read_results, reproduction_page
    from verirec.reports.writing import write_file

    check_writable(out.parent)
    text = reproduction_page(read_results(results), _relative(results, out.parent))
    write_file(out, text.encode())
    _console().print(f"The page: {out}", soft_wrap=True)


def _relative(folder: Path, start: Path) -> str:
    import os

    return Path(os.path.relpath(folder, start)).as_posix()


def _run(plan: Plan, data: Path | None, seeds: int, workers: int, out: Path) -> Any:
    """Check what is asked for, run it with a bar where somebody watches, and give the records as a frame."""
    from verirec.experiments.reproduce import load_population, run_plan, tables
    from verirec.experiments.reproduce.plans import PREFERENCES
    from verirec.reports import check_writable

    whole_number("seeds", seeds)
    whole_number("workers", workers)
    one_of("preferences", plan.preferences, PREFERENCES)
    check_writable(out)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Completing the preferences", total=seeds)
        population = load_population(plan.preferences, data)
        bar.update(task, description=f"{plan.study}, seeds")
        records = run_plan(
            plan,
            population,
            seeds=seeds,
            folder=out,
            workers=workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    return tables.as_frame(records)


def _show_table1(table: Any) -> None:
    from verirec.reports.reproduction_words import mean_with_gap, row_in_words, rows_of

    names = list(dict.fromkeys(table.matrix))
    cells = {(one.method, one.rho, one.matrix): mean_with_gap(one) for one in table.itertuples()}
    shown = Table(title="Relative error, and the gap to the printed number", title_justify="left")
    shown.add_column("")
    for name in names:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows_of(table):
        shown.add_row(row_in_words(*row), *(cells[*row, name] for name in names))
    _console().print(shown)


def _console() -> Console:
    console = Console(markup=False, highlight=False)
    # A table is for a file or a pipe as well, and is not cut there.
    return console if console.is_terminal else Console(markup=False, highlight=False, width=140)
