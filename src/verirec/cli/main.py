"""The `verirec` command: its verbs, and how it speaks of mistakes."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from verirec import __version__
from verirec.cli import datasets, demo
from verirec.exceptions import VerirecError, VerirecWarning

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="How good is a recommender really, when its feedback is selective and noisy?",
)
app.command("demo")(demo.demo)
app.add_typer(datasets.app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"verirec {__version__}")
        raise typer.Exit


@app.callback()
def verirec(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before the verb."""


def main() -> None:
    """Run the command; a user's mistake ends in one line and exit code 2, never in a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line_warning
            app()
    except VerirecError as error:
        typer.echo(f"verirec: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("verirec: stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output left (`verirec ... | head`); a second error while flushing would be noise.
        sys.stderr.close()
        sys.exit(141)


def _one_line_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    name = "warning" if issubclass(category, VerirecWarning) else category.__name__
    typer.echo(f"verirec: {name}: {message}", err=True)
