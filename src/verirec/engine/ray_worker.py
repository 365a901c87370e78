"""What a Ray worker does with what it was sent."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from verirec.engine.worker import KEPT_FUNCTIONS, Reply, answered, applied, put_together
from verirec.exceptions import EngineError
from verirec.latest import Latest

_SHORT: Final = 1 << 16
"""Bytes; what is longer than some more, Ray keeps in its store, from where it takes longer."""
_functions: Final[Latest[Any, Callable[..., Any]]] = Latest(KEPT_FUNCTIONS)
"""Functions by Ray's name of them."""


def of_parts(reference: Any, chunk: bytes, paths: list[str], memory: int | None) -> Any:
    """Apply a function, fetched once, to the parts of a message."""
    import ray

    def work() -> list[Any]:
        return applied(_functions.get(reference, lambda: _loaded(ray.get(reference), paths)), chunk)

    return _sent(answered(work, memory))


def of_state(state: dict[str, Any], sent: Any, paths: list[str], memory: int | None) -> Any:
    """Call a function with a state and what it is given."""

    def work() -> Any:
        function, given = _loaded(sent, paths)
        return function(state, *given)

    return _sent(answered(work, memory))


def _loaded(sent: Any, paths: list[str]) -> Any:
    """Load what was sent; modules of the user's own are looked for where they are on the user's machine, too."""
    sys.path += [path for path in paths if path not in sys.path]
    try:
        return put_together(apart(sent))
    except Exception as error:
        raise EngineError(f"a Ray worker cannot load the work ({type(error).__name__}: {error})") from None


def together(pieces: Sequence[Any]) -> Any:
    """Return pieces as Ray sends them best: long ones as arrays, which it does not copy; short ones as one text of
    bytes, which it does not look into, and which goes with the call.

    Examples
    --------
    >>> [bytes(one) for one in apart(together([memoryview(b"a"), memoryview(b"bc")]))]
    [b'a', b'bc']
    """
    if sum(piece.nbytes for piece in pieces) > _SHORT:
        return [np.asarray(one) for one in pieces]
    return pickle.dumps([bytes(one) for one in pieces])


def apart(sent: Any) -> list[Any]:
    """Return the pieces again."""
    return list(pickle.loads(sent) if isinstance(sent, bytes) else sent)


def _sent(reply: Reply) -> Any:
    sent = together(reply.found), *reply[1:]
    return pickle.dumps(sent) if isinstance(sent[0], bytes) else sent
