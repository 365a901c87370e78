"""What all workers of a machine need, in a file that they map into memory: arrays are there once for all of them."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any, Final

from verirec.engine.worker import in_pieces, naming_what_stays, put_together

_ALIGNED: Final = 64
_COUNT: Final = struct.Struct("<Q")


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
    with naming_what_stays(what):
        pieces = in_pieces(value)
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
