"""The `verirec` command: its verbs, and how it speaks of mistakes."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import click
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
            code = app(standalone_mode=False)
            sys.stdout.flush()
    except (VerirecError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _end(2, " ".join(message.split()))
    except (KeyboardInterrupt, click.Abort):
        _end(130, "stopped")
    except BrokenPipeError:
        # The reader of our output left (`verirec ... | head`); flushing what is left would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    else:
        sys.exit(code or 0)


def _end(code: int, message: str) -> None:
    typer.echo(f"verirec: {message}", err=True)
    sys.exit(code)


def _one_line_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    name = "warning" if issubclass(category, VerirecWarning) else category.__name__
    typer.echo(f"verirec: {name}: {message}", err=True)
