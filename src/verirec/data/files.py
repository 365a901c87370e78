"""Logs from files: CSV, TSV, Parquet and RecBole's .inter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from verirec.checks import path_of
from verirec.data.feedback_log import FeedbackLog, log_from_table
from verirec.data.limits import COMPRESSIONS
from verirec.data.parquet_files import read_parquet
from verirec.data.roles import PairRoles, Roles, log_duplicates, log_roles
from verirec.data.tables import LogOptions
from verirec.data.text_files import header_names, one_line, read_text, refuse_long_line
from verirec.data.text_form import TextForm
from verirec.exceptions import ColumnError, EmptyLogError, FileFormatError, MissingValueError, ParameterError
from verirec.formatting import short

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t", ".inter": "\t"}


def read_log(
    path: str | Path,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
    **options: Unpack[LogOptions],
) -> FeedbackLog:
    """Read a feedback log from a file, by its ending: .csv, .tsv, .inter (these may be .gz, ...) or .parquet.

    Only the columns that are needed are read. In text files ids are read as text, so that "007" stays "007"; where
    every id of a column is a plain integer they become integers.

    Parameters
    ----------
    path
        The file.
    delimiter
        One character, where a text file uses another one than its ending says, or has another ending.
    columns
        The names of a text file's columns, if it has no header line.
    encoding
        Of a text file, where it is not UTF-8: "cp1252", "utf-16", ...
    options
        Whatever `FeedbackLog.from_frame` takes: user, item, rating, positive_from, ... With `drop_missing`, lines that
        have too few or too many fields are left out too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "ratings.csv")
    >>> _ = file.write_text("userId,movieId,rating\\n1,10,4.5\\n2,10,1.0\\n")
    >>> read_log(file, positive_from=3)
    FeedbackLog(2 rows, 2 users x 1 items, 100.00% of the grid, 50.0% positive)
    >>> folder.cleanup()
    """
    unknown = set(options) - set(LogOptions.__annotations__)
    if unknown:
        raise TypeError(f"read_log() got an unexpected keyword argument {min(unknown)!r}")
    file = path_of("path", path)
    named: dict[str, Any] = dict(options)
    roles = log_roles(named)
    named = {name: value for name, value in named.items() if name not in {*vars(roles), "clicks"}}
    named["duplicates"] = log_duplicates(options)
    ending = file_ending(file, is_text=delimiter is not None)
    form = TextForm(delimiter, columns, encoding, skip_broken=named.get("drop_missing") is True)
    with frugal_memory():
        table, roles = read_columns(file, ending, roles, form)
        form.warn_of_broken(file.name)
        try:
            return log_from_table(table, roles, from_text=ending != ".parquet", **named)
        except MissingValueError as error:
            below = "; row 0 is the one below the header" if ending != ".parquet" and columns is None else ""
            raise MissingValueError(f"{file.name}: {error}, or leave such rows out: drop_missing=True{below}") from None


def read_pairs(
    path: Path,
    roles: PairRoles,
    form: TextForm,
    *,
    drop_missing: bool = False,
    clean_ids: bool = False,
) -> FeedbackLog:
    """Read which pairs a file of ratings has, each once, whatever was rated: all labels are 0.

    Parameters
    ----------
    path
        As in `read_log`, as are the others.
    roles, form
        Its columns, and how its text is written.
    """
    ending = file_ending(path, is_text=form.delimiter is not None)
    table, settled = read_columns(path, ending, roles, form)
    form.warn_of_broken(path.name)
    sides = {side: table[str(getattr(settled, side))] for side in ("user", "item")}
    pairs = pa.table(sides | {"label": np.zeros(len(table), np.int8)})
    options: dict[str, Any] = {"drop_missing": drop_missing, "clean_ids": clean_ids, "duplicates": "first"}
    return log_from_table(pairs, Roles("user", "item", "label"), from_text=ending != ".parquet", **options)


def read_columns(
    file: Path,
    ending: str,
    roles: Roles,
    form: TextForm | None = None,
    *,
    likely: Mapping[str, str | None] | None = None,
) -> tuple[pa.Table, Roles]:
    """Read the columns that are needed, and say which they are; whatever is wrong with the file is told in one line.

    Parameters
    ----------
    ending
        From `file_ending`.
    roles, likely
        Of the columns: see `Roles.settle`.
    form
        Of a text file, where its ending does not say all.
    """
    form = form or TextForm()
    with told_in_one_line(file, ending, roles):
        settle = settling(file, roles, likely)
        if ending == ".parquet":
            return read_parquet(file, settle)
        return read_text(file, settle, separator(ending, form), form, typed_header=ending == ".inter")


def column_names(file: Path, ending: str, form: TextForm) -> list[str]:
    """Read the names of a file's columns, and nothing else of it; parameters as in `read_columns`."""
    with told_in_one_line(file, ending, Roles()):
        if ending == ".parquet":
            return list(pyarrow.parquet.read_schema(file).names)
        return header_names(file, separator(ending, form), form, typed_header=ending == ".inter")


