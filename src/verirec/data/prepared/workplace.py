"""Where a log is prepared: parts of the work that stay once they are finished, and room on the disk for all of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from verirec.atomic_write import replace_file, settle_files, settle_folder
from verirec.data.prepared.opening import facts_file
from verirec.data.prepared.removal import A_KEY, remove_rests, remove_whole
from verirec.exceptions import DiskSpaceError, ParameterError
from verirec.formatting import bytes_in_words, short
from verirec.sole_writer import sole_writer

_FACTS: Final = "part.json"


class Workplace:
    """A folder beside the log to be, whose parts are whole or not there.

    A part is a folder that was written under another name and renamed. Parts of other inputs, settings or
    versions are removed when the work begins; all are when it has ended. So only the sole preparer may have one.

    Parameters
    ----------
    out
        The log's folder.
    key
        Of inputs, settings and versions.
    """

    def __init__(self, out: Path, key: str) -> None:
        self.root = _root(out)
        self.folder = self.root / key
        _remove_works(self.root, but=self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for unfinished in self.folder.glob("*.tmp"):
            shutil.rmtree(unfinished)
        self.finished = len(list(self.folder.glob(f"*/{_FACTS}")))

    def part(self, name: str, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Have a part made in a folder of its own, unless it is there; return the facts that it left."""
        place = self.folder / name
        if not self.has(name):
            shutil.rmtree(place, ignore_errors=True)
            unfinished = self.folder / f"{name}.tmp"
            unfinished.mkdir()
            facts = make(unfinished)
            (unfinished / _FACTS).write_text(json.dumps(facts))
            settle_files(unfinished)
            unfinished.rename(place)
            settle_folder(self.folder)
        return json.loads((place / _FACTS).read_text())  # type: ignore[no-any-return]

    def has(self, name: str) -> bool:
        """Whether a part is finished."""
        return (self.folder / name / _FACTS).is_file()

    def finish(self, out: Path, files: Path, facts: dict[str, Any]) -> None:
        """Write the facts of a log beside its files, move it to its place, and remove all else."""
        replace_file(files / "log.json", facts_file(facts))
        settle_files(files)
        # From here on the files are no part any more: a run that is stopped before the rename makes them again.
        (files / _FACTS).unlink()
        files.rename(out)
        settle_folder(out.absolute().parent)
        _remove_works(self.root)


def _remove_works(root: Path, *, but: Path | None = None) -> None:
    """Remove what is under a key, and nothing else that somebody may have there; not the folder, which is locked."""
    remove_rests(root)
    for other in list(root.glob("*")):
        if other != but and A_KEY.fullmatch(other.name):
            with suppress(OSError):
                remove_whole(other)


def _remove_unfinished(root: Path) -> None:
    """Remove what is no part, and the folders that are left without any: after a user's mistake nothing stays."""
    ours = [folder for folder in root.glob("*") if A_KEY.fullmatch(folder.name)]
    for folder in ours:
        for unfinished in folder.glob("*.tmp"):
            shutil.rmtree(unfinished, ignore_errors=True)
    for folder in (*ours, root):
        with suppress(OSError):  # Parts are in it, or it is gone.
            folder.rmdir()


def _root(out: Path) -> Path:
    out = out.absolute()
    return out.parent / f".{out.name}.parts"


def has_parts(out: Path) -> bool:
    """Whether a run that was stopped left finished parts of the log to be."""
    return any(_root(out).glob(f"*/*/{_FACTS}"))


@contextmanager
def sole_preparer(out: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the place where a log is prepared; a second process is refused meanwhile, or waits."""
    with sole_writer(_root(out), wait=wait):
        try:
            yield
        finally:
            _remove_unfinished(_root(out))


def refuse_taken(out: Path) -> None:
    """Refuse to write where something is; what a stop right after the end of the work left beside a log is removed.

    To be called by the sole preparer.
    """
    if os.path.lexists(out):
        if (out / "log.json").is_file():  # Anything else may be there by mistake, and the parts still be wanted.
            _remove_works(_root(out))
        raise ParameterError(f"{short(str(out), max=300)} is there already: remove it, or name another folder")


def refuse_lack_of_room(folder: Path, needed: int, there: int) -> None:
    """Refuse, before the work, what the disk has no room for.

    Parameters
    ----------
    folder
        Where it would be written.
    needed
        Bytes in all.
    there
        Bytes that finished parts have taken already.
    """
    parent = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(parent).free + there
    if free < needed:
        raise DiskSpaceError(
            f"preparing the log needs about {bytes_in_words(needed)} in {short(str(parent), max=300)}, which has "
            f"{bytes_in_words(free)} free"
        )
