"""verirec reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from verirec.cli.groups import takes_groups
from verirec.cli.options import StudyEngineOptions
from verirec.cli.speech import talking_console, working
from verirec.exceptions import ParameterError
from verirec.studies.cli.table2 import table2_command, table2_pages_command

if TYPE_CHECKING:
    from verirec.studies.semi_synthetic import Plan, Population

app = typer.Typer(invoke_without_command=True, add_completion=False)


def _named(path: str) -> Path:
    """Take a path as it was typed: an empty one would be the current folder by mistake."""
    if not path.strip():
        raise ParameterError("out must name a place; got ''")
    return Path(path)


Data = Annotated[Path | None, typer.Option(help="Folder of the data sets; by default $VERIREC_DATA or the cache.")]
Out = Annotated[
    Path,
    typer.Option(
        help="Folder for tables and pictures; finished seeds are kept in its store/.", parser=_named, metavar="PATH"
    ),
]
Seeds = Annotated[int, typer.Option(help="How many worlds are drawn, with seeds 0, 1, ...; at most 100,000.")]
Preferences = Annotated[str, typer.Option(help="Data set that the preferences come from: movielens-100k or kuairec.")]
PropensityError = Annotated[
    float | None,
    typer.Option(
        help="Beta of the given propensities, 1/given = (1 - beta)/true + beta/mean, the mean the observed share: "
        "0 gives the true ones. The paper draws it from U(0, 1); its printed numbers go with .5."
    ),
]


@app.callback()
def reproduce(context: typer.Context) -> None:
    """Rerun the paper's studies: Table 1 and Figure 1 as printed and done right, Table 2 tuned equally.

    Example: verirec reproduce table1 --data data --out table1
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("table1")
@takes_groups
def table1_command(
    out: Out,
    where: StudyEngineOptions,
    data: Data = None,
    seeds: Seeds = 20,
    variant: Annotated[str, typer.Option(help="sound, or printed: the paper's own arithmetic.")] = "sound",
    preferences: Preferences = "movielens-100k",
    propensity_error: PropensityError = None,
    aliased: Annotated[
        bool, typer.Option(help="With --variant printed: the faulty propensities behind it, or those of the formula.")
    ] = True,
) -> None:
    """Reproduce Table 1, done right or as printed, beside the paper's numbers.

    Example: verirec reproduce table1 --data data --variant printed --out table1
    """
    from verirec.studies.semi_synthetic import table1_plan

    plan = table1_plan(variant, preferences=preferences, propensity_error=propensity_error, aliased=aliased)
    _check(seeds, out)
    _table1(plan, _population(plan.preferences, data), seeds, out)


def _table1(plan: Plan, population: Population, seeds: int, out: Path) -> None:
    from verirec.pages.figures import write_pictures
    from verirec.pages.writing import write_file, write_table
    from verirec.studies.semi_synthetic import tables
    from verirec.studies.semi_synthetic.page import table1_page
    from verirec.studies.semi_synthetic.plots import table1_plot

    table = tables.table1(_run(plan, population, seeds, out), plan)
    write_table(out / "table1.csv", table)
    write_file(out / "table1.md", table1_page(table, plan).encode())
    write_pictures(out, "table1", table1_plot(table))
    console = _console()
    show_table1(console, table, plan)
    gaps = tables.gaps(table)
    if plan.variant == "printed" and gaps.cells:
        console.print(
            f"{gaps.cells} cells without estimated rates: RMSE {gaps.rmse:.4f} to the printed, "
            f"largest gap {gaps.largest:.4f}",
            soft_wrap=True,
        )
    console.print(f"The table: {out / 'table1.csv'}", soft_wrap=True)


@app.command("figure1")
@takes_groups
def figure1_command(
    out: Out,
    where: StudyEngineOptions,
    data: Data = None,
    seeds: Seeds = 10,
    preferences: Preferences = "movielens-100k",
) -> None:
    """Reproduce Figure 1: errors of noise rates and of estimates as more of the grid is observed.

    Example: verirec reproduce figure1 --data data --out figure1
    """
    from verirec.studies.semi_synthetic import figure1_plan

    plan = figure1_plan(preferences)
    _check(seeds, out)
    _figure1(plan, _population(plan.preferences, data), seeds, out)


