"""How files of ratings are read: options of every verb that reads a log, declared once."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

import typer

import verirec as vr
from verirec.cli.standard_input import at_hand
from verirec.exceptions import ParameterError, UnknownIdError
from verirec.formatting import short

of_log = partial(typer.Option, rich_help_panel="How ratings are read")

_ANSWER_ROLES: Final = ("user", "item", "true_label")


@dataclass(frozen=True, kw_only=True)
class RatingsOptions(AbstractContextManager["RatingsOptions"]):
    """How a file of ratings is read, and what files may hold for as long as the verb runs."""

    user: Annotated[str | None, of_log(help="The column of users.")] = None
    item: Annotated[str | None, of_log(help="The column of items.")] = None
    rating: Annotated[str | None, of_log(help="The column of ratings or labels.")] = None
    positive_from: Annotated[float | None, of_log(help="Ratings of at least this count as positive.")] = None
    levels: Annotated[
        str | None,
        of_log(
            metavar="VALUES",
            help="In place of --positive-from: comma-separated values that a rating can have, such as 1,2,3,4,5; "
            "the log keeps them.",
        ),
    ] = None
    clicks: Annotated[
        bool, of_log("--clicks", help="Each row is a click, and no column says more: all are positive.")
    ] = False
    delimiter: Annotated[
        str | None, of_log(help="The character between fields, if the file's ending does not say; \\t is a tab.")
    ] = None
    columns_named: Annotated[
        str | None,
        of_log("--columns", metavar="NAMES", help="Comma-separated names of all columns, if there is no header line."),
    ] = None
    encoding: Annotated[str, of_log(help="Of a text file: utf-8, cp1252, utf-16, ...")] = "utf-8"
    drop_missing: Annotated[
        bool,
        of_log(
            "--drop-missing",
            help="Leave out rows without a user, an item, a rating or any other column that is named, such as "
            "--timestamp, and say how many.",
        ),
    ] = False
    clean_ids: Annotated[
        bool, of_log("--clean-ids", help="Take spaces off the ends of ids, and .0 off whole numbers.")
    ] = False
    scale: Annotated[
        tuple[float, float] | None,
        of_log(help="The lowest and the highest rating: others are refused, or left out with --drop-missing."),
    ] = None

    memory: Annotated[
        str, of_log(metavar="SIZE", help="Of a prepared log: how much memory its work may take, such as 2GB.")
    ] = "2GB"
    limit: Annotated[
        list[str] | None,
        of_log(
            metavar="NAME=NUMBER",
            help="What files may hold, where the usual is too little: rows, columns, field_bytes, expansion, memory.",
        ),
    ] = None
    _raised: ClassVar[ExitStack] = ExitStack()

    def __enter__(self) -> Self:
        from verirec.data.limits import read_limits

        self._raised.enter_context(read_limits(**named_numbers("--limit", self.limit or [])))
        return self

    def __exit__(self, *_: object) -> None:
        self._raised.close()

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns of users and items, which files that go with the log may have too."""
        return {"user": self.user, "item": self.item}

    @property
    def reading(self) -> dict[str, Any]:
        """What `read_log` takes of these."""
        return {
            "user": self.user,
            "item": self.item,
            "rating": self.rating,
            "positive_from": self.positive_from,
            "levels": listed_levels(self.levels),
            "clicks": self.clicks,
            "delimiter": "\t" if self.delimiter == "\\t" else self.delimiter,
            "columns": None if self.columns_named is None else self.columns_named.split(","),
            "encoding": self.encoding,
            "drop_missing": self.drop_missing,
            "clean_ids": self.clean_ids,
            "scale": self.scale,
        }

    def read(self, path: Path, **more: Any) -> vr.FeedbackLog:
        """Read a file of ratings or standard input, or open a prepared log; `more` as in `read_log`."""
        if path.is_dir():
            return vr.scan_log(path, memory=self.memory, **self.reading, **more)
        with at_hand(path) as there:
            return vr.read_log(there, **self.reading, **more)

    def pairs(self, path: Path) -> vr.FeedbackLog:
        """Read which pairs a file of ratings or a prepared log has, whatever was rated, and how often."""
        from verirec.data.files import read_pairs
        from verirec.data.roles import PairRoles
        from verirec.data.text_form import TextForm

        if path.is_dir():
            return vr.scan_log(path, memory=self.memory)
        given = self.reading
        form = TextForm(given["delimiter"], given["columns"], self.encoding, skip_broken=self.drop_missing)
        with at_hand(path) as there:
            return read_pairs(
                there,
                PairRoles(self.user, self.item),
                form,
                drop_missing=self.drop_missing,
                clean_ids=self.clean_ids,
            )


