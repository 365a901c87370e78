"""What a Ray worker does with what it was sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from verirec.engine.worker import KEPT_FUNCTIONS, Reply, answered, applied, put_together
from verirec.exceptions import EngineError
from verirec.latest import Latest

_functions: Final[Latest[Any, Callable[..., Any]]] = Latest(KEPT_FUNCTIONS)
"""Functions by Ray's name of them."""


def of_parts(reference: Any, chunk: bytes, paths: list[str]) -> tuple[Any, ...]:
    """Apply a function, fetched once, to the parts of a message."""
    import ray

    def work() -> list[Any]:
        return applied(_functions.get(reference, lambda: _loaded(ray.get(reference), paths)), chunk)

    return _sent(answered(work))


def of_state(state: dict[str, Any], pieces: list[Any], paths: list[str]) -> tuple[Any, ...]:
    """Call a function with a state and what it is given."""

    def work() -> Any:
        function, given = _loaded(pieces, paths)
        return function(state, *given)

    return _sent(answered(work))


def _loaded(pieces: list[Any], paths: list[str]) -> Any:
    """Load what was sent; modules of the user's own are looked for where they are on the user's machine, too."""
    sys.path += [path for path in paths if path not in sys.path]
    try:
        return put_together(pieces)
    except Exception as error:
        raise EngineError(f"a Ray worker cannot load the work ({type(error).__name__}: {error})") from None


def _sent(reply: Reply) -> tuple[Any, ...]:
    """Return a reply as Ray sends it best: arrays, which are not copied."""
    return [np.asarray(one) for one in reply.found], *reply[1:]
