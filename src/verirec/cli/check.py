"""verirec check."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli import messages
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import LogOptions
from verirec.cli.options import AsJson
from verirec.cli.standard_input import at_hand
from verirec.cli.verbs import options_called
from verirec.exceptions import FileFormatError

if TYPE_CHECKING:
    from verirec.data.inspection import Fault, FileCheck

app = typer.Typer(add_completion=False)

_ASSESSED: Final = "--train mf --out assessment"


@app.command("check")
@takes_groups
def check_command(log: LogOptions, as_json: AsJson = False) -> None:
    """List everything that is wrong with a file of ratings, and the options that mend it.

    The options that it ends with were tried: with them every other verb reads the file, such as the command below them.
    Which column is which, where no name is a usual one, is guessed from words of several languages; what
    --positive-from, --scale and --duplicates should be is for you to decide: these are guesses too.

    Example: verirec check ratings.csv --positive-from 4
    """
    found, given = _checked(log), _given(log)
    command = _command(log.log, given | found.mend)
    if as_json:
        typer.echo(json.dumps(_summary(found, given) | {"command": command}, indent=2))
    else:
        _say(found, given)
        if found.log is not None:
            typer.echo(f"For example: {command}")
    if found.log is None:
        raise FileFormatError(f"{log.log.name} cannot be read before the last of what is wrong with it is mended")


def _checked(log: LogOptions) -> FileCheck:
    """Look at a file, or open a prepared log, which compares its checksums."""
    from verirec.data.inspection import Fault, FileCheck, check_file

    if log.log.is_dir():
        return FileCheck((), {}, log.load(), ())
    with at_hand(log.log) as file:
        if not file.is_file():
            raise FileFormatError(f"no file {str(file)!r}")
        found = check_file(file, **log.reading, **log.rules())
    options = options_called(sys.argv[1:])
    faults = (Fault(**vars(one) | {"what": messages.in_options(one.what, options)}) for one in found.faults)
    remarks = (messages.in_options(one, options) for one in found.remarks)
    return replace(found, faults=tuple(faults), remarks=tuple(remarks))


def _given(log: LogOptions) -> dict[str, Any]:
    """Return the options that were given, which belong to those that read the file."""
    usual = {"encoding": "utf-8", "duplicates": "error", "drop_missing": False, "clean_ids": False, "clicks": False}
    said = {**log.reading, **log.rules()}
    return {name: value for name, value in said.items() if value is not None and value != usual.get(name)}


def _command(file: Path, options: dict[str, Any]) -> str:
    """Return a whole command that reads the file: an assessment or, of clicks alone, what can be done with them."""
    words = in_options(options)
    verb, rest = ("train", "--method rel-mf --out model") if options.get("clicks") else ("assess", _ASSESSED)
    return " ".join(filter(None, ["verirec", verb, shlex.quote(str(file)), words, rest]))


def _say(found: FileCheck, given: dict[str, Any]) -> None:
    console = Console(markup=False, highlight=False)
    if found.faults:
        console.print(_table(found.faults))
    for remark in found.remarks:
        console.print(f"- {remark}", soft_wrap=True)
    if found.log is None:
        return
    console.print(repr(found.log), soft_wrap=True)
    told = f"Give {in_options(given | found.mend)}" if found.mend else "Nothing is wrong with it."
    console.print(told, soft_wrap=True)


def in_options(mend: dict[str, Any]) -> str:
    """Write options of `read_log` as the command line has them.

    Examples
    --------
    >>> in_options({"drop_missing": True, "scale": (1, 5), "delimiter": ";", "positive_from": 4.0})
    "--drop-missing --scale 1 5 --delimiter ';' --positive-from 4"
    """
    words = []
    for name, value in mend.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, list):
            words.append(",".join(map(_word, value)))
        elif value is not True:
            words += [_word(one) for one in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(words)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | int) else "\\t" if value == "\t" else str(value)


def _summary(found: FileCheck, given: dict[str, Any]) -> dict[str, Any]:
    log = found.log
    return {
        "faults": [vars(fault) | {"options": in_options(fault.mend)} for fault in found.faults],
        "options": in_options(given | found.mend),
        "remarks": list(found.remarks),
        "log": None if log is None else {"rows": len(log), "users": log.n_users, "items": log.n_items},
    }


def _table(faults: tuple[Fault, ...]) -> Table:
    table = Table()
    for title in ("What is wrong", "Rows", "First", "Mended by"):
        table.add_column(title, justify="right" if title == "Rows" else "left")
    for fault in faults:
        first = ", ".join(map(str, fault.first))
        mended = in_options(fault.mend) or "you: see there"
        table.add_row(fault.what, f"{fault.rows:,}" if fault.rows else "", first, mended)
    return table
