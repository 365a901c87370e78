"""What a Ray worker does with what it was sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from verirec.engine.worker import KEPT_FUNCTIONS, answered, applied
from verirec.exceptions import EngineError
from verirec.latest import Latest

_functions: Final[Latest[Any, Callable[..., Any]]] = Latest(KEPT_FUNCTIONS)
"""Functions by Ray's name of them."""


def of_parts(reference: Any, chunk: bytes, paths: list[str]) -> tuple[Any, ...]:
    """Apply a function, fetched once, to the parts of a message."""

    def work() -> list[Any]:
        return applied(_functions.get(reference, lambda: _fetched(reference, paths)), chunk)

    return tuple(answered(work))


def of_state(state: dict[str, Any], reference: Any, paths: list[str]) -> tuple[Any, ...]:
    """Call a function with a state and what it is given."""

    def work() -> Any:
        function, given = _fetched(reference, paths)
        return function(state, *given)

    return tuple(answered(work))


def _fetched(reference: Any, paths: list[str]) -> Any:
    """Fetch what was sent; modules of the user's own are looked for where they are on the user's machine, too."""
    import ray

    sys.path += [path for path in paths if path not in sys.path]
    try:
        return ray.get(reference)
    except ray.exceptions.RaySystemError as error:
        reason = str(error).splitlines()[0]
        raise EngineError(f"a Ray worker cannot load the work: {reason.removeprefix('System error: ')}") from None
