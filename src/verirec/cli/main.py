"""The `verirec` command: its verbs, and how it speaks of mistakes."""

from __future__ import annotations

import io
import logging
import os
import platform
import sys
import traceback
import warnings
from typing import Annotated, Any, Final, NoReturn

import typer

from verirec import __version__
from verirec.cli.messages import in_options
from verirec.cli.speech import speech
from verirec.cli.verbs import VERBS, Verbs, called, options_called
from verirec.exceptions import ParameterError, ReusedWorkWarning, VerirecError, VerirecWarning

# Older versions of typer take this class from click, newer ones have it in a private module.
_MISTAKEN_ARGUMENTS: Final[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

_ANSWERS: Final = ("survey", "audit", "reask", "pilot")
"""Options that name files of people's answers."""
_INTERRUPTED: Final = 130
"""What typer makes of Ctrl-C."""

app = typer.Typer(
    cls=Verbs,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How good is a recommender really, when its feedback is selective and noisy?",
)
for _verb, _line in VERBS.items():
    app.command(_verb, help=_line)(lambda: None)


_MATTERS: Final = ("numpy", "scipy", "pyarrow", "pandas", "torch", "numba", "ray", "optuna")
"""Packages whose versions tell why two machines differ."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"verirec {__version__}")
        typer.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
        typer.echo(", ".join(f"{name} {_version_of(name)}" for name in _MATTERS))
        raise typer.Exit


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


@app.callback()
def verirec(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the versions of what matters, and exit."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Results and errors only: no progress, no warnings.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Every step with its time and, of an error, where it came from.")
    ] = False,
) -> None:
    """Take the options that come before the verb; without a verb, show the help."""
    if quiet and verbose:
        raise ParameterError("give --quiet or --verbose, not both")
    speech.level, speech.stopped = "quiet" if quiet else "verbose" if verbose else "usual", "stopped"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command; a user's mistake ends in one line and exit code 2, never in a traceback."""
    _show_any_name()
    # Else it says that it makes a list of fonts, and where no home folder can be written, that it does so every time.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        _refuse_repeats()
        with warnings.catch_warnings():
            warnings.showwarning = _one_line_warning
            code = app(standalone_mode=False) or 0
    except VerirecError as error:
        if speech.level == "verbose":
            traceback.print_exc()
        _end(2, in_options(str(error), options_called(sys.argv[1:])))
    except _MISTAKEN_ARGUMENTS as error:
        _end(2, error.format_message())
    except typer.Abort:
        code = _INTERRUPTED
    except OSError as error:
        _end(2, _refused_by_the_system(error))
    if code == _INTERRUPTED:
        _end(code, speech.stopped)
    sys.exit(code)


def _show_any_name() -> None:
    """Have names of files that the terminal's encoding lacks shown by their codes, rather than end what was done."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end(code: int, message: str) -> NoReturn:
    typer.echo(f"verirec: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _refuse_repeats() -> None:
    """Refuse an option that takes one value and is given twice, of which only the last would count."""
    command, words = called(sys.argv[1:])
    given = [word.partition("=")[0] for word in words]
    for one in getattr(command, "params", ()):
        single = one.opts[0].startswith("-") and not one.multiple and not one.is_flag
        if single and sum(given.count(name) for name in one.opts) > 1:
            remedy = "put the answers into one file" if one.name in _ANSWERS else "give it once"
            raise ParameterError(f"{one.opts[-1]} was given twice: {remedy}")


def _refused_by_the_system(error: OSError) -> str:
    """Say which file or folder the system refused, and why."""
    reason = error.strerror or str(error) or type(error).__name__
    return (
        f"cannot use {os.fsdecode(error.filename)!r}: {reason}" if error.filename else f"the system refused: {reason}"
    )


def _one_line_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if speech.level == "quiet":
        return
    # What is used again is good news, and no warning.
    good = issubclass(category, ReusedWorkWarning)
    kind = "" if good else "warning: " if issubclass(category, VerirecWarning) else f"{category.__name__}: "
    # Not by `typer.echo`, which goes past what rich puts in stderr's place to keep lines above one that changes.
    sys.stderr.write(f"verirec: {kind}{in_options(str(message), options_called(sys.argv[1:]))}\n")
