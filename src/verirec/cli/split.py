"""verirec split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import typer
from rich.console import Console

import verirec as vr
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import LogOptions
from verirec.cli.options import AsJson, Seed, named_path
from verirec.exceptions import ParameterError
from verirec.pages.writing import check_writable_file, write_files

if TYPE_CHECKING:
    from verirec.data.ids import IdMap

app = typer.Typer(add_completion=False)

_SIDES: Final = ("user", "item")

_Part = Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="File to write: .csv or .parquet.")]


@app.command("split")
@takes_groups
def split_command(
    log: LogOptions,
    train: _Part,
    test: _Part,
    held_out: Annotated[float, typer.Option(help="Share of the rows, or of the users, for --test.")] = 0.2,
    by: Annotated[
        str,
        typer.Option(help="random rows; user: whole users; within-user: rows of each; time: the last, by --timestamp."),
    ] = "random",
    ids: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="PATH",
            help="Folder for users.txt and items.txt, all ids of the log: --all-users and --all-items of its parts.",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Part a log in two files, to train on one and to judge by the other.

    Both have the columns user, item and label, with whatever else the log has, and are read back without options, but
    for --levels, --all-users, --all-items and features, which are given again. Users and items that have no row in a
    part are in its grid only where --all-users and --all-items name them; --ids writes these lists.

    Example: verirec split ratings.csv --positive-from 4 --train train.csv --test test.csv --held-out .3
    """
    _check_parts(train, test, log.files)
    parts = vr.split(log.load(), held_out, by=by, random_state=seed)  # type: ignore[arg-type]
    written = dict(zip((train, test), parts, strict=True))
    lists = {} if ids is None else {ids / f"{side}s.txt": _listed(getattr(parts[0], f"{side}_ids")) for side in _SIDES}
    for file in lists:
        check_writable_file(file)
        if file.resolve() in {one.resolve() for one in log.files}:
            raise ParameterError(f"--ids must not take the place of what is read; got {str(file)!r}")
    write_files({file: _content(part, file) for file, part in written.items()} | lists)
    if as_json:
        told = {
            name: {"file": str(file), "rows": len(written[file])} for name, file in (("train", train), ("test", test))
        }
        typer.echo(json.dumps(told, indent=2))
        return
    console = Console(markup=False, highlight=False)
    for file, part in written.items():
        console.print(f"{file}: {part!r}", soft_wrap=True)
    for file, part in written.items():
        for side in _SIDES:
            _say_lacking(console, file, part, side, ids)


def _say_lacking(console: Console, file: Path, part: vr.FeedbackLog, side: str, ids: Path | None) -> None:
    """Say how many users or items a part has no row of, and what keeps them in its grid."""
    total, there = getattr(part, f"n_{side}s"), len(np.unique(getattr(part, f"{side}s")))
    if there < total:
        option = f"--all-{side}s"
        mend = (
            f"read it with {option} {ids / f'{side}s.txt'}" if ids else f"split with --ids, and read it with {option}"
        )
        told = f"{file} has rows of {there:,} of {total:,} {side}s; to keep the others in its grid, {mend}"
        console.print(told, soft_wrap=True)


def _listed(ids: IdMap) -> bytes:
    return "".join(f"{one}\n" for one in ids.ids().tolist()).encode()


def _check_parts(train: Path, test: Path, inputs: list[Path]) -> None:
    """Refuse files that cannot be written in the end, or that would take the place of what is read."""
    read = {file.resolve() for file in inputs}
    for file in (train, test):
        if file.suffix.lower() not in (".csv", ".parquet"):
            raise ParameterError(f"a part must end in .csv or .parquet; got {file.name!r}")
        check_writable_file(file)
        if read & {file.resolve(), *file.resolve().parents}:
            raise ParameterError(f"a part must not take the place of what is read; got {str(file)!r}")
    if train.resolve() == test.resolve():
        raise ParameterError(f"--train and --test must be two files; both are {str(train.resolve())!r}")


def _content(part: vr.FeedbackLog, file: Path) -> bytes:
    """Return a log as the bytes of a file: ids as they are, for reading rather than for a spreadsheet."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    sink, table = pa.BufferOutputStream(), part.to_arrow()
    if file.suffix.lower() == ".csv":
        pyarrow.csv.write_csv(table, sink)
    else:
        pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())
