"""Arrow IPC files of one record batch, whose columns are arrays under a memory map."""

from __future__ import annotations

import io
import mmap
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.data.parts import parts_of
from verirec.exceptions import FileFormatError
from verirec.scratch import mapped_file, reserve

Columns = dict[str, npt.NDArray[Any]]

GROUP_ROWS: Final = 1 << 20
"""Rows that have a checksum of their own."""
_SKIPPED: Final = 1 << 16
"""Bytes from which on a column is left out of an outline, to be filled in later."""
_DTYPE: Final = b"numpy"


def write_columns(file: Path, columns: Columns) -> None:
    """Write arrays of one length as the columns of an Arrow file."""
    with pa.OSFile(str(file), "wb") as sink:
        _write(sink, columns)


def outlined(file: Path, dtypes: Mapping[str, np.dtype[Any]], length: int) -> Columns:
    """Make an Arrow file whose columns are still to be filled, and map them: they need not fit into memory."""
    # Untouched zeros take no memory.
    columns = {name: np.zeros(length, dtype) for name, dtype in dtypes.items()}
    with file.open("wb") as opened, pa.PythonFile(_Outline(opened)) as sink:
        _write(sink, columns)
    with file.open("r+b") as outline:
        reserve(outline.fileno(), file.stat().st_size, file.parent)
    return read_columns_file(file, writable=True)


class _Outline(io.RawIOBase):
    """Writes what is short, and leaves room for what is long."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if size < _SKIPPED:
            self._file.write(data)
        else:
            self._file.seek(size, io.SEEK_CUR)
        return size

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()


def _write(sink: Any, columns: Columns) -> None:
    arrays = [_arrow(values) for values in columns.values()]
    fields = [
        pa.field(name, array.type, nullable=False, metadata={_DTYPE: columns[name].dtype.str.encode()})
        for name, array in zip(columns, arrays, strict=True)
    ]
    schema = pa.schema(fields)
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Return an array as Arrow has it, without a copy; days and booleans, which it keeps otherwise, as integers."""
    flat = np.ascontiguousarray(values)
    days = flat.dtype.kind == "M" and np.datetime_data(flat.dtype)[0] == "D"
    plain = flat.view(np.int64) if days else flat.view(np.int8) if flat.dtype.kind == "b" else flat
    # A datetime array gives no buffer of itself.
    memory = plain.view(np.int64) if plain.dtype.kind == "M" else plain
    return pa.Array.from_buffers(pa.from_numpy_dtype(plain.dtype), len(plain), [None, pa.py_buffer(memory)])


def read_columns_file(file: Path, *, writable: bool = False) -> Columns:
    """Map the columns of a file that `write_columns` wrote; a damaged one is a `FileFormatError`."""
    try:
        return _mapped_columns(mapped_file(file, writable=writable))
    except (pa.ArrowException, LookupError, TypeError, ValueError, OSError) as error:
        raise FileFormatError(f"{file.name} is not a readable Arrow file: {' '.join(str(error).split())}") from None


def _mapped_columns(found: mmap.mmap) -> Columns:
    with pa.ipc.open_file(pa.py_buffer(found)) as reader:
        batch = reader.get_batch(0)
    start = np.frombuffer(found, np.uint8).ctypes.data
    columns = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        dtype, memory = np.dtype(field.metadata[_DTYPE].decode()), column.buffers()[1]
        # Of the map itself: what keeps it alive is known, and it can be written to.
        at = 0 if memory is None or len(column) == 0 else memory.address - start
        columns[field.name] = np.frombuffer(found, dtype, len(column), at)
    return columns


def dtypes_of(columns: Columns) -> dict[str, str]:
    """Return the type of each column, as JSON can hold it."""
    return {name: values.dtype.str for name, values in columns.items()}


def checksums(columns: Columns) -> dict[str, list[int]]:
    """Return a checksum of each group of rows of each column."""
    return {
        name: [zlib.crc32(values[part].view(np.uint8).data) for part in _groups(values)]
        for name, values in columns.items()
    }


def _groups(values: npt.NDArray[Any]) -> list[slice]:
    return list(parts_of(len(values), size=GROUP_ROWS))
