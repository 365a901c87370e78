"""Delimited text by Arrow: a file's rows part by part, and what Arrow's errors mean."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from verirec.data.lent_text import header_of, text_blocks, whole_text
from verirec.data.limits import COMPRESSION_NAMES, COMPRESSIONS, ReadLimits, current_limits
from verirec.data.roles import Roles
from verirec.data.text_form import BLOCK_BYTES, TextForm
from verirec.data.text_ids import TextIds
from verirec.exceptions import ColumnError, FileFormatError
from verirec.formatting import names_in_words

_PART_ROWS: Final = 1 << 20
"""Whose ids are encoded at once: so many that a frequent id's spelling is kept a few times only."""
_START_BYTES: Final = 4 * BLOCK_BYTES
"""Of a file, unpacked, that its rows are counted in: Arrow unpacks 64 KB at a time, which are to be few of it."""
_TEXT_ID: Final = pa.dictionary(pa.int32(), pa.string())


def read_text(
    file: Path,
    settle: Callable[[list[str]], Roles],
    delimiter: str,
    form: TextForm,
    *,
    typed_header: bool,
) -> tuple[pa.Table, Roles]:
    """Read the columns that are needed; ids as integers where all of a column are plain ones, else as text.

    Parameters
    ----------
    settle
        Says which columns are needed, by all of their names.
    delimiter
        One character.
    form
        Names of columns, encoding, what to do with broken lines.
    typed_header
        Whether a name is followed by a type, as in RecBole's "user_id:token".
    """
    limits = current_limits()
    layout = TextLayout.of(file, settle, delimiter, form, typed_header=typed_header)
    if file.suffix.lower() not in COMPRESSIONS:
        limits.check_rows(file, _likely_rows(file), "about")
    table = _in_parts(file, layout.ids, layout.options(pa.string()), limits)
    if table is None:
        form.broken.clear()
        table = whole_text(file, **layout.options(_TEXT_ID))
    limits.check_fields(file, table)
    return table.rename_columns(layout.roles.names()), layout.roles