def settling(file: Path, roles: Roles, likely: Mapping[str, str | None] | None = None) -> Callable[[list[str]], Roles]:
    """Return what settles roles on the columns of a file, whose errors name it."""

    def settle(names: list[str]) -> Roles:
        try:
            return roles.settle(names, likely)
        except ColumnError as error:
            raise ColumnError(f"{file.name}: {error}") from None

    return settle


def separator(ending: str, form: TextForm) -> str:
    """Return what separates the fields of a text file."""
    return _DELIMITERS[ending] if form.delimiter is None else form.delimiter


@contextmanager
def told_in_one_line(file: Path, ending: str, roles: Roles) -> Iterator[None]:
    """Refuse what is no file to read, and say in one line what Arrow finds wrong with one."""
    try:
        if not file.is_file():
            raise FileFormatError(f"no file {short(str(file), max=300)}")
        if not _is_text(str(file)):
            raise FileFormatError(f"the name {short(str(file), max=300)} is not UTF-8: rename the file")
        if file.stat().st_size == 0:
            raise FileFormatError(f"{file.name} is empty")
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeError) as error:
        refuse_long_line(file, error)
        if "Empty CSV" in str(error):
            raise EmptyLogError(f"{file.name} is empty: it must have at least one row") from None
        hint = _way_on(str(error)) if roles.takes_delimiter else ""
        raise FileFormatError(f"{file.name} is not a readable {ending[1:]} file: {one_line(error)}{hint}") from None


def _way_on(error: str) -> str:
    """Return what to do about an error of Arrow's, where that can be known."""
    if "Expected 1 columns" in error:
        return "; if fields are separated otherwise, give delimiter=..."
    of_a_line = "Expected " in error and " columns, got " in error
    return "; to leave such lines out, give drop_missing=True" if of_a_line else ""


def _is_text(name: str) -> bool:
    """Whether a name can be written as UTF-8, which is how Arrow opens files."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def frugal_memory() -> Iterator[None]:
    """Let Arrow allocate by jemalloc, where it has it, while a file is read.

    Its default asks for huge pages, and a reader allocates and frees much: where memory is fragmented, the system then
    spent more time on clearing pages (3.6 s of 25 million rows) than the reader on reading.
    """
    before = pa.default_memory_pool()
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def file_ending(file: Path, *, is_text: bool, kind: str = "a log") -> str:
    """Return the ending that says how to read a file, without that of a compression; `kind` is what errors call it."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compressed = bool(suffixes) and suffixes[-1] in COMPRESSIONS
    if compressed:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending in _DELIMITERS or (ending == ".parquet" and not compressed and not is_text):
        return ending
    if is_text:
        return ".csv"
    other = ", or be text with a delimiter=..." if kind == "a log" else ""
    raise ParameterError(f"{kind} must end in .csv, .tsv, .parquet or .inter{other}; got {short(file.name)}")


def separator_of(ending: str) -> str | None:
    """Return what separates the fields of a text file with this ending."""
    return _DELIMITERS.get(ending)
