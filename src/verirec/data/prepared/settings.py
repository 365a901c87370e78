"""What a prepared log was made from and how: the key by which parts of the work are found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verirec.checks import real_number
from verirec.data.cleaning import Cleaning
from verirec.data.frames import as_arrow
from verirec.data.ids import as_id_column
from verirec.data.levels import Levels, checked_levels
from verirec.data.pairs import checked_policy
from verirec.data.roles import ClickRoles, Roles, log_duplicates, log_roles
from verirec.data.tables import LogOptions
from verirec.engine.worker import versions
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.resuming import checksum_of

VERSION: Final = 3
"""Of the form in which prepared logs are written."""
FileState = tuple[int, ...] | None
_CATALOGUES: Final = ("all_users", "all_items", "user_features", "item_features")


@dataclass(frozen=True)
class Settings:
    """How rows become a log, by the names that `FeedbackLog.from_frame` has.

    Parameters
    ----------
    roles
        As they were asked for.
    positive_from, levels, duplicates, cleaning
        The rules.
    catalogues
        What was given of all users and items, by name; frames and sequences are taken as they are, iterators as lists.
    """

    roles: Roles
    positive_from: float | None
    levels: Levels | None
    duplicates: str
    cleaning: Cleaning
    catalogues: dict[str, Any]

    @classmethod
    def of(cls, options: dict[str, Any], *, function: str) -> Settings:
        """Take the options of a function apart, and check what can be checked without data."""
        unknown = set(options) - set(LogOptions.__annotations__)
        if unknown:
            raise TypeError(f"{function}() got an unexpected keyword argument {min(unknown)!r}")
        levels, scale = options.get("levels"), options.get("scale")
        cleaning = Cleaning(options.get("drop_missing", False), options.get("clean_ids", False), scale)
        duplicates = log_duplicates(options)
        checked_policy(duplicates, with_times=options.get("timestamp") is not None)
        if levels is not None and options.get("positive_from") is not None:
            given = options["positive_from"]
            raise ParameterError(f"give levels or positive_from, not both; got positive_from={short(given)}")
        threshold = options.get("positive_from")
        roles = log_roles(options)
        roles.refuse_odd_names()
        return cls(
            roles,
            None if threshold is None else _plain_number("positive_from", threshold),
            None if levels is None else checked_levels(levels),
            duplicates,
            cleaning,
            {name: _lasting(options[name]) for name in _CATALOGUES if options.get(name) is not None},
        )

    def said(self) -> dict[str, Any]:
        """Return what was asked for other than the defaults, as JSON can hold it."""
        rules: dict[str, Any] = {name: value for name, value in vars(self.roles).items() if value is not None}
        rules |= {
            "clicks": isinstance(self.roles, ClickRoles) or None,
            "positive_from": self.positive_from,
            "levels": None if self.levels is None else list(self.levels),
            "duplicates": None if self.duplicates == "error" else self.duplicates,
            "drop_missing": bool(self.cleaning.drop_missing) or None,
            "clean_ids": bool(self.cleaning.clean_ids) or None,
            "scale": None if self.cleaning.scale is None else [float(one) for one in self.cleaning.scale],
        }
        rules |= {name: _identity(name, value) for name, value in self.catalogues.items()}
        return {name: value for name, value in rules.items() if value is not None}


def _plain_number(name: str, value: Any) -> float:
    """Accept a number; whole ones are said as such."""
    number = real_number(name, value)
    return int(number) if number.is_integer() else number


def _lasting(value: Any) -> Any:
    """Return what can be read more than once."""
    return list(value) if isinstance(value, Iterator) else value


def _identity(name: str, value: Any) -> str:
    """Tell a catalogue or features from others: a file by its name, size and time, anything else by its content."""
    if isinstance(value, str | Path):
        return json.dumps(file_identity(Path(value))) if Path(value).is_file() else str(value)
    # What a frame's library says of it beside its columns, such as the labels of rows, is not read.
    content = as_id_column(value, name) if name.startswith("all_") else as_arrow(value, name).replace_schema_metadata()
    return checksum_of(content)


def in_words(name: str, said: Any) -> str:
    """Return a setting as an argument: of a catalogue in a file by its name, of others that there was one.

    Examples
    --------
    >>> in_words("positive_from", 4), in_words("all_users", '{"file": "/tmp/users.txt", "bytes": 9, "changed": 1}')
    ('positive_from=4', "all_users='users.txt'")
    """
    if name not in _CATALOGUES:
        return f"{name}={said!r}"
    try:
        return f"{name}={Path(json.loads(said)['file']).name!r}"
    except (ValueError, TypeError, LookupError):
        return f"{name}=..."


def file_identity(file: Path) -> dict[str, Any]:
    """Tell a file from what it may be later: its place, size and time."""
    known = file.stat()
    return {"file": str(file.resolve()), "bytes": known.st_size, "changed": known.st_mtime_ns}


def state_of(file: Path) -> FileState:
    """Tell a file from one that was changed since, even if that has its size and time again; `None` if it is gone."""
    try:
        known = file.stat()
    except OSError:
        return None
    return known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns


def key_of(*facts: Any) -> str:
    """Make a key of facts that JSON can hold, and of the code and what it rests on: all of it decides what rows become.

    Examples
    --------
    >>> key_of({"a": 1}) == key_of({"a": 1}), key_of({"a": 1}) == key_of({"a": 2})
    (True, False)
    """
    return hashlib.sha256(json.dumps([versions(), *facts], sort_keys=True).encode()).hexdigest()[:24]
