"""Verbs that go on where they were stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from verirec.cli.speech import speech


@contextmanager
def going_on(folder: Path | None, job: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Keep finished parts of a verb's work in a folder, if there is one, and say of a stop that they are there.

    Parameters
    ----------
    folder
        Removed at the end.
    job, given
        As `Checkpoint` has them.
    """
    if folder is None:
        yield
        return
    from verirec.resuming import Checkpoint  # Help waits for nothing of the library.

    with Checkpoint(folder, job, given) as checkpoint:
        try:
            yield
        except KeyboardInterrupt:
            if checkpoint.has_pieces:
                speech.stopped = "stopped: the same command goes on from here"
            raise


def parts_beside(out: Path) -> Path:
    """Return the hidden folder beside a file that is written.

    Examples
    --------
    >>> parts_beside(Path("plans/first.csv")).as_posix()
    'plans/.first.csv.parts'
    """
    return out.with_name(f".{out.name}.parts")
