"""Values in pieces, arrays as they are in memory: in a file that workers of a machine map, or in messages of Ray's."""

from __future__ import annotations

import mmap
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import cloudpickle

from verirec.engine.worker import naming_what_stays

_ALIGNED: Final = 64
_COUNT: Final = struct.Struct("<Q")


def in_pieces(value: Any, what: str) -> list[memoryview]:
    """Pickle a value; its arrays are not copied.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.arange(3)
    >>> pieces = in_pieces({"a": array}, "it")
    >>> array[0] = 7
    >>> put_together(pieces)["a"].tolist()
    [7, 1, 2]
    """
    buffers: list[pickle.PickleBuffer] = []
    with naming_what_stays(what):
        main = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [memoryview(main), *(one.raw() for one in buffers)]


def put_together(pieces: Sequence[Any]) -> Any:
    """Return the value of pieces; its arrays are views of theirs."""
    return pickle.loads(pieces[0], buffers=pieces[1:])


def write_parcel(file: Path, value: Any, what: str) -> None:
    """Write a value; its arrays as they are in memory, each on a boundary of its own.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parcel(Path(folder, "parcel"), {"a": np.arange(3)}, "it")
    ...     read_parcel(Path(folder, "parcel"))["a"].tolist()
    [0, 1, 2]
    """
    pieces = in_pieces(value, what)
    with file.open("wb") as opened:
        opened.write(b"".join(_COUNT.pack(size) for size in (len(pieces), *(piece.nbytes for piece in pieces))))
        for piece in pieces:
            opened.write(bytes(-opened.tell() % _ALIGNED))
            opened.write(piece)


def read_parcel(file: Path) -> Any:
    """Return the value; its arrays are views of the file, and cannot be written to."""
    with file.open("rb") as opened:
        whole = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    (count,) = _COUNT.unpack_from(whole)
    sizes = [_COUNT.unpack_from(whole, _COUNT.size * (one + 1))[0] for one in range(count)]
    at, pieces = _COUNT.size * (count + 1), []
    for size in sizes:
        at += -at % _ALIGNED
        pieces.append(whole[at : at + size])
        at += size
    return put_together(pieces)
