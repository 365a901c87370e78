"""The files that a log is prepared from: found, checked to be of one form, and read piece by piece."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from verirec.checks import path_of
from verirec.data.files import file_ending, read_columns, separator, settling, told_in_one_line
from verirec.data.ids import is_text
from verirec.data.lent_text import text_blocks
from verirec.data.parquet_files import check_parquet
from verirec.data.roles import Roles
from verirec.data.tables import is_integer_column
from verirec.data.text_files import TextLayout, likely_rows
from verirec.data.text_form import TextForm
from verirec.data.text_ids import TextIds
from verirec.exceptions import ColumnError, FileFormatError, ParameterError
from verirec.formatting import short

_TEXT_ROW_BYTES: Final = 12
"""Of a text file, fewer than a row has: what the number of its rows is guessed by."""
_PACKED: Final = 8
"""How many times longer a compressed text file may be than its size."""


def found_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files that paths and patterns such as "ratings/*.parquet" name, those of a pattern by name.

    Examples
    --------
    >>> found_files("nowhere/*.parquet")
    Traceback (most recent call last):
    verirec.exceptions.FileFormatError: no file is called 'nowhere/*.parquet'
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths) if isinstance(paths, Sequence) else None
    if not listed or not all(isinstance(one, str | Path) for one in listed):
        raise ParameterError(f"paths must be one or more names of files, or patterns; got {short(paths)}")
    files: list[Path] = []
    for one in listed:
        matches = _matches(path_of("paths", one))
        if not matches:
            raise FileFormatError(f"no file is called {short(str(one), max=300)}")
        if matches[0].is_dir():
            named = short(str(matches[0]), max=300)
            raise FileFormatError(f"{named} is a folder: name the files in it, by a pattern such as '*.parquet'")
        files += matches
    twice = sorted({str(file) for file in files if files.count(file) > 1})
    if twice:
        raise ParameterError(f"{short(twice[0], max=300)} is named twice")
    return files


def _matches(path: Path) -> list[Path]:
    if path.exists() or not any(sign in str(path) for sign in "*?["):
        return [path]
    odd = next((part for part in path.parts if "**" in part and part != "**"), None)
    if odd is not None:
        raise ParameterError(
            f"a pattern has ** for folders within folders alone, as in 'ratings/**/*.parquet'; got {short(odd)}: "
            "within a name, * stands for any text"
        )
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


@dataclass(frozen=True)
class Sources:
    """Files of one form, in the order that their rows count in.

    Parameters
    ----------
    files
        All with one ending.
    ending
        As of `file_ending`.
    roles
        Settled on the columns that all of them have.
    kinds
        What the columns hold, where the files tell.
    form
        Of text files.
    """

    files: list[Path]
    ending: str
    roles: Roles
    kinds: dict[str, str]
    form: TextForm

    @classmethod
    def of(cls, files: list[Path], roles: Roles, form: TextForm) -> Sources:
        """Look at the beginning of each file; refuse those that differ in columns or types."""
        endings = {file: file_ending(file, is_text=form.delimiter is not None) for file in files}
        first, ending = files[0], endings[files[0]]
        other = next((file for file in files if endings[file] != ending), None)
        if other is not None:
            raise FileFormatError(f"files of one kind are needed; {first.name} and {other.name} are of two")
        settled: Roles | None = None
        kinds: dict[str, str] = {}
        for file in files:
            with told_in_one_line(file, ending, roles):
                if settled is None:
                    settled, kinds = _kinds(file, ending, roles, form)
                    continue
                try:
                    _, theirs = _kinds(file, ending, settled, form)
                except ColumnError as error:
                    raise ColumnError(f"{error}; {first.name} has it") from None
            for name, kind in theirs.items():
                if kind != kinds[name]:
                    raise ColumnError(
                        f"column {name!r} must be of one type in all files: {kinds[name]} in {first.name}, "
                        f"{kind} in {file.name}"
                    )
        return cls(files, ending, settled or roles, kinds, form)

    @property
    def from_text(self) -> bool:
        """Whether ids are read as text."""
        return self.ending != ".parquet"

    def reads_integers(self, name: str) -> bool:
        """Tell whether plain integers in a text file of ids are the integers of this column."""
        return self.from_text or self.kinds[name] == "integers"

    def guessed_rows(self) -> int:
        """Return how many rows there are or, of text, at most may be."""
        if not self.from_text:
            return sum(pq.read_metadata(file).num_rows for file in self.files)
        sizes = [
            file.stat().st_size * (1 if file.suffix.lower() in (".csv", ".tsv", ".inter") else _PACKED)
            for file in self.files
        ]
        return sum(sizes) // _TEXT_ROW_BYTES + len(sizes)

    def likely_rows(self, file: Path) -> int:
        """Return how many rows a file has or, of text, how many it has if all of it is like its start."""
        return likely_rows(file) if self.from_text else pq.read_metadata(file).num_rows

    def pieces(self, file: Path, rows: int, skip: int) -> Generator[pa.Table, None, None]:
        """Read a file in pieces of so many rows, the last of fewer, from the one after `skip` on."""
        with told_in_one_line(file, self.ending, self.roles):
            if self.from_text:
                yield from self._text_pieces(file, rows, skip)
            else:
                yield from _parquet_pieces(file, self.roles.names(), rows, skip)

    def _text_pieces(self, file: Path, rows: int, skip: int) -> Iterator[pa.Table]:
        """Read a text file as it comes; where a column turns out to be of another type, go on with that.

        Arrow settles types by the first block. Numbers may go on as floats, and ratings as text, of which the pieces
        without a word in them are numbers again; other changes need the whole file to say what is so.
        """
        done, rating = skip, self.roles.rating
        ways: list[tuple[pa.DataType | None, list[str]]] = [(None, []), (pa.float64(), [])]
        if rating is not None:
            ways.append((None, [rating]))
        for others, text in ways:
            self.form.broken.clear()
            layout = self._layout(file)
            try:
                options = layout.options(pa.string(), others, text=text)
                with text_blocks(file, **options) as opened:
                    for piece in _cut(opened, rows, done):
                        found = _compact_ids(piece.rename_columns(self.roles.names()), self.roles)
                        yield _with_numbers(found, *text) if text else found
                        done += 1
                return
            except pa.ArrowInvalid:
                continue
        self.form.broken.clear()
        whole, _ = read_columns(file, self.ending, self.roles, self.form)
        yield from _cut(whole.to_batches(), rows, done)

    def _layout(self, file: Path) -> TextLayout:
        return _text_layout(file, self.ending, self.roles, self.form)


def _text_layout(file: Path, ending: str, roles: Roles, form: TextForm) -> TextLayout:
    settle = settling(file, roles)
    return TextLayout.of(file, settle, separator(ending, form), form, typed_header=ending == ".inter")


def _kinds(file: Path, ending: str, roles: Roles, form: TextForm) -> tuple[Roles, dict[str, str]]:
    """Settle a file's columns, and name the type of each; a text file's have none until they are read."""
    if ending != ".parquet":
        return _text_layout(file, ending, roles, form).roles, {}
    metadata = pq.read_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    check_parquet(file, metadata)
    settled = settling(file, roles)(schema.names)
    return settled, {name: _kind(schema.field(name).type) for name in settled.names()}


def _kind(kind: pa.DataType) -> str:
    """Name a type; widths of numbers and ways to store text do not matter."""
    if is_integer_column(kind):
        return "integers"
    if pa.types.is_floating(kind):
        return "floats"
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "strings" if is_text(plain) else str(plain)


def _parquet_pieces(file: Path, names: list[str], rows: int, skip: int) -> Iterator[pa.Table]:
    with pq.ParquetFile(file, memory_map=False) as opened:
        metadata, first, before = opened.metadata, 0, 0
        while first < metadata.num_row_groups:
            count = metadata.row_group(first).num_rows
            if before + count > skip * rows:
                break
            first, before = first + 1, before + count
        batches = opened.iter_batches(
            batch_size=rows, row_groups=list(range(first, metadata.num_row_groups)), columns=names
        )
        left = skip * rows - before
        yield from (piece.select(names) for piece in _cut(batches, rows, 0, left_out=left))


def _cut(batches: Iterable[pa.RecordBatch], rows: int, skip: int, *, left_out: int = 0) -> Iterator[pa.Table]:
    """Join and cut batches into pieces of exactly so many rows, the last of fewer; the first ones are left out."""
    kept: list[pa.RecordBatch] = []
    there, left = 0, skip * rows + left_out
    for batch in batches:
        dropped = min(left, len(batch))
        left, rest = left - dropped, batch.slice(dropped)
        while len(rest):
            room = rows - there
            kept.append(rest.slice(0, room))
            there, rest = there + len(kept[-1]), rest.slice(room)
            if there == rows:
                yield pa.Table.from_batches(kept)
                kept, there = [], 0
    if kept:
        yield pa.Table.from_batches(kept)


def _with_numbers(piece: pa.Table, name: str) -> pa.Table:
    """Make a column of text one of integers or, failing that, of floats; where it has a word in it, leave it."""
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return piece.set_column(piece.column_names.index(name), name, piece[name].cast(kind))
    return piece


def _compact_ids(piece: pa.Table, roles: Roles) -> pa.Table:
    """Make ids integers where all of a piece are plain ones, else encode their text."""
    for name in (str(roles.user), str(roles.item)):
        column: Any = piece[name]
        if column.null_count == 0:
            ids = TextIds()
            ids.add(column)
            column = ids.column()
        piece = piece.set_column(piece.column_names.index(name), name, column)
    return piece