def _figure1(plan: Plan, population: Population, seeds: int, out: Path) -> None:
    from verirec.pages.figures import write_pictures
    from verirec.pages.writing import write_table
    from verirec.studies.semi_synthetic import tables
    from verirec.studies.semi_synthetic.plots import figure1_plot

    table = tables.figure1(_run(plan, population, seeds, out), plan)
    write_table(out / "figure1.csv", table)
    write_pictures(out, "figure1", figure1_plot(table))
    _console().print(f"The picture: {out / 'figure1.png'}, its numbers: {out / 'figure1.csv'}", soft_wrap=True)


@app.command("robustness")
@takes_groups
def robustness_command(
    out: Out, where: StudyEngineOptions, data: Data = None, seeds: Seeds = 10, propensity_error: PropensityError = 0.0
) -> None:
    """Run what the paper lacks: OME-DR with noise rates from each source, in seven settings.

    Example: verirec reproduce robustness --data data --out robustness
    """
    from verirec.studies.semi_synthetic import robustness_plan

    plan = robustness_plan(propensity_error or 0.0)
    _check(seeds, out)
    _robustness(plan, _population(plan.preferences, data), seeds, out)


def _robustness(plan: Plan, population: Population, seeds: int, out: Path) -> None:
    from verirec.pages.figures import write_pictures
    from verirec.pages.writing import write_table
    from verirec.studies.semi_synthetic import tables
    from verirec.studies.semi_synthetic.plots import robustness_plot
    from verirec.studies.semi_synthetic.words import rho_in_words

    table = tables.robustness(_run(plan, population, seeds, out))
    write_table(out / "robustness.csv", table)
    write_pictures(out, "robustness", robustness_plot(table))
    error = plan.settings[0].propensity_error
    console = _console()
    console.print(
        f"Relative error of OME-DR over seven settings, propensity error {error:g}, {_seeds_in_words(seeds)}",
        soft_wrap=True,
    )
    shown = Table()
    shown.add_column("Noise rates")
    shown.add_column("Mean", justify="right")
    shown.add_column("Coverage", justify="right")
    for one in table[table.setting == tables.OVERALL].itertuples():
        shown.add_row(rho_in_words(one.rho), f"{one.mean:.3f}", f"{one.coverage:.2f}")
    console.print(shown)
    console.print(f"The table: {out / 'robustness.csv'}", soft_wrap=True)


