"""verirec methods."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.options import AsJson, methods_module

app = typer.Typer(add_completion=False)


@app.command("methods")
def methods_command(as_json: AsJson = False) -> None:
    """List the methods that verirec train knows.

    Example: verirec methods --json
    """
    catalogue = methods_module().catalogue
    rows = [
        {
            "name": name,
            "summary": one.summary,
            "uses_propensities": one.uses_propensities,
            "corrects_noise": one.correction != "none",
            "sweeps": one.sweeps,
            "paper": one.paper,
        }
        for name, one in catalogue.items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table()
    for title in ("Method", "What it does", "Propensities", "Noise", "Sweeps", "Paper"):
        table.add_column(title, no_wrap=title == "Method")
    for row in rows:
        marks = ["yes" if row[key] else "" for key in ("uses_propensities", "corrects_noise", "sweeps")]
        table.add_row(str(row["name"]), str(row["summary"]), *marks, str(row["paper"]))
    Console(markup=False, highlight=False).print(table)
