"""Replies on their way from a process: what they hold is written and read piece by piece, and is never there twice."""

from __future__ import annotations

import pickle
from typing import IO

import numpy as np

from verirec.engine.worker import Reply


def write_reply(file: IO[bytes], reply: Reply) -> None:
    """Write a reply.

    Examples
    --------
    >>> import io
    >>> from verirec.engine.worker import answered
    >>> file = io.BytesIO()
    >>> write_reply(file, answered(lambda: np.arange(3), None))
    >>> _ = file.seek(0)
    >>> read_reply(file).result()
    array([0, 1, 2])
    """
    pickle.dump(([piece.nbytes for piece in reply.found], *reply[1:]), file, protocol=5)
    for piece in reply.found:
        file.write(piece)
    file.flush()


def read_reply(file: IO[bytes]) -> Reply:
    """Read a reply; raises `EOFError` where it ends too early."""
    sizes, *rest = pickle.load(file)
    pieces = [np.empty(size, np.uint8) for size in sizes]
    for piece in pieces:
        if file.readinto(piece.data) != len(piece):  # type: ignore[attr-defined]
            raise EOFError
    return Reply(pieces, *rest)