@app.command("all")
@takes_groups
def all_command(
    out: Out,
    where: StudyEngineOptions,
    data: Data = None,
    seeds: Annotated[
        int, typer.Option(help="How many worlds are drawn; half as many for kuairec, figure1 and robustness.")
    ] = 20,
) -> None:
    """Run every study of the page, each into its own folder; KuaiRec's only if its data are there.

    Example: verirec reproduce all --data data --out results
    """
    from verirec.studies.semi_synthetic.results import STUDIES

    _check(seeds, out)
    populations = {"movielens-100k": _population("movielens-100k", data)}
    kuairec = _kuairec_or_line(data)
    if kuairec is not None:
        populations["kuairec"] = kuairec
    run = {"table1": _table1, "figure1": _figure1, "robustness": _robustness}
    for folder, plan in STUDIES.values():
        if plan.preferences in populations:
            fewer = plan.study != "table1" or plan.preferences == "kuairec"
            count = -(-seeds // 2) if fewer else seeds
            run[plan.study](plan, populations[plan.preferences], count, out / folder)


def _kuairec_or_line(data: Path | None) -> Population | None:
    """Load KuaiRec; where it is not at hand say so in a line, and what would do."""
    from verirec.data.datasets.kuairec import BLOCK, PUBLISHED
    from verirec.studies.semi_synthetic import has_population

    if has_population("kuairec", data):
        return _population("kuairec", data)
    _console().print(
        f"kuairec is left out: neither {PUBLISHED}, as its makers publish it, nor {BLOCK} is in the data folder",
        soft_wrap=True,
    )
    return None


@app.command("page")
def page_command(
    results: Annotated[
        Path, typer.Option(help="Folder that `verirec reproduce all` wrote; its printed/ and sound/ are enough.")
    ],
    out: Annotated[Path, typer.Option(help="The page, a Markdown file.", parser=_named, metavar="PATH")],
) -> None:
    """Write the page on what reproduces, what does not, and why, from results.

    Example: verirec reproduce page --results docs/reproduction --out docs/reproduction.md
    """
    from verirec.pages.writing import check_writable_file, write_file
    from verirec.studies.semi_synthetic.page import read_results, reproduction_page

    check_writable_file(out)
    found = read_results(results)
    write_file(out, reproduction_page(found, _relative(results, out.parent)).encode())
    if found.left_out:
        _console().print(f"Not run, and so not on the page: {', '.join(found.left_out)}", soft_wrap=True)
    _console().print(f"The page: {out}", soft_wrap=True)


app.command("table2")(table2_command)
app.command("table2-pages")(table2_pages_command)


def _relative(folder: Path, start: Path) -> str:
    import os

    return Path(os.path.relpath(folder, start)).as_posix()


def _check(seeds: int, out: Path) -> None:
    """Check what is asked for before anything is loaded."""
    from verirec.sole_writer import check_writable
    from verirec.studies.semi_synthetic import check_seeds

    check_seeds(seeds)
    check_writable(out)


def _population(preferences: str, data: Path | None) -> Population:
    from verirec.studies.semi_synthetic import load_population

    with working(f"Loading {preferences}"):
        return load_population(preferences, data)


def _run(plan: Plan, population: Population, seeds: int, out: Path) -> Any:
    """Run a plan with a bar where somebody watches, and give the records as a frame."""
    from verirec.studies.semi_synthetic import run_plan, tables

    console = talking_console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{out.name or plan.study}, seeds", total=seeds)
        records = run_plan(
            plan,
            population,
            seeds=seeds,
            folder=out,
            engine=None,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    return tables.as_frame(records)


def show_table1(console: Console, table: Any, plan: Plan) -> None:
    """Print Table 1: in one piece if it is not wider than the console, otherwise in pieces of fewer recommenders."""
    from verirec.studies.semi_synthetic.words import row_in_words, rows_of, table1_cell, table1_notes, table1_title

    names = list(dict.fromkeys(table.matrix))
    say = table1_cell(plan)
    cells = {(one.method, one.rho, one.matrix): say(one) for one in table.itertuples()}

    def piece(of: list[str]) -> Table:
        shown = Table()
        shown.add_column("", no_wrap=True)
        for name in of:
            shown.add_column(name, justify="right", no_wrap=True)
        for row in rows_of(table):
            shown.add_row(row_in_words(*row), *(cells[*row, name] for name in of))
        return shown

    def pieces(each: int) -> list[Table]:
        return [piece(names[start : start + each]) for start in range(0, len(names), each)]

    def widest(shown: list[Table]) -> int:
        unbounded = console.options.update(width=10_000)
        return max(Measurement.get(console, unbounded, one).maximum for one in shown)

    for line in (table1_title(plan, int(table.seeds.iloc[0])), *table1_notes(plan)):
        console.print(line, soft_wrap=True)
    shown = next((tried for each in (len(names), 3, 2) if widest(tried := pieces(each)) <= console.width), pieces(1))
    # Never cut: a console narrower than one column wraps lines itself, and all numbers are there.
    console.width = max(console.width, widest(shown))
    for one in shown:
        console.print(one)


def _seeds_in_words(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _console() -> Console:
    console = Console(markup=False, highlight=False)
    # A table is for a file or a pipe as well, and is not cut there.
    return console if console.is_terminal else Console(markup=False, highlight=False, width=140)
