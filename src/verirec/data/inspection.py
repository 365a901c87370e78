"""Everything that is wrong with a file of ratings, at once: what is found is mended, and the reader reads on.

The rules are those of the reader and its gate; here is only which option mends what they refuse.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verirec.checks import path_of
from verirec.data.cleaning import Cleaning, clean_ids, numbers_of, outside_scale, over_dictionary, row_faults
from verirec.data.column_guesses import guess_columns, guess_roles
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import column_names, file_ending, read_columns, read_log
from verirec.data.form_guesses import guess_form
from verirec.data.frames import arrow_columns, frame_columns
from verirec.data.ids import is_text
from verirec.data.roles import Roles, log_roles
from verirec.data.tables import LogOptions
from verirec.data.text_form import TextForm
from verirec.exceptions import (
    DroppedRowsWarning,
    DuplicatePairError,
    IdError,
    LabelError,
    MissingValueError,
    VerirecError,
)
from verirec.formatting import short

_SCALES: Final = ((0, 1), (1, 5), (0, 5), (1, 10), (0, 10), (0, 100))
"""That people rate on, narrowest first."""
_MOST: Final = 0.98
"""Share of the ratings within a scale from which on the others are suspicious."""
_SHOWN: Final = 3
_CHOICE: Final = "; choose which row counts"
"""From here on an error says what to choose: the fault's own mend says it."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a file.

    Parameters
    ----------
    what
        In a sentence.
    rows
        How many rows have it; 0 where it is not one of rows, or the sentence says it.
    first
        The first of them, counting from 0.
    mend
        Options of `read_log` that mend it; empty if none does.
    """

    what: str
    rows: int = 0
    first: tuple[int, ...] = ()
    mend: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class FileCheck:
    """What `check_file` found.

    Parameters
    ----------
    faults
        All of them.
    mend
        The options that mend all that can be mended.
    log
        What is read with them; `None` if something cannot be mended.
    remarks
        What the reader says of it.
    """

    faults: tuple[Fault, ...]
    mend: dict[str, Any]
    log: FeedbackLog | None
    remarks: tuple[str, ...]


def check_file(
    path: str | Path,
    *,
    delimiter: str | None = None,
    columns: list[str] | None = None,
    encoding: str = "utf-8",
    **options: Unpack[LogOptions],
) -> FileCheck:
    """List everything that is wrong with a file of ratings, and find the options that `read_log` reads it with.

    Parameters
    ----------
    path, delimiter, columns, encoding, options
        As in `read_log`; what they mend already is not listed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "ratings.csv")
    >>> _ = file.write_text("user,item,rating\\nann,1,5\\n,1,2\\nbob,2,two\\nbob,3,1\\ncat,3,4\\n")
    >>> found = check_file(file)
    >>> for fault in found.faults[:2]:
    ...     print(fault.what, fault.rows, fault.first, fault.mend)
    column 'user' has no value 1 (1,) {'drop_missing': True}
    column 'rating' is no number (first: 'two') 1 (2,) {'drop_missing': True}
    >>> found.mend, len(found.log)
    ({'drop_missing': True, 'positive_from': 4.0}, 3)
    >>> folder.cleanup()
    """
    form = {"delimiter": delimiter, "columns": columns, "encoding": encoding}
    # Checked before anything is read.
    TextForm(delimiter, columns, encoding)
    found = _FileReading(path_of("path", path), _given({**form, **options}))
    found.look_at_form()
    found.look_at_names()
    found.look_at_rows()
    return found.read_on()


def check_frame(frame: Any, **options: Unpack[LogOptions]) -> FileCheck:
    """List everything that is wrong with a frame of ratings, and find the options that `from_frame` takes it with.

    Parameters
    ----------
    frame, options
        As in `FeedbackLog.from_frame`; what they mend already is not listed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["ann ", None, "bob"], "item": [1, 1, 2], "rating": [5, 2, 1]})
    >>> found = check_frame(frame)
    >>> for fault in found.faults[:2]:
    ...     print(fault.what, fault.rows, fault.first, fault.mend)
    column 'user' has spaces or .0 around ids (first: 'ann ') 1 (0,) {'clean_ids': True}
    column 'user' has no value 1 (1,) {'drop_missing': True}
    >>> found.mend
    {'clean_ids': True, 'drop_missing': True, 'positive_from': 2.0}
    """
    found = _FrameReading(frame, _given(options))
    found.look_at_names()
    found.look_at_rows()
    return found.read_on()


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say something, checked where that can be done before anything is read."""
    Cleaning(options.get("drop_missing", False), options.get("clean_ids", False), options.get("scale"))
    return {name: value for name, value in options.items() if not _is_default(value)}