@dataclass(frozen=True, kw_only=True)
class WholeLogOptions(RatingsOptions):
    """How files of ratings become a log."""

    timestamp: Annotated[str | None, of_log(help="The column of times.")] = None
    duplicates: Annotated[
        str,
        of_log(
            help="Which row of a pair counts if it has several: first, last, highest, latest (with --timestamp); "
            "or error."
        ),
    ] = "error"
    unbiased: Annotated[
        str | None, of_log(help="The column that marks rows that were shown at random: they are a survey.")
    ] = None
    all_users: Annotated[
        Path | None,
        of_log(
            help="All user ids, if some are not in the log: text, one a line, or the first column of a .parquet file."
        ),
    ] = None
    all_items: Annotated[Path | None, of_log(help="All item ids, likewise.")] = None

    user_features: Annotated[
        Path | None,
        of_log(help="Features of users: .csv, .tsv or .parquet with the log's user column; numbers, text, or a|b|c."),
    ] = None
    item_features: Annotated[Path | None, of_log(help="Features of items, likewise.")] = None

    def rules(self, propensity: str | None = None) -> dict[str, Any]:
        """Return what `read_log` takes besides `reading`, with a column of propensities if there is one."""
        return {
            "timestamp": self.timestamp,
            "duplicates": self.duplicates,
            "all_users": self.all_users,
            "all_items": self.all_items,
            "user_features": self.user_features,
            "item_features": self.item_features,
            "propensity": propensity,
            "unbiased": self.unbiased,
        }


@dataclass(frozen=True, kw_only=True)
class LogOptions(WholeLogOptions):
    """The log, and how it is read."""

    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="The log: .csv, .tsv, .parquet or .inter, a folder of verirec prepare, or - (standard input).",
        ),
    ]

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        named = self.log, self.all_users, self.all_items, self.user_features, self.item_features
        return [file for file in named if file is not None]

    def load(self, propensity: str | None = None) -> vr.FeedbackLog:
        """Read the log, with a column of propensities if it has one."""
        return self.read(self.log, **self.rules(propensity))


@dataclass(frozen=True, kw_only=True)
class AskedLogOptions(LogOptions):
    """The log, and how it and what people answered about it are read."""

    answer_columns: Annotated[
        str | None,
        of_log(
            metavar="USER,ITEM,ANSWER",
            help="The columns of --survey, --audit and other files of answers, if they have other names than the "
            "log's and true_label.",
        ),
    ] = None

    @property
    def of_truths(self) -> dict[str, Any]:
        """How files of true labels are read: by their own columns or the log's, and from which star on people like."""
        names = {} if self.answer_columns is None else dict(zip(_ANSWER_ROLES, self._answer_names(), strict=True))
        return {"log_columns": self.columns, "positive_from": self.positive_from} | names

    def _answer_names(self) -> list[str]:
        names = [name.strip() for name in str(self.answer_columns).split(",")]
        if len(names) != len(_ANSWER_ROLES) or not all(names):
            raise ParameterError(
                f"--answer-columns must be three names, USER,ITEM,ANSWER; got {short(self.answer_columns)}"
            )
        return names


@dataclass(frozen=True, kw_only=True)
class ExcludeOptions:
    """Pairs that are not spoken of."""

    exclude: Annotated[
        Path | None,
        typer.Option(
            help="The log that the recommenders were trained on, read as LOG is: a file, or a folder of verirec "
            "prepare. Its pairs are neither judged nor ranked.",
        ),
    ] = None

    def read(self, log: vr.FeedbackLog, ratings: RatingsOptions) -> vr.FeedbackLog | None:
        """Read those of its pairs whose user and item the log has, by the log's positions."""
        from verirec.data.pair_sketch import known_pairs

        if self.exclude is None:
            return None
        found = ratings.pairs(self.exclude)
        if found.user_ids == log.user_ids and found.item_ids == log.item_ids and len(found):
            return found
        users, items = known_pairs(found, log.user_ids, log.item_ids)
        if len(users) == 0:
            raise UnknownIdError(f"{self.exclude.name}: no row has both a user and an item of the log")
        return vr.FeedbackLog.from_arrays(users, items, users * 0, n_users=log.n_users, n_items=log.n_items)


def named_numbers(option: str, given: list[str]) -> dict[str, float]:
    """Take NAME=NUMBER apart.

    Examples
    --------
    >>> named_numbers("--limit", ["rows=1e6"])
    {'rows': 1000000.0}
    """
    found = {}
    for one in given:
        name, _, number = one.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise ParameterError(f"{option} must be NAME=NUMBER; got {short(one)}") from None
    return found


def listed_levels(given: str | None) -> list[float] | None:
    """Take a list of levels apart."""
    try:
        return None if given is None else [float(one) for one in given.split(",")]
    except ValueError:
        raise ParameterError(f"--levels must be comma-separated numbers such as 1,2,3,4,5; got {given!r}") from None
