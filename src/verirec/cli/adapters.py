"""verirec adapters."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("adapters")
def adapters_command(as_json: AsJson = False) -> None:
    """List the libraries whose models can be judged as they are.

    In Python they are given to estimate, compare and assess, or to vr.adapt with what they need besides; lists and
    scores in files are given to --predictions.

    Example: verirec adapters --json
    """
    from verirec.adapters import CATALOGUE

    named = ("library", "version", "takes", "ids", "gives")
    rows = [{name: getattr(one, name) for name in named} for one in CATALOGUE]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table()
    for title in ("Library", "Tested with", "Models", "Users and items by", "Gives"):
        table.add_column(title, no_wrap=title == "Library")
    for row in rows:
        table.add_row(*row.values())
    Console(markup=False, highlight=False).print(table)
