"""Logs from files: CSV, TSV, Parquet and RecBole's .inter."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Unpack

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from verirec.data.feedback_log import FeedbackLog, log_from_table
from verirec.data.ids import is_text
from verirec.data.roles import Roles
from verirec.data.tables import LogOptions
from verirec.exceptions import ColumnError, EmptyLogError, FileFormatError, MissingValueError, ParameterError
from verirec.formatting import names_in_words, short

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t", ".inter": "\t"}
_COMPRESSIONS: Final = (".gz", ".bz2", ".zst", ".lz4")
_SPELT_OUT_BYTES: Final = 6
"""A dictionary's index takes at most 4 bytes a value: a column chunk above this is mostly text spelt out."""
_BATCH_ROWS: Final = 2_000_000
_BLOCK_BYTES: Final = 2**20
"""Of text that Arrow parses at a time: a row may cross one end of a block, not two."""

_TEXT_ID: Final = pa.dictionary(pa.int32(), pa.string())


def read_log(
    path: str | Path,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    **options: Unpack[LogOptions],
) -> FeedbackLog:
    """Read a feedback log from a file, by its ending: .csv, .tsv, .inter (these may be .gz, ...) or .parquet.

    Only the columns that are needed are read. In text files ids are read as text, so that "007" stays "007"; where
    every id of a column is a plain integer they become integers.

    Parameters
    ----------
    path
        The file; if it is text, UTF-8.
    delimiter
        One character, where a text file uses another one than its ending says, or has another ending.
    columns
        The names of a text file's columns, if it has no header line.
    options
        Whatever `FeedbackLog.from_frame` takes: user, item, rating, positive_from, ...

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
    if not isinstance(path, str | Path):
        raise ParameterError(f"path must be a string or a Path; got {path!r}")
    if columns is not None and (isinstance(columns, str) or not all(isinstance(one, str) for one in columns)):
        raise ParameterError(f"columns must be the names of a file's columns, in order; got {short(columns)}")
    file = Path(path)
    named: dict[str, Any] = dict(options)
    roles = Roles(**{role.name: named.pop(role.name, None) for role in fields(Roles)})
    ending = file_ending(file, is_text=delimiter is not None)
    with _frugal_memory():
        table, roles = read_columns(file, ending, roles, delimiter=delimiter, columns=columns)
        try:
            return log_from_table(table, roles, from_text=ending != ".parquet", **named)
        except MissingValueError as error:
            below = "; row 0 is the one below the header" if ending != ".parquet" and columns is None else ""
            raise MissingValueError(f"{file.name}: {error}{below}") from None


def read_columns(
    file: Path,
    ending: str,
    roles: Roles,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    likely: Mapping[str, str | None] | None = None,
) -> tuple[pa.Table, Roles]:
    """Read the columns that are needed, and say which they are; whatever is wrong with the file is told in one line.

    Parameters
    ----------
    ending
        From `file_ending`.
    roles, likely
        Of the columns: see `Roles.settle`.
    delimiter, columns
        As in `read_log`.
    """

    def settle(names: list[str]) -> Roles:
        try:
            return roles.settle(names, likely)
        except ColumnError as error:
            raise ColumnError(f"{file.name}: {error}") from None

    try:
        if not file.is_file():
            raise FileFormatError(f"no file {short(str(file), max=300)}")
        if not _is_text(str(file)):
            raise FileFormatError(f"the name {short(str(file), max=300)} is not UTF-8: rename the file")
        if file.stat().st_size == 0:
            raise FileFormatError(f"{file.name} is empty")
        if ending == ".parquet":
            return _read_parquet(file, settle)
        separator = _DELIMITERS[ending] if delimiter is None else delimiter
        return _read_text(file, settle, separator, columns, typed_header=ending == ".inter")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        if _is_of_a_long_line(error) or ("Empty CSV" in str(error) and _fills_a_block(file)):
            raise _long_line(file) from None
        if "Empty CSV" in str(error):
            raise EmptyLogError(f"{file.name} is empty: it must have at least one row") from None
        separable = roles.takes_delimiter and "Expected 1 columns" in str(error)
        hint = "; if fields are separated otherwise, give delimiter=..." if separable else ""
        raise FileFormatError(f"{file.name} is not a readable {ending[1:]} file: {_one_line(error)}{hint}") from None


def _is_text(name: str) -> bool:
    """Whether a name can be written as UTF-8, which is how Arrow opens files."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _frugal_memory() -> Iterator[None]:
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
            read_options=pyarrow.csv.ReadOptions(column_names=list(columns), block_size=_BLOCK_BYTES),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
        )
    except pa.ArrowInvalid as error:
        if _is_of_a_long_line(error):
            raise _long_line(file) from None
        raise FileFormatError(f"{file.name} is truncated or malformed: {_one_line(error)}") from None


