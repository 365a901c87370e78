"""Open a prepared log by memory map."""

from __future__ import annotations

import json
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.data.ids import IdMap
from verirec.data.prepared.columns_file import Columns, checksums, dtypes_of, read_columns_file
from verirec.data.prepared.ids_file import file_checksum, read_features, read_ids
from verirec.data.prepared.settings import VERSION, Settings, in_words
from verirec.exceptions import FileFormatError, ParameterError
from verirec.formatting import short
from verirec.scratch import limit_memory, memory_limit


class ItemRows(NamedTuple):
    """A log's rows sorted by item and user, shape (n,) each."""

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int8]


class PreparedLog(FeedbackLog):
    """A log whose columns are memory maps of a prepared folder; logs made of it, such as parts, are ordinary ones.

    To another process it goes by the name of its folder, which that must be able to read, and with the memory that
    work on it may take: a process of the user's own, unlike an engine's worker, has no other word of that.
    """

    naming_all: ClassVar[str] = "are named when a log is prepared: prepare it again with {}=..."
    folder: Path
    checksum: int
    """Of log.json, which has those of all columns."""

    @classmethod
    def of(cls, folder: Path) -> PreparedLog:
        """Open a folder that `prepare_log` wrote; a damaged one, or one of another version, is refused."""
        log = cls._by_user(folder)
        # Found out now, and not when it is asked for after an hour.
        _ = log.by_item
        return log

    @classmethod
    def _by_user(cls, folder: Path) -> PreparedLog:
        facts = read_facts(folder)
        columns: dict[str, Any] = {name: facts[name] for name in ("n_users", "n_items")}
        columns["levels"] = None if facts["levels"] is None else tuple(facts["levels"])
        for side in ("user", "item"):
            columns |= _checked_catalogue(folder, side, facts)
        log = object.__new__(cls)
        log._set(columns | _checked_columns(folder, "by_user.arrow", facts))
        # Wherever the process goes meanwhile.
        object.__setattr__(log, "folder", folder.absolute())
        object.__setattr__(log, "checksum", _checksum_of(facts))
        return log

    @classmethod
    def _of_checked(cls, **columns: Any) -> FeedbackLog:
        return FeedbackLog._of_checked(**columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (str(self.folder.resolve()), memory_limit(), self.checksum)

    @cached_property
    def by_item(self) -> ItemRows:
        """The rows again, sorted by item and user."""
        facts = read_facts(self.folder)
        _refuse_another(self.folder, facts, self.checksum)
        found = _checked_columns(self.folder, "by_item.arrow", facts)
        return ItemRows(found["users"], found["items"], found["labels"])


def _opened_again(folder: str, memory: int | None, checksum: int) -> PreparedLog:
    """Open a log in another process, which may take as much memory as the one that had it open."""
    if memory is not None:
        limit_memory(memory)
    _refuse_another(Path(folder), read_facts(Path(folder)), checksum)
    # Its other order was found whole where it was opened first, and few workers need it.
    return PreparedLog._by_user(Path(folder))


def _refuse_another(folder: Path, facts: dict[str, Any], checksum: int) -> None:
    if _checksum_of(facts) != checksum:
        raise FileFormatError(f"{short(str(folder), max=300)} has another log than when it was opened: open it again")


def is_prepared(path: Any) -> bool:
    """Tell whether a path is a folder, as prepared logs are."""
    return isinstance(path, str | Path) and Path(path).is_dir()


def facts_file(facts: dict[str, Any]) -> bytes:
    """Return what log.json holds: the facts, and a checksum of them."""
    return json.dumps(facts | {"checksum": _checksum_of(facts)}, indent=1).encode()


def _checksum_of(facts: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def read_facts(folder: Path) -> dict[str, Any]:
    """Read what a prepared log says of itself."""
    file = folder / "log.json"
    if not file.is_file():
        raise FileFormatError(f"{short(str(folder), max=300)} is no prepared log: it has no log.json")
    try:
        facts = json.loads(file.read_text())
        version = facts["version"]
    except (ValueError, KeyError, TypeError):
        raise _damaged(folder, file.name) from None
    if version != VERSION:
        raise FileFormatError(
            f"{short(str(folder), max=300)} is a prepared log of version {short(version)}; this verirec reads version "
            f"{VERSION}: prepare it again"
        )
    if facts.pop("checksum", None) != _checksum_of(facts):
        raise _damaged(folder, file.name)
    return facts  # type: ignore[no-any-return]


def refuse_other_settings(folder: Path, settings: Settings) -> None:
    """Refuse settings that are not those that a log was prepared with; what is not said is as it was."""
    prepared = read_facts(folder)["made_from"]["settings"]
    for name, value in settings.said().items():
        if prepared.get(name) != value:
            there = f"with {in_words(name, prepared[name])}" if name in prepared else f"without {name}"
            raise ParameterError(
                f"{short(str(folder), max=300)} was prepared {there}; got {in_words(name, value)}: leave it out, or "
                "prepare the log again with it"
            )


def _checked_columns(folder: Path, name: str, facts: dict[str, Any]) -> Columns:
    """Map the columns of a file, and compare their checksums."""
    if not (folder / name).is_file():
        raise _damaged(folder, name, "is missing")
    columns = read_columns_file(folder / name)
    if dtypes_of(columns) != facts["dtypes"][name]:
        raise _damaged(folder, name, "has columns or types other than log.json says")
    found = checksums(columns)
    for column, sums in facts["checksums"][name].items():
        if found.get(column) != sums:
            raise _damaged(folder, name, f"has a wrong checksum in column {column!r}")
    return columns


def _checked_catalogue(folder: Path, side: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Map the ids and features of one side, and compare their checksum."""
    file, names = folder / f"{side}s.arrow", facts[f"{side}_feature_names"]
    if not file.is_file() or file.stat().st_size == 0 or file_checksum(file) != facts[f"{side}_checksum"]:
        raise _damaged(folder, file.name)
    return {
        f"{side}_ids": IdMap(read_ids(file)),
        f"{side}_features": read_features(file),
        f"{side}_feature_names": None if names is None else tuple(names),
    }


def _damaged(folder: Path, name: str, what: str = "is damaged") -> FileFormatError:
    return FileFormatError(f"{short(str(folder), max=300)}: {name} {what}; prepare the log again")
