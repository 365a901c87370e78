"""Ids from a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from verirec.data.ids import is_text
from verirec.exceptions import EmptyLogError, FileFormatError
from verirec.formatting import short


def read_id_file(file: Path) -> list[str]:
    """Read a UTF-8 text file with one id a line, of which empty ones do not count; or a Parquet file's first column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "users.txt").write_text("ann\\n007\\n")
    ...     read_id_file(Path(folder, "users.txt"))
    ['ann', '007']
    """
    if not file.is_file():
        raise FileFormatError(f"no file {short(str(file), max=300)}")
    if file.suffix.lower() == ".parquet":
        return _of_parquet(file)
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file.name} is not a readable text file: {' '.join(str(error).split())}") from None
    return _some([line.strip() for line in lines if line.strip()], file)


def _of_parquet(file: Path) -> list[str]:
    try:
        with pq.ParquetFile(file) as opened:
            field = opened.schema_arrow[0]
            column = opened.read(columns=[field.name])[0]
    except (pa.ArrowException, OSError, LookupError) as error:
        raise FileFormatError(f"{file.name} is not a readable parquet file: {' '.join(str(error).split())}") from None
    if not (pa.types.is_integer(field.type) or is_text(field.type)) or column.null_count:
        raise FileFormatError(
            f"{file.name}: column {field.name!r} must hold ids, integers or text; got {field.type}, and "
            f"{column.null_count:,} missing"
        )
    return _some(column.cast(pa.large_string()).to_pylist(), file)


def _some(ids: list[str], file: Path) -> list[str]:
    if not ids:
        raise EmptyLogError(f"{file.name} is empty: it must have at least one id")
    return ids