def _is_default(value: Any) -> bool:
    """Whether an option says nothing. Values are not compared: some cannot be, and 0 is equal to False."""
    return value is None or value is False or (isinstance(value, str) and value == "error")


class _Reading(ABC):
    """What is read, the options that it is read with so far, and what was wrong."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given, self.options = given, dict(given)
        self.faults: list[Fault] = []
        self.mend: dict[str, Any] = {}
        self.ratings = np.empty(0)
        self.usable: int | None = None
        self.times: str | None = None

    def add(self, what: str, mend: dict[str, Any], rows: Any = ()) -> None:
        first = tuple(int(row) for row in rows[:_SHOWN])
        self.faults.append(Fault(what, len(rows), first, mend))
        self.options |= mend
        self.mend |= mend

    @abstractmethod
    def table(self, roles: Roles) -> tuple[pa.Table, Roles]:
        """Return the columns that play these roles, and which they are."""

    @abstractmethod
    def log(self) -> FeedbackLog:
        """Make the log with the options so far."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all columns."""

    def look_at_names(self) -> None:
        """Guess which columns are meant, where none or several have a usual name."""
        with suppress(VerirecError):  # What cannot be read is told by the reader.
            names = [name for name in self.names() if isinstance(name, str)]
            for what, mend in guess_roles(names, self.options):
                self.add(what, mend)
            times = guess_columns(names)["timestamp"]
            self.times = times[0] if len(times) == 1 and self.options.get("timestamp") is None else None

    def look_at_rows(self) -> None:
        """Find rows that lack something, and ids that are not tidy; what keeps one from reading them comes up later."""
        try:
            table, settled = self.table(log_roles(self.options))
        except VerirecError:
            return
        self._ids(table, settled)
        numbers = pa.chunked_array([np.ones(len(table))])
        if settled.rating is not None:
            numbers = numbers_of(table[str(settled.rating)])
        self.ratings = pc.drop_null(numbers).to_numpy().astype(np.float64)
        self._rows(table, settled, numbers)

    def _ids(self, table: pa.Table, settled: Roles) -> None:
        if "clean_ids" in self.options:
            return
        for name in (str(settled.user), str(settled.item)):
            untidy = _untidy(table[name])
            if untidy.any():
                rows = np.flatnonzero(untidy)
                value = short(table[name][int(rows[0])].as_py())
                self.add(f"column {name!r} has spaces or .0 around ids (first: {value})", {"clean_ids": True}, rows)

    def _rows(self, table: pa.Table, settled: Roles, numbers: pa.ChunkedArray) -> None:
        scale = self.options.get("scale")
        suspected = _suspected_scale(self.ratings) if scale is None else None
        if suspected is not None:
            rows = np.flatnonzero(outside_scale(numbers, suspected))
            low, high = suspected
            what = f"column {str(settled.rating)!r} is not within {low:g} and {high:g}, as nearly all of it is"
            self.add(what, {"scale": suspected, "drop_missing": True}, rows)
        outside = None if scale is None else outside_scale(numbers, scale)
        found = row_faults(table, settled, outside, Cleaning(scale=scale))
        for what, flags in found.items() if "drop_missing" not in self.given else ():
            self.add(what, {"drop_missing": True}, np.flatnonzero(flags))
        unsuited = [*found.values(), *([] if suspected is None else [outside_scale(numbers, suspected)])]
        self.usable = len(table) - int(np.logical_or.reduce(unsuited).sum()) if unsuited else len(table)

    def read_on(self) -> FileCheck:
        """Read as often as something is refused that an option mends."""
        while True:
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    log = self.log()
            except VerirecError as error:
                mend = self._mend_of(error)
                self.add(str(error).partition(_CHOICE)[0] if mend else str(error), mend)
                if not mend:
                    return FileCheck(tuple(self.faults), self.mend, None, ())
                continue
            told = [str(one.message) for one in caught if not issubclass(one.category, DroppedRowsWarning)]
            return FileCheck(
                tuple(self.faults), self.mend, log, (*told, *self._merged(log), *self._timed(), *self._guessed())
            )

    def _merged(self, log: FeedbackLog) -> Iterator[str]:
        """Say how many rows fall out because their pair has another, where the reader does not."""
        rows = 0 if self.usable is None else self.usable - len(log)
        if rows > 0 and "duplicates" in self.options:
            kept = f"duplicates={self.options['duplicates']!r}"
            yield f"{rows:,} of {self.usable:,} rows are of pairs that have another row, which counts: {kept}"

    def _timed(self) -> Iterator[str]:
        """Say which column seems to have times, that nobody named."""
        if self.times is not None and self.options.get("timestamp") is None:
            yield f"column {self.times!r} seems to have times: timestamp={self.times!r} where these are needed"

    def _guessed(self) -> Iterator[str]:
        """Say what nobody but the user can decide."""
        if "positive_from" in self.mend:
            rule = f"positive_from={self.mend['positive_from']:g}"
            yield f"{rule} is a guess, which parts the ratings most evenly: from which rating on do people like?"

    def _mend_of(self, error: VerirecError) -> dict[str, Any]:
        """Return the option that mends what was refused; none where it was given already."""
        mends: dict[type[VerirecError], dict[str, Any]] = {
            MissingValueError: {"drop_missing": True},
            IdError: {"clean_ids": True},
            DuplicatePairError: self._policy() if isinstance(error, DuplicatePairError) else {},
            LabelError: self._rule(),
        }
        mend = next((mend for kind, mend in mends.items() if isinstance(error, kind)), {})
        return {} if any(self.options.get(name) is not None for name in mend) else mend

    def _policy(self) -> dict[str, Any]:
        """Return which row of a pair should count: the latest, where there are times that can be read, or the last."""
        timed = {"timestamp": self.options.get("timestamp") or self.times, "duplicates": "latest"}
        if timed["timestamp"] is None:
            return {"duplicates": "last"}
        before, self.options = self.options, self.options | timed
        try:
            self.log()
        except VerirecError:
            self.options = before
            return {"duplicates": "last"}
        self.options = before
        return {name: value for name, value in timed.items() if before.get(name) is None}

    def _rule(self) -> dict[str, Any]:
        """Return the threshold that parts the ratings most evenly, where there is no rule yet."""
        values = np.unique(self.ratings)[1:]
        if self.options.get("levels") is not None or not len(values):
            return {}
        shares = [float((self.ratings >= value).mean()) for value in values]
        return {"positive_from": float(values[int(np.argmin(np.abs(np.array(shares) - 0.5)))])}


