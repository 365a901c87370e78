"""verirec reproduce table2 and table2-pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from verirec.cli.groups import takes_groups
from verirec.cli.options import StudyEngineOptions, named_path
from verirec.cli.speech import talking_console, working

if TYPE_CHECKING:
    from verirec.studies.table2 import Problem, Results, Study
    from verirec.studies.table2.results import StudyTables

Out = Annotated[
    Path,
    typer.Option(
        help="Folder for tables, pictures and the page; runs are kept in its store/.", parser=named_path, metavar="PATH"
    ),
]


@takes_groups
def table2_command(
    out: Out,
    where: StudyEngineOptions,
    dataset: Annotated[str, typer.Option(help="coat, yahoo-r3 or kuairec.")] = "coat",
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets; by default $VERIREC_DATA or the cache.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="unbiased-validation: settings are chosen on a slice of the random ratings, taken out of the test. "
            "honest: on held-out noisy, self-selected ratings, as they are and by corrected estimates."
        ),
    ] = "unbiased-validation",
    methods: Annotated[str | None, typer.Option(help="Comma-separated names; by default the paper's 24.")] = None,
    forms: Annotated[
        str,
        typer.Option(
            help="Comma-separated names: paper (factors alone), constants, features, exposure (and what people rated)."
        ),
    ] = "paper,constants,features,exposure",
    auto: Annotated[
        bool, typer.Option("--auto/--no-auto", help="Also train by auto, which searches by the log alone.")
    ] = True,
    seeds: Annotated[int, typer.Option(help="How many label flips and training runs, with seeds 0, 1, ...")] = 10,
    trials: Annotated[int, typer.Option(help="Settings tried for each method and form.")] = 20,
    rho01: Annotated[float, typer.Option(help="Share of likes that are logged as dislikes.")] = 0.2,
    rho10: Annotated[float, typer.Option(help="Share of dislikes that are logged as likes.")] = 0.1,
    rates: Annotated[
        str, typer.Option(help="Noise rates that methods get: true, or audit (500 logged pairs).")
    ] = "true",
    space: Annotated[str, typer.Option(help="fast, or paper: the printed grid, with small batches.")] = "fast",
    quick: Annotated[
        bool,
        typer.Option(
            help="A quick look: MF, IPS and OME-DR unless --methods names others, at most 2 trials and 2 seeds."
        ),
    ] = False,
) -> None:
    """Reproduce Table 2 under equal tuning: all methods and simple baselines, ours beside the paper's.

    A stopped run continues where it was; several runs may share a folder.

    Example: verirec reproduce table2 --dataset coat --data data --out table2
    """
    from verirec.sole_writer import check_writable
    from verirec.studies.table2 import QUICK_METHODS, Study, load_problem, named_methods
    from verirec.studies.table2.spaces import BY_LOG
    from verirec.studies.table2.tuning import require_optuna

    chosen = QUICK_METHODS if quick and methods is None else named_methods(methods)
    study = Study(
        dataset=dataset,
        protocol=protocol,
        methods=chosen,
        forms=tuple(form.strip() for form in forms.split(",") if form.strip()),
        by_log=BY_LOG if auto and not quick else (),
        trials=min(trials, 2) if quick else trials,
        seeds=min(seeds, 2) if quick else seeds,
        rho01=rho01,
        rho10=rho10,
        rates=rates,
        space=space,
    )
    check_writable(out)
    require_optuna()
    with working(f"Loading {dataset}"):
        problem = load_problem(dataset, data)
    tables = _tables(_run(problem, study, out), problem, out)
    _show(tables, out)


def _run(problem: Problem, study: Study, out: Path) -> Results:
    """Run a study with a bar where somebody watches."""
    from verirec.studies.table2 import run_study

    console = talking_console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{study.dataset}, runs", total=None)
        return run_study(
            problem,
            study,
            out,
            engine=None,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _tables(results: Results, problem: Problem, out: Path) -> StudyTables:
    from verirec.studies.store import STORE, Store
    from verirec.studies.table2 import findings, tables
    from verirec.studies.table2.page import write_study
    from verirec.studies.table2.results import StudyTables

    store = Store(out / STORE)
    honest, more = results.study.protocol == "honest", (findings.correction(results), findings.searches(results))
    found = StudyTables(
        tables.table2(results, problem.k, store.array),
        findings.tuning_spread(results),
        findings.chosen_settings(results),
        findings.selection(results) if honest else None,
        *(table if len(table) else None for table in more),
    )
    write_study(out, found)
    return found


def _show(tables: StudyTables, out: Path) -> None:
    """Print each form's table, four metrics of it, and where all of it is."""
    from verirec.studies.table2.page import forms_of
    from verirec.studies.table2.words import CHOICES, FORMS, MARKS, laid_out, title

    console = Console(markup=False, highlight=False)
    # A table is for a file or a pipe as well, and is not cut there.
    console = console if console.is_terminal else Console(markup=False, highlight=False, width=140)
    console.print(title(tables.table2), soft_wrap=True)
    console.print(MARKS, soft_wrap=True)
    for choice in tables.choices:
        for form in forms_of(tables):
            header, rows = laid_out(tables.table2, form, choice, ("auc", "ndcg", "recall", "log_loss"))
            console.print(f"\n{FORMS[form]}, {CHOICES[choice]}", soft_wrap=True)
            console.print(_grid(header, rows))
    console.print(f"The table: {out / 'table2.csv'}, the page: {out / 'report.html'}", soft_wrap=True)


def _grid(header: list[str], rows: list[Any]) -> Table:
    shown = Table()
    for place, name in enumerate(header):
        shown.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    return shown


def table2_pages_command(
    results: Annotated[Path, typer.Option(help="Folder with a folder for each study.")],
    out: Annotated[
        Path, typer.Option(help="Folder for table2.md and which-method.md.", parser=named_path, metavar="PATH")
    ],
) -> None:
    """Write the pages on Table 2 and on which method to use when, from results.

    Example: verirec reproduce table2-pages --results docs/table2 --out docs
    """
    from verirec.pages.writing import write_file
    from verirec.sole_writer import check_writable
    from verirec.studies.table2.documents import PAGES, read_studies

    check_writable(out)
    studies = read_studies(results)
    console = Console(markup=False, highlight=False)
    for name, write in PAGES.items():
        write_file(out / name, write(studies).encode())
        console.print(f"The page: {out / name}", soft_wrap=True)
