"""verirec datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import verirec as vr
from verirec.checks import one_of
from verirec.cli.speech import working

app = typer.Typer(invoke_without_command=True, add_completion=False)

DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder that holds the data sets; by default $VERIREC_DATA or the cache.")
]


@app.callback()
def datasets(
    context: typer.Context,
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the data sets: where each of them is, or how to get it.

    Example: verirec datasets --data ~/data
    """
    if context.invoked_subcommand is not None:
        return
    known = vr.data.datasets.CATALOGUE
    home = vr.data.datasets.existing_home(data)
    found = {name: vr.data.datasets.find_dataset(info, home) for name, info in known.items()}
    if as_json:
        rows = [
            {
                "name": name,
                "title": info.title,
                "users": info.size.users,
                "items": info.size.items,
                "ratings": info.size.ratings,
                "positive_from": info.positive_from,
                "found": None if found[name] is None else str(found[name]),
                "downloadable": info.download is not None,
                "source": info.source,
            }
            for name, info in known.items()
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    _print_table(home, found)


def _print_table(home: Path, found: dict[str, Path | None]) -> None:
    console = Console(markup=False, highlight=False)
    console.print(f"Data sets, looked for in {home}", soft_wrap=True)
    table = Table()
    table.add_column("Name", no_wrap=True)
    table.add_column("What")
    table.add_column("Users x items", justify="right", no_wrap=True)
    table.add_column("Ratings", justify="right", no_wrap=True)
    table.add_column("Here")
    for name, info in vr.data.datasets.CATALOGUE.items():
        users, items, ratings = info.size
        table.add_row(name, info.title, f"{users:,} x {items:,}", f"{ratings:,}", "yes" if found[name] else "no")
    console.print(table)
    for name, info in vr.data.datasets.CATALOGUE.items():
        if found[name] is None:
            console.print(f"{name}: {info.how_to_get(home)}", soft_wrap=True)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that verirec datasets lists.")],
    data: DataFolder = None,
) -> None:
    """Download a data set that anyone may download, and check it.

    Example: verirec datasets fetch movielens-100k --data ~/data
    """
    catalogue = vr.data.datasets.CATALOGUE
    info = catalogue[one_of("name", name, catalogue)]
    home = vr.data.datasets.data_home_folder(data)
    folder = vr.data.datasets.find_dataset(info, home)
    if folder is None:
        with working(f"Downloading {name}"):
            folder = vr.data.datasets.fetch_dataset(info, home)
    Console(markup=False, highlight=False).print(f"{name} is in {folder}", soft_wrap=True)