class _FileReading(_Reading):
    """A file."""

    def __init__(self, file: Path, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.file = file

    def look_at_form(self) -> None:
        """Find out how a text file is written, where that is not how it would be read."""
        if self.file.is_file() and self.file.suffix.lower() != ".parquet":
            with suppress(pa.ArrowException, OSError, UnicodeError):  # What cannot be read is told by the reader.
                for what, mend in guess_form(self.file, self.options):
                    self.add(what, mend)

    def table(self, roles: Roles) -> tuple[pa.Table, Roles]:
        form = self._form()
        found = read_columns(self.file, self._ending(), roles, form)
        if form.broken and "drop_missing" not in self.given:
            lines = f"{len(form.broken):,} lines do not have as many fields as there are columns"
            self.add(f"{lines} (first: {short(form.broken[0])})", {"drop_missing": True})
        return found

    def names(self) -> list[str]:
        return column_names(self.file, self._ending(), self._form())

    def log(self) -> FeedbackLog:
        return read_log(self.file, **self.options)

    def _ending(self) -> str:
        return file_ending(self.file, is_text=self.options.get("delimiter") is not None)

    def _form(self) -> TextForm:
        given = self.options
        return TextForm(given.get("delimiter"), given.get("columns"), given["encoding"], skip_broken=True)


class _FrameReading(_Reading):
    """A frame of any library."""

    def __init__(self, frame: Any, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.frame = frame

    def table(self, roles: Roles) -> tuple[pa.Table, Roles]:
        return arrow_columns(self.frame, roles)

    def names(self) -> list[str]:
        return frame_columns(self.frame)

    def log(self) -> FeedbackLog:
        return FeedbackLog.from_frame(self.frame, **self.options)


def _untidy(column: pa.ChunkedArray) -> Any:
    """Tell which ids of text would be tidied."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return np.zeros(len(column), bool)
    text = column.cast(pa.large_string())
    changed = pc.not_equal(over_dictionary(text, clean_ids), text)
    return np.asarray(pc.fill_null(changed, False).to_numpy())


def _suspected_scale(ratings: Any) -> tuple[float, float] | None:
    """Return the scale that nearly all of some whole or half stars are within, and not all; `None` if there is none.

    Examples
    --------
    >>> _suspected_scale(np.array([1, 2, 3, 4, 5] * 20 + [99])), _suspected_scale(np.array([1, 2, 3, 4, 5] * 20))
    ((1, 5), None)
    """
    for low, high in _SCALES:
        inside = (ratings >= low) & (ratings <= high)
        if len(ratings) and inside.mean() >= _MOST:
            whole = bool((2 * ratings[inside] == np.round(2 * ratings[inside])).all())
            return (low, high) if whole and not inside.all() else None
    return None
