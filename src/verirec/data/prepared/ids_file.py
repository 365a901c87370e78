"""Catalogues of ids, with features if there are any, as Arrow files."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.exceptions import FileFormatError
from verirec.scratch import mapped_file


def write_ids(file: Path, ids: pa.Array, features: npt.NDArray[np.float64] | None = None) -> None:
    """Write ids, and a row of features of each."""
    columns: dict[str, Any] = {"id": ids}
    if features is not None:
        flat = pa.array(np.ascontiguousarray(features).reshape(-1))
        columns["features"] = pa.FixedSizeListArray.from_arrays(flat, features.shape[1])
    batch = pa.RecordBatch.from_pydict(columns)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def file_checksum(file: Path) -> int:
    """Return a checksum of a whole file."""
    return zlib.crc32(mapped_file(file))


def read_ids(file: Path) -> pa.Array:
    """Map the ids."""
    return _batch(file)["id"]


def read_features(file: Path) -> npt.NDArray[np.float64] | None:
    """Map the features, shape (ids, features), if there are any."""
    batch = _batch(file)
    if "features" not in batch.schema.names:
        return None
    column = batch["features"]
    return np.asarray(column.flatten().to_numpy()).reshape(len(column), column.type.list_size)


def _batch(file: Path) -> pa.RecordBatch:
    try:
        with pa.ipc.open_file(pa.py_buffer(mapped_file(file))) as reader:
            return reader.get_batch(0)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise FileFormatError(f"{file.name} is not a readable Arrow file: {' '.join(str(error).split())}") from None