@dataclass(frozen=True)
class TextLayout:
    """What a text file's columns are, and how Arrow reads those that are needed.

    Parameters
    ----------
    roles
        Settled on the file's columns.
    ids, columns
        The columns of ids, and all that are needed, by the names that the header has.
    read, parse
        Arrow's options.
    """

    roles: Roles
    ids: list[str]
    columns: list[str]
    read: pyarrow.csv.ReadOptions
    parse: pyarrow.csv.ParseOptions

    @classmethod
    def of(
        cls, file: Path, settle: Callable[[list[str]], Roles], delimiter: str, form: TextForm, *, typed_header: bool
    ) -> TextLayout:
        """Read a file's header; parameters as in `read_text`."""
        parse = form.parsing(delimiter, quoted=_may_have_quotes(file))
        as_read = _header(file, form, parse, typed_header=typed_header)
        settled = settle(list(as_read))
        ids = [as_read[str(name)] for name in (settled.user, settled.item)]
        return cls(settled, ids, [as_read[name] for name in settled.names()], form.reading(), parse)

    def options(
        self, id_type: pa.DataType, others: pa.DataType | None = None, *, text: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return Arrow's options of reading, for ids of this type; the types of the others are inferred, or given.

        Parameters
        ----------
        id_type, others
            Types of the ids, and of all other columns if they are to have one.
        text
            Columns to read as text, by the names that their roles have.
        """
        types = {} if others is None else dict.fromkeys(self.columns, others)
        as_read = dict(zip(self.roles.names(), self.columns, strict=True))
        types |= {as_read[name]: pa.string() for name in text}
        convert = pyarrow.csv.ConvertOptions(
            include_columns=self.columns,
            column_types=types | dict.fromkeys(self.ids, id_type),
            strings_can_be_null=True,
            null_values=[""],
        )
        return {"read_options": self.read, "parse_options": self.parse, "convert_options": convert}


def header_names(file: Path, delimiter: str, form: TextForm, *, typed_header: bool) -> list[str]:
    """Return the names of a file's columns; parameters as in `read_text`."""
    return list(_header(file, form, form.parsing(delimiter, quoted=_may_have_quotes(file)), typed_header=typed_header))


def _header(file: Path, form: TextForm, parse: pyarrow.csv.ParseOptions, *, typed_header: bool) -> dict[str, str]:
    """Return the names of a file's columns, and how the header spells each."""
    start = _start(file)
    current_limits().check_columns(file, 1 + start[: start.find(b"\n")].count(parse.delimiter.encode()))
    header = header_of(file, read_options=form.reading(), parse_options=parse)
    form.broken.clear()  # Of the first block, which is read once more.
    names = [(column.split(":")[0] if typed_header else column).strip() for column in header]
    if len(set(names)) < len(names):
        raise ColumnError(f"{file.name} has a column twice; the columns are: {names_in_words(names)}")
    return dict(zip(names, header, strict=True))


def _start(file: Path) -> bytes:
    """Return what a file begins with, unpacked."""
    with pa.input_stream(str(file)) as opened:
        return bytes(opened.read(BLOCK_BYTES))


def _likely_rows(file: Path) -> float:
    """Estimate how many rows a file has by those it begins with."""
    start = _start(file)
    return start.count(b"\n") / max(1, len(start)) * file.stat().st_size


def likely_rows(file: Path) -> int:
    """Estimate how many rows a file has by those it begins with, and by how much of it they take where it is packed."""
    size = file.stat().st_size
    with pa.OSFile(str(file)) as packed:
        kind = COMPRESSION_NAMES.get(file.suffix.lower())
        opened = packed if kind is None else pa.CompressedInputStream(packed, kind)
        try:
            start = opened.read(_START_BYTES)
        except (OSError, pa.ArrowException):  # It is damaged, which is said when it is read.
            return 0
        taken = int(packed.tell())
    rows = int(start.count(b"\n"))
    return rows if taken >= size and len(start) < _START_BYTES else round(rows * size / max(1, taken))


def _in_parts(file: Path, ids: list[str], options: dict[str, Any], limits: ReadLimits) -> pa.Table | None:
    """Read a file from its beginning to its end, and encode ids meanwhile: half of the memory of reading it whole.

    Returns
    -------
    `None` if that cannot be done: an id is missing, a column turns out to be of another type than it began with (it is
    settled by the first block), or the file is malformed. Then the whole of it has to be seen to say what is so.
    """
    sides, rest = {name: TextIds() for name in ids}, []

    def encode(part: pa.Table) -> None:
        for name, column in sides.items():
            column.add(part[name])

    try:
        # One worker: two, beside the reader, would take the caches from each other.
        with text_blocks(file, **options) as opened, ThreadPoolExecutor(max_workers=1) as worker:
            last: Future[None] | None = None
            rows = 0
            for part in _joined(opened):
                rows += len(part)
                limits.check_rows(file, rows)
                if any(part[name].null_count for name in ids):
                    return None
                if last is not None:
                    last.result()
                last = worker.submit(encode, part)
                rest.append(part.drop_columns(ids))
            if last is not None:
                last.result()
            schema = opened.schema
    except pa.ArrowInvalid:
        return None
    others = pa.concat_tables(rest) if rest else schema.empty_table()
    return pa.table({name: sides[name].column() if name in ids else others[name] for name in schema.names})


def _joined(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join Arrow's small blocks into parts."""
    part: list[pa.RecordBatch] = []
    rows = 0
    for block in blocks:
        part.append(block)
        rows += len(block)
        if rows >= _PART_ROWS:
            yield pa.Table.from_batches(part)
            part, rows = [], 0
    if part:
        yield pa.Table.from_batches(part)


def read_delimited(file: Path, delimiter: str, columns: Sequence[str]) -> pa.Table:
    """Read a text file without a header whose columns are known; errors name the file and its first bad line.

    Parameters
    ----------
    delimiter
        One character or several.
    columns
        Names, in the file's order; every line must have as many fields.
    """
    content = file.read_bytes()
    if len(delimiter) > 1:
        # Arrow knows delimiters of one character only, and a tab stands in none of these files otherwise.
        content, delimiter = content.replace(delimiter.encode(), b"\t"), "\t"
    try:
        return pyarrow.csv.read_csv(
            io.BytesIO(content),
            read_options=pyarrow.csv.ReadOptions(column_names=list(columns), block_size=BLOCK_BYTES),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
        )
    except pa.ArrowInvalid as error:
        if _is_of_a_long_line(error):
            raise _long_line(file) from None
        raise FileFormatError(f"{file.name} is truncated or malformed: {one_line(error)}") from None


def _may_have_quotes(file: Path) -> bool:
    """Tell whether a text file can have line breaks inside of quotes.

    Arrow cuts a file at line breaks, which is fast, and takes those inside of quotes for ends of rows unless it is told
    to look for quotes first, which is slower. A compressed file counts as quoted: to look, one would unpack it twice.
    """
    if file.suffix.lower() in COMPRESSIONS:
        return True
    with file.open("rb", buffering=0) as opened:
        return any(b'"' in part for part in iter(lambda: opened.read(BLOCK_BYTES), b""))


def refuse_long_line(file: Path, error: Exception) -> None:
    """Raise `FileFormatError` if this is what Arrow's error says: a first line as long as a block it calls empty."""
    if _is_of_a_long_line(error) or ("Empty CSV" in str(error) and _fills_a_block(file)):
        raise _long_line(file) from None


def _fills_a_block(file: Path) -> bool:
    start = _start(file)
    return len(start) == BLOCK_BYTES and bool(start.strip())


def _is_of_a_long_line(error: Exception) -> bool:
    return "straddles two block boundaries" in str(error)


def _long_line(file: Path) -> FileFormatError:
    return FileFormatError(
        f"a line of {file.name} is longer than {BLOCK_BYTES >> 20} MB; is a quote in it never closed?"
    )


def one_line(error: Exception) -> str:
    """Return an error's text without line breaks."""
    return " ".join(str(error).split())