def file_ending(file: Path, *, is_text: bool, kind: str = "a log") -> str:
    """Return the ending that says how to read a file, without that of a compression; `kind` is what errors call it."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compressed = bool(suffixes) and suffixes[-1] in _COMPRESSIONS
    if compressed:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending in _DELIMITERS or (ending == ".parquet" and not compressed and not is_text):
        return ending
    if is_text:
        return ".csv"
    other = ", or be text with a delimiter=..." if kind == "a log" else ""
    raise ParameterError(f"{kind} must end in .csv, .tsv, .parquet or .inter{other}; got {file.name!r}")


def _read_text(
    file: Path,
    settle: Callable[[list[str]], Roles],
    delimiter: str,
    columns: Sequence[str] | None,
    *,
    typed_header: bool,
) -> tuple[pa.Table, Roles]:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        raise ParameterError(f"delimiter must be one ASCII character; got {delimiter!r}")
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=_may_have_quotes(file))
    read = pyarrow.csv.ReadOptions(column_names=None if columns is None else list(columns), block_size=_BLOCK_BYTES)
    with pyarrow.csv.open_csv(file, read_options=read, parse_options=parse) as opened:
        header = opened.schema.names
    # RecBole writes "user_id:token": the name, then the type.
    names = [column.split(":")[0] for column in header] if typed_header else header
    if len(set(names)) < len(names):
        raise ColumnError(f"{file.name} has a column twice; the columns are: {names_in_words(names)}")
    settled = settle(names)
    as_read = dict(zip(names, header, strict=True))
    table = pyarrow.csv.read_csv(
        file,
        read_options=read,
        parse_options=parse,
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=[as_read[name] for name in settled.names()],
            column_types={as_read[str(name)]: _TEXT_ID for name in (settled.user, settled.item)},
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    return table.rename_columns(settled.names()), settled


def _may_have_quotes(file: Path) -> bool:
    """Tell whether a text file can have line breaks inside of quotes.

    Arrow cuts a file at line breaks, which is fast, and takes those inside of quotes for ends of rows unless it is told
    to look for quotes first, which is slower. A compressed file counts as quoted: to look, one would unpack it twice.
    """
    if file.suffix.lower() in _COMPRESSIONS:
        return True
    with file.open("rb", buffering=0) as opened:
        return any(b'"' in part for part in iter(lambda: opened.read(_BLOCK_BYTES), b""))


def _fills_a_block(file: Path) -> bool:
    """Tell a first line that is longer than a block, which Arrow calls empty, from a file that is empty."""
    with pa.input_stream(str(file)) as opened:
        start = opened.read(_BLOCK_BYTES)
    return len(start) == _BLOCK_BYTES and bool(start.strip())


def _is_of_a_long_line(error: Exception) -> bool:
    return "straddles two block boundaries" in str(error)


def _long_line(file: Path) -> FileFormatError:
    return FileFormatError(
        f"a line of {file.name} is longer than {_BLOCK_BYTES >> 20} MB; is a quote in it never closed?"
    )


def _read_parquet(file: Path, settle: Callable[[list[str]], Roles]) -> tuple[pa.Table, Roles]:
    metadata = pq.read_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    settled = settle(schema.names)
    text = [name for name in (str(settled.user), str(settled.item)) if is_text(schema.field(name).type)]
    if not text:
        return pq.read_table(file, columns=settled.names()), settled
    with pq.ParquetFile(file, metadata=metadata) as opened:
        # A damaged file is refused here; asking its column metadata first could end the process.
        next(opened.iter_batches(batch_size=1, columns=settled.names()), None)
    compact = [name for name in text if not _is_spelt_out(metadata, name)]

    def read(groups: list[int]) -> pa.Table:
        """Read some row groups; text ids come back dictionary-encoded, so that their spelling is freed at once."""
        with pq.ParquetFile(file, read_dictionary=compact, metadata=metadata, memory_map=True) as opened:
            rows = max(1, sum(metadata.row_group(group).num_rows for group in groups))
            batches = opened.iter_batches(
                batch_size=rows, row_groups=groups, columns=settled.names(), use_threads=False
            )
            table = pa.Table.from_batches(
                list(batches), opened.schema_arrow.empty_table().select(settled.names()).schema
            )
        for name in text:
            if not pa.types.is_dictionary(table.schema.field(name).type):
                place = table.column_names.index(name)
                table = table.set_column(place, name, table[name].dictionary_encode())
        return table

    # More workers than two gain little, and each holds a batch's text in memory.
    with ThreadPoolExecutor(max_workers=2) as workers:
        parts = list(workers.map(read, _row_group_batches(metadata)))
    return pa.concat_tables(parts, promote_options="permissive"), settled


def _row_group_batches(metadata: Any) -> Iterator[list[int]]:
    """Join row groups into batches of some million rows, so that a frequent id's spelling is kept once a batch."""
    batch: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        batch.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch or metadata.num_row_groups == 0:
        yield batch


def _is_spelt_out(metadata: Any, name: str) -> bool:
    """Tell, by its first row group, whether a column is mostly stored as text: then it is faster to encode it later."""
    if metadata.num_row_groups == 0:
        return True
    group = metadata.row_group(0)
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == name:
            return bool(column.total_uncompressed_size > _SPELT_OUT_BYTES * max(1, column.num_values))
    return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
