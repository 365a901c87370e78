"""The feedback log: who said what about which item, with ids mapped both ways."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verirec.checks import number_array, one_of, truth_value
from verirec.data import gate
from verirec.data.arrays import array_columns
from verirec.data.cells import checked_rows, taken
from verirec.data.feature_columns import Features, FeatureScale
from verirec.data.frames import arrow_columns
from verirec.data.ids import IdMap
from verirec.data.levels import Levels, checked_levels, in_words, values_at
from verirec.data.pairs import DuplicatePolicy
from verirec.data.roles import Roles, log_duplicates, log_roles
from verirec.data.tables import FIELD_OF_ROLE, log_columns
from verirec.exceptions import DataError, LabelError, ParameterError
from verirec.formatting import share_in_words, short
from verirec.losses import NoiseRates
from verirec.randomness import RandomState, as_generator


@dataclass(frozen=True, eq=False, repr=False)
class FeedbackLog:
    """Feedback of users on items, binary or in levels: frozen, checked once, and the only form in which data travels.

    Make one with `from_frame`, `from_arrays`, `from_sparse` or `verirec.read_log`. Rows are sorted by user and item,
    whatever order they came in, and no pair occurs twice: row numbers and arrays with a value a row mean this order.
    Users and items are positions from 0; `user_ids` and `item_ids` map them to the users' own ids and back. The grid
    has `n_users` x `n_items` cells whether or not the log shows all of them.

    Parameters
    ----------
    users, items
        int32 positions, shape (n,).
    labels
        int8, 1 for positive and 0 for negative, shape (n,); where the log keeps its levels, the place of each row's
        among them, from 0.
    n_users, n_items
        The grid's size.
    user_ids, item_ids
        Ids by position; by default ids and positions are the same.
    ratings
        What the labels were made from, if a threshold made them: int8 or int16 if they are integers, else float32.
    timestamps
        Integers, floats or datetime64.
    propensities
        P(o = 1) of each logged pair where the logging system knows it, in (0, 1].
    weights
        Of each row, at least 0.
    unbiased
        True where the pair was shown at random and not chosen by the user.
    user_features, item_features
        float64 matrices with a row per position.
    user_feature_names, item_feature_names
        Of their columns, where they came from a table: "age", or "colour=red" for a level of a category.
    levels
        The values of the levels, ascending, where the log keeps them: (1, 2, 3, 4, 5) of stars; `None` if it is binary.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 2, 1], [1, 0, 1], n_users=2, n_items=3)
    >>> log
    FeedbackLog(3 rows, 2 users x 3 items, 50.00% of the grid, 66.7% positive)
    """

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int8]
    n_users: int
    n_items: int
    user_ids: IdMap = None  # type: ignore[assignment]
    item_ids: IdMap = None  # type: ignore[assignment]
    ratings: npt.NDArray[Any] | None = None
    timestamps: npt.NDArray[Any] | None = None
    propensities: npt.NDArray[np.float64] | None = None
    weights: npt.NDArray[np.float64] | None = None
    unbiased: npt.NDArray[np.bool_] | None = None
    user_features: Features | None = None
    item_features: Features | None = None
    user_feature_names: tuple[str, ...] | None = None
    item_feature_names: tuple[str, ...] | None = None
    levels: Levels | None = None

    naming_all: ClassVar[str] = "are named by {}=..."
    """How users and items that have no row come into a log, for errors."""

    def __post_init__(self) -> None:
        columns = dict(vars(self))
        if self.levels is not None:
            columns["labels"] = values_at(self.labels, checked_levels(self.levels))
        self._set(array_columns(columns, positive_from=None, duplicates="error", levels=self.levels))

    def _set(self, columns: dict[str, Any]) -> None:
        """Take the columns, arrays locked."""
        for field in fields(self):
            value = columns.get(field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field.name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Lock the arrays of a copy, or of a log that another process sent, too."""
        self._set(state)

    @classmethod
    def _of_checked(cls, **columns: Any) -> FeedbackLog:
        """Make a log of columns that have passed the gate."""
        log = object.__new__(cls)
        log._set(columns)
        return log

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        positive_from: float | None = None,
        levels: Any = None,
        duplicates: DuplicatePolicy = "error",
        timestamp: str | None = None,
        propensity: str | None = None,
        weight: str | None = None,
        unbiased: str | None = None,
        all_users: Any = None,
        all_items: Any = None,
        user_features: Any = None,
        item_features: Any = None,
        drop_missing: bool = False,
        clean_ids: bool = False,
        scale: tuple[float, float] | None = None,
        clicks: bool = False,
    ) -> FeedbackLog:
        """Make a log of a pandas, polars or pyarrow frame (or any other that narwhals knows), one row per rating.

        Parameters
        ----------
        frame
            Eager or lazy; only the columns that are named are touched.
        user, item, rating
            The columns; left out, the usual names (user_id, movieId, label, ...) are tried. Ids are integers or
            strings.
        positive_from
            Ratings of at least this are positive; leave it out if the column is 0/1 or boolean already.
        levels
            In place of it: all values that a rating can have, ascending, such as [1, 2, 3, 4, 5]; the log keeps them.
        duplicates
            What to do with a pair that occurs more than once. "error" (default): refuse pairs whose rows disagree in
            their label, and merge the ones that agree, with a warning. "first", "last": keep that row. "latest": the
            row with the last timestamp. "highest": the row with the highest rating.
        timestamp, propensity, weight, unbiased
            Optional columns: see the class.
        all_users, all_items
            All ids that could have been logged, where they are more than the log shows: what nobody rated is part
            of the grid too. A sequence, or the `Path` of a text file with one id a line, or of a
            .parquet file whose first column they are.
        user_features, item_features
            Frames, or paths of .csv, .tsv or .parquet files, with the same id column. Numbers are taken as they are,
            text is a category (a 0/1 column a level), and "a|b|c" a list of levels. They are the catalogue if
            `all_users` or `all_items` is not given.
        drop_missing
            Leave out rows without a value in one of the columns that are read, and say how many: empty, NaN, words
            such as NA and NULL, and ratings that are no numbers.
        clean_ids
            Take spaces off the ends of ids and ".0" off whole numbers; floats that are whole become integers, and a
            column that mixes numbers and text becomes text: 7, 7.0 and "7" are one id.
        scale
            The lowest and the highest rating there can be: others are refused, or left out with `drop_missing`.
        clicks
            True where each row is a click, and no column says more: all labels are 1, and of a pair that was clicked
            several times the first row counts. What such a log can tell is in `docs/clicks.md`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"user": ["ann", "bob", "ann"], "item": [7, 7, 9], "rating": [5, 2, 4]})
        >>> log = FeedbackLog.from_frame(frame, user="user", item="item", rating="rating", positive_from=3)
        >>> log.labels.tolist(), log.user_ids.ids(log.users).tolist()
        ([1, 1, 0], ['ann', 'ann', 'bob'])
        """
        named: dict[str, Any] = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
        named |= {"propensity": propensity, "weight": weight, "unbiased": unbiased, "clicks": clicks}
        named |= {"positive_from": positive_from, "levels": levels, "duplicates": duplicates, "scale": scale}
        table, roles = arrow_columns(frame, log_roles(named), clean_ids=truth_value("clean_ids", clean_ids))
        return log_from_table(
            table,
            roles,
            positive_from=positive_from,
            levels=levels,
            duplicates=log_duplicates(named),
            all_users=all_users,
            all_items=all_items,
            user_features=user_features,
            item_features=item_features,
            drop_missing=drop_missing,
            clean_ids=clean_ids,
            scale=scale,
        )

    @classmethod
    def from_arrays(
        cls,
        users: npt.ArrayLike,
        items: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        n_users: int,
        n_items: int,
        positive_from: float | None = None,
        levels: Any = None,
        duplicates: DuplicatePolicy = "error",
        user_ids: Any = None,
        item_ids: Any = None,
        timestamps: npt.ArrayLike | None = None,
        propensities: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        unbiased: npt.ArrayLike | None = None,
        user_features: npt.ArrayLike | None = None,
        item_features: npt.ArrayLike | None = None,
    ) -> FeedbackLog:
        """Make a log of positions and labels, or of ratings with `positive_from` or `levels` (see `from_frame`).

        Examples
        --------
        >>> FeedbackLog.from_arrays([0, 1], [1, 0], [5, 2], n_users=2, n_items=2, positive_from=3).labels.tolist()
        [1, 0]
        >>> FeedbackLog.from_arrays([0, 1], [1, 0], [5, 2], n_users=2, n_items=2, levels=[1, 2, 3, 4, 5])
        FeedbackLog(2 rows, 2 users x 2 items, 50.00% of the grid, 5 levels with a mean of 3.50)
        """
        columns = {
            "users": users,
            "items": items,
            "labels": labels,
            "n_users": n_users,
            "n_items": n_items,
            "user_ids": user_ids,
            "item_ids": item_ids,
            "timestamps": timestamps,
            "propensities": propensities,
            "weights": weights,
            "unbiased": unbiased,
            "user_features": user_features,
            "item_features": item_features,
        }
        return cls._of_checked(
            **array_columns(columns, positive_from=positive_from, duplicates=duplicates, levels=levels)
        )

    @classmethod
    def from_sparse(
        cls, matrix: Any, *, positive_from: float | None = None, duplicates: DuplicatePolicy = "error", **rest: Any
    ) -> FeedbackLog:
        """Make a log of a scipy sparse matrix or array: what is stored is observed, a stored 0 included.

        Parameters
        ----------
        matrix
            Any scipy sparse format, shape (n_users, n_items).
        rest
            Whatever else `from_arrays` takes.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> FeedbackLog.from_sparse(csr_array([[5, 0], [0, 2]]), positive_from=3)
        FeedbackLog(2 rows, 2 users x 2 items, 50.00% of the grid, 50.0% positive)
        """
        if not hasattr(matrix, "tocoo") or len(getattr(matrix, "shape", ())) != 2:
            raise DataError(f"from_sparse needs a scipy sparse matrix with two dimensions; got {type(matrix).__name__}")
        if matrix.format in ("bsr", "dia"):
            raise DataError(
                f"from_sparse cannot tell what a {matrix.format} matrix observed: it stores or drops zeros to fill its "
                "blocks or diagonals; build a csr or coo one from the ratings"
            )
        entries = matrix.tocoo()
        n_users, n_items = entries.shape
        users, items = entries.coords if hasattr(entries, "coords") else (entries.row, entries.col)
        return cls.from_arrays(
            users,
            items,
            entries.data,
            n_users=n_users,
            n_items=n_items,
            positive_from=positive_from,
            duplicates=duplicates,
            **rest,
        )

    def __len__(self) -> int:
        return len(self.users)

    @property
    def shape(self) -> tuple[int, int]:
        """The grid's, (n_users, n_items)."""
        return self.n_users, self.n_items

    @property
    def n_cells(self) -> int:
        """Number of user-item pairs in the grid, observed or not."""
        return self.n_users * self.n_items

    @property
    def fingerprint(self) -> int:
        """A checksum of pairs and labels, the same in any process: two logs that differ in it are not the same."""
        checksum = 0
        for column in (self.users, self.items, self.labels):
            checksum = zlib.crc32(np.ascontiguousarray(column).data, checksum)
        return checksum

    @property
    def user_scale(self) -> FeatureScale | None:
        """How models standardise the features of users; `None` without such."""
        return None if self.user_features is None else FeatureScale.of(self.user_features, self.user_feature_names)

    @property
    def density(self) -> float:
        """Share of the grid that is observed."""
        return len(self) / self.n_cells

    @property
    def label_values(self) -> npt.NDArray[Any]:
        """The labels or, where the log keeps its levels, the value of each row's level; shape (n,)."""
        return self.labels if self.levels is None else np.asarray(self.levels)[self.labels]

    def binary(self, *, positive_from: float) -> FeedbackLog:
        """Return a log of levels as a binary one: ratings of at least this are positive.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 1], [1, 0], [5, 2], n_users=2, n_items=2, levels=[1, 2, 3, 4, 5])
        >>> log.binary(positive_from=4).labels.tolist()
        [1, 0]
        """
        if self.levels is None:
            raise ParameterError("the log is binary already; levels=... keeps the levels of one")
        labels = gate.binary_labels(self.label_values, positive_from, "labels")
        return self._of_checked(**(vars(self) | {"labels": labels, "levels": None}))

    def __repr__(self) -> str:
        positive = f"{self.labels.mean():.1%} positive" if len(self) else "no labels"
        if self.levels is not None and len(self):
            positive = f"{len(self.levels)} levels with a mean of {self.label_values.mean():.2f}"
        return (
            f"FeedbackLog({len(self):,} rows, {self.n_users:,} users x {self.n_items:,} items, "
            f"{share_in_words(self.density)} of the grid, {positive})"
        )

    def _repr_html_(self) -> str:
        head = self.select(np.arange(min(5, len(self)))).to_frame()
        return f"<p>{self!r}</p>{head.to_html(index=False, escape=True)}"

    def equals(self, other: object) -> bool:
        """Tell whether two logs have the same rows, grid, ids and features, whatever order the rows came in.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 1], [1, 0], [1, 0], n_users=2, n_items=2)
        >>> log.equals(FeedbackLog.from_arrays([1, 0], [0, 1], [0, 1], n_users=2, n_items=2))
        True
        >>> log.equals(log.select([1]))
        False
        """
        if not isinstance(other, FeedbackLog):
            return False
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            arrays = isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray)
            same = np.array_equal(mine, theirs) if arrays else mine == theirs
            if not same:
                return False
        return True

    def select(self, rows: npt.ArrayLike) -> FeedbackLog:
        """Return the log of these rows only (a mask, or distinct row numbers), on the same grid and with the same ids.

        They stay sorted, whatever order they are named in. No row at all is a part too: an empty one.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 2, 1], [1, 0, 1], n_users=2, n_items=3)
        >>> len(log.select([0, 2])), len(log.select(log.labels == 0))
        (2, 1)
        """
        index = checked_rows(rows, len(self))
        if index.dtype != bool:
            index = np.sort(index)
            repeats = int((index[1:] == index[:-1]).sum())
            if repeats:
                raise ParameterError(
                    f"rows must be distinct, as pairs are; {len(index):,} name {len(index) - repeats:,}"
                )
        columns = dict(vars(self))
        for name in gate.ROW_COLUMNS:
            if columns[name] is not None:
                columns[name] = taken(columns[name], index)
        return self._of_checked(**columns)

    def with_labels(self, labels: npt.ArrayLike) -> FeedbackLog:
        """Return the same log with other labels, 0/1 or of its levels, shape (n,); its ratings are left out.

        Labels are in the order of the log's rows, by user and item.
        """
        flat = number_array("labels", labels, ndim=1, error=DataError)
        if flat.shape != (len(self),):
            raise DataError(f"labels must have shape ({len(self)},); got {flat.shape}")
        given = gate.labels_by_rule(flat, None, self.levels, "labels")
        return self._of_checked(**(vars(self) | {"labels": given, "ratings": None}))

    def with_noise(self, rates: NoiseRates, *, random_state: RandomState = None) -> FeedbackLog:
        """Return the same log with labels flipped at these rates, for experiments.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 2, 1], [1, 0, 1], n_users=2, n_items=3)
        >>> noisy = log.with_noise(NoiseRates(0.2, 0.1), random_state=0)
        >>> noisy.labels.shape == log.labels.shape
        True
        """
        if not isinstance(rates, NoiseRates):
            raise ParameterError(f"rates must be a NoiseRates; got {short(rates)}")
        uniforms = as_generator(random_state).random(len(self))
        return self.with_labels(rates.observe(self.labels, uniforms))

    def to_arrow(self) -> pa.Table:
        """Return the log as an Arrow table with the users' own ids: user, item, label and whatever else it has.

        Where the log keeps its levels, label and rating both hold their values.
        """
        columns = {
            "user": self.user_ids.arrow(self.users),
            "item": self.item_ids.arrow(self.items),
            "label": pa.array(self.label_values),
        }
        for name, field in (FIELD_OF_ROLE | {"rating": "ratings"}).items():
            if getattr(self, field) is not None:
                columns[name] = pa.array(getattr(self, field))
        if self.levels is not None:
            columns["rating"] = columns["label"]
        return pa.table(columns)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the log as a frame of the users' own ids, in the library of your choice.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 1], [1, 0], [1, 0], n_users=2, n_items=2)
        >>> log.to_frame().columns.tolist()
        ['user', 'item', 'label']
        """
        table = self.to_arrow()
        one_of("backend", backend, ("pandas", "polars", "pyarrow"))
        if backend == "pyarrow":
            return table
        if backend == "pandas":
            return table.to_pandas()
        try:
            import polars
        except ImportError:
            raise ParameterError("backend='polars' needs polars: pip install polars") from None
        return polars.from_arrow(table)


def checked_log(log: object, *, levels: bool = False) -> FeedbackLog:
    """Accept a feedback log and nothing else; one that keeps its levels only where `levels` says so."""
    if not isinstance(log, FeedbackLog):
        raise ParameterError(f"a FeedbackLog is needed; got {type(log).__name__}")
    if log.levels is not None and not levels:
        raise LabelError(
            f"binary labels are needed here; the log has {len(log.levels)} levels, {in_words(log.levels)}: "
            "log.binary(positive_from=...), or positive_from=... in place of levels=..., makes it binary"
        )
    return log


def log_from_table(table: pa.Table, roles: Roles, **options: Any) -> FeedbackLog:
    """Make a log of an Arrow table whose columns play these roles; options as in `log_columns`."""
    return FeedbackLog._of_checked(**log_columns(table, roles, **options))
