"""A process that works for another one: says its versions, reads requests, and writes what came of them."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verirec.latest import Latest


def main() -> None:
    """Answer requests until there are no more, or nobody to answer to; where modules are, was told before."""
    inbound, outbound = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the work prints must not get between the replies.
    os.dup2(2, 1)
    from verirec.engine.replies import write_reply
    from verirec.engine.worker import KEPT_FUNCTIONS, answered, begin_worker, versions
    from verirec.latest import Latest

    begin_worker()
    pickle.dump(tuple(versions()), outbound)
    outbound.flush()
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(inbound, requests), daemon=True).start()
    functions: Latest[Path, Callable[..., Any]] = Latest(KEPT_FUNCTIONS)
    state: dict[str, Any] = {}

    def answer(parcel: Path | None, given: bytes, memory: int | None) -> None:
        work = partial(_of_state, state, given) if parcel is None else partial(_of_parts, functions, parcel, given)
        write_reply(outbound, answered(work, memory))

    while True:
        answer(*requests.get())


def _listen(inbound: IO[bytes], requests: SimpleQueue[Any]) -> None:
    """Read requests as they come; end this process, whatever it is at, when its parent has ended."""
    try:
        while True:
            requests.put(pickle.load(inbound))
    finally:
        os._exit(1)


def _of_parts(functions: Latest[Path, Callable[..., Any]], parcel: Path, given: bytes) -> list[Any]:
    from verirec.engine.parcels import read_parcel
    from verirec.engine.worker import applied

    return applied(functions.get(parcel, partial(read_parcel, parcel)), given)


def _of_state(state: dict[str, Any], given: bytes) -> Any:
    function, arguments = pickle.loads(given)
    return function(state, *arguments)
