"""Files of pairs with true labels, by the ids of a log: audits, surveys, and plans that were filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from verirec.data.answers import combine_answers, one_answer_each
from verirec.data.cells import Positions, cell_keys
from verirec.data.feature_columns import NUMBER
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import file_ending, read_columns
from verirec.data.frames import arrow_columns
from verirec.data.ids import is_text
from verirec.data.label_studio import read_label_studio
from verirec.data.levels import Levels, in_words, level_indices, values_at
from verirec.data.pair_files import Columns, find_side, is_blank, is_number
from verirec.data.pair_keys import places_in
from verirec.data.roles import Roles, TruthRoles
from verirec.data.text_form import TextForm, likely_encoding
from verirec.exceptions import (
    AuditError,
    DataError,
    EmptyLogError,
    FileFormatError,
    MissingValueError,
    ReaskError,
    SurveyError,
    UnknownIdError,
)
from verirec.formatting import names_in_words, rows_in_words, short

_KINDS: Final[dict[str, tuple[str, type[DataError]]]] = {
    "logged": ("an audit", AuditError),
    "random": ("a survey", SurveyError),
    "again": ("a re-ask", ReaskError),
}
Kind = Literal["logged", "random", "again"]
BEST: Final = "best"
_PLANNED: Final = ("logged", "random", BEST)
"""What a plan says of its rows; those to ask about again are logged."""
_NEGATIVE: Final = ("0", "0.0", "0,0", "no", "n", "false", "down", "dislike", "nein", "falsch", "non", "faux", "não")
_POSITIVE: Final = ("1", "1.0", "1,0", "yes", "y", "true", "up", "like", "ja", "wahr", "oui", "vrai", "si", "sí", "sim")


class Truths(NamedTuple):
    """Pairs with true labels, each pair once.

    Parameters
    ----------
    users, items
        Positions, shape (n,).
    labels
        0/1, shape (n,); values of levels, where the log keeps its own.
    probabilities
        Of each pair to have its label here, shape (n,), if the file says.
    clusters
        Which pairs were drawn together, numbers of shape (n,), if the file says.
    best
        Whether only pairs among their user's best could be drawn.
    """

    users: Positions
    items: Positions
    labels: npt.NDArray[Any]
    probabilities: npt.NDArray[np.float64] | None
    clusters: npt.NDArray[np.int64] | None
    best: bool = False


def read_truths(
    file: Path,
    roles: TruthRoles,
    log: FeedbackLog,
    likely: Columns | None = None,
    *,
    kind: Kind = "logged",
    positive_from: float | None = None,
) -> Truths:
    """Read an audit (logged pairs), a survey (random ones) or a re-ask (logged pairs, each by its own user).

    Fields may be separated by commas, semicolons or tabs, and text may be as Windows has it; a file that ends in .json
    is an export of Label Studio's. Answers in stars become 0 and 1 by `positive_from`, unless all of them are 0 or 1.

    Of a plan, which has both and says so in a column `kind`, the rows of one kind are taken. Rows without a label are
    left out, as of a list not filled in to the end, and the probabilities lowered by their share. Several answers to
    one pair become one: see `combine_answers`.

    Parameters are those of `read_scores`. An id that the log does not have is an `UnknownIdError`, as is a logged pair
    of a plan that is not in the log: nobody was asked about it.
    """
    table, settled, ending = _read(file, roles, _KINDS[kind][0], likely)
    return truths_of_table(table, settled, log, file.name, ending, kind=kind, positive_from=positive_from)


def frame_truths(
    frame: Any,
    roles: TruthRoles,
    log: FeedbackLog,
    likely: Columns | None = None,
    *,
    kind: Kind = "logged",
    positive_from: float | None = None,
) -> Truths:
    """Take a frame as `read_truths` takes a file: pandas, polars or pyarrow."""
    what = _KINDS[kind][0]
    table, settled = arrow_columns(frame, roles, f"the frame of {what}", likely=likely)
    return truths_of_table(table, settled, log, f"{what}'s frame", kind=kind, positive_from=positive_from)


def truths_of_table(
    table: pa.Table,
    settled: Roles,
    log: FeedbackLog,
    source: str,
    ending: str = ".parquet",
    *,
    kind: Kind = "logged",
    positive_from: float | None = None,
) -> Truths:
    """Make pairs with true labels of a table; parameters as in `scores_of_table` and `read_truths`."""
    error = _KINDS[kind][1]
    if len(table) == 0:
        raise EmptyLogError(f"{source} is empty: it must have at least one row")
    given, share = _answered(table, settled, "random" if kind == "random" else "logged", source)
    users, items = given.positions(log, ending, random=kind == "random")
    keys = cell_keys(users, items, log.n_items)
    if kind != "random" and given.column("kind") is not None:
        given.refuse_unlogged(keys, log)
    told: dict[str, Any] = {"file": source, "where": given.where, "error": error}
    if log.levels is None or kind == "again":
        people = np.zeros(len(keys), np.int64) if kind == "again" else given.codes("person")
        found = combine_answers(keys, given.labels(error, positive_from), people, **told)
    else:
        found = one_answer_each(keys, given.levels(log.levels, error), **told)
    probabilities, clusters = given.probabilities(), given.clusters()
    return Truths(
        users[found.rows],
        items[found.rows],
        found.labels,
        None if probabilities is None else share * probabilities[found.rows],
        None if clusters is None else clusters[found.rows],
        _are_best(given, source),
    )


def _read(file: Path, roles: TruthRoles, what: str, likely: Columns | None) -> tuple[pa.Table, Roles, str]:
    """Read a table in any format that logs have, or an export of Label Studio's."""
    if file.suffix.lower() == ".json":
        table = read_label_studio(file)
        # Its ids are of the kind that the plan's were.
        return table, roles.settle(table.column_names, likely), ".parquet"
    ending = file_ending(file, is_text=False, kind=what)
    table, settled = read_columns(file, ending, roles, _form(file, ending), likely=likely)
    return table, settled, ending


def _are_best(given: _AnsweredRows, source: str) -> bool:
    """Tell whether a plan's pairs are all among their users' best; mixed with others they are of no one design."""
    kinds = _kinds(given.table, given.settled, source)
    best = np.zeros(1, bool) if kinds is None else kinds == BEST
    if best.any() and not best.all():
        raise FileFormatError(
            f"{source}: {int(best.sum()):,} of {len(best):,} answered pairs are of kind {BEST} and the others "
            "random: they were drawn in different ways; give one of the two"
        )
    return bool(best.any())


@dataclass(frozen=True, eq=False)
class _AnsweredRows:
    """The rows of a file that count, and which they are in it."""

    table: pa.Table
    settled: Roles
    rows: npt.NDArray[np.int64]
    total: int
    source: str

    def where(self, some: npt.NDArray[np.int64]) -> str:
        """Say which rows of the file some of these are."""
        return rows_in_words(self.rows[some], self.total)

    def column(self, role: str) -> pa.ChunkedArray | None:
        """Return a role's column, if there is one."""
        name = getattr(self.settled, role)
        return None if name is None else self.table[name]

    def codes(self, role: str) -> npt.NDArray[np.int64] | None:
        """Number the values of a column, if there is one; what is left blank is a value too."""
        column = self.column(role)
        if column is None:
            return None
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)

    def clusters(self) -> npt.NDArray[np.int64] | None:
        """Number the clusters, if there is a column of them; a pair whose cluster is left blank is its own."""
        column, codes = self.column("cluster"), self.codes("cluster")
        if column is None or codes is None:
            return None
        return np.where(is_blank(column), len(codes) + np.arange(len(codes)), codes)

    def positions(self, log: FeedbackLog, ending: str, *, random: bool) -> tuple[Positions, Positions]:
        """Look users and items up; each row must have both, and the log must know them, with a row or without."""
        label = self.settled.rating
        for column in (str(self.settled.user), str(self.settled.item)):
            blank = np.flatnonzero(is_blank(self.table[column]))
            if blank.size:
                raise MissingValueError(
                    f"{self.source}: {column} is missing in {self.where(blank)}, which have a {label}; fill it in, "
                    f"or empty the {label}"
                )
        sides = [
            find_side(side, self.table, self.settled, log, self.source, ending, escaped=True)
            for side in ("user", "item")
        ]
        for side in sides:
            if (side.positions < 0).any():
                error = side.unknown_error(self.source, self.rows[side.positions < 0], self.total)
                way_on = log.naming_all.format(f"all_{side.name}s")
                raise UnknownIdError(f"{error}; {side.name}s that have no row {way_on}" if random else str(error))
        return sides[0].positions, sides[1].positions

    def refuse_unlogged(self, keys: npt.NDArray[np.int64], log: FeedbackLog) -> None:
        """Say which pairs of a plan should be in the log but are not."""
        _, there = places_in(*np.divmod(keys, log.n_items), log.users, log.items)
        lost = np.flatnonzero(~there)
        if lost.size:
            raise UnknownIdError(
                f"{self.source}: pairs of kind logged are not in the log in {self.where(lost)}: ids were changed, "
                "or the plan is of another log"
            )

    def labels(self, error: type[DataError], positive_from: float | None = None) -> npt.NDArray[np.int8]:
        """Take 0 and 1, yes and no, true and false; or stars by a threshold, where some number is neither 0 nor 1."""
        column, name = self.table[str(self.settled.rating)], f"{self.source}: {self.settled.rating}"
        if positive_from is not None and (is_text(column.type) or is_number(column.type)):
            stars = self._numbers(column, name, error)
            if np.isfinite(stars).all() and not np.isin(stars, (0, 1)).all():
                return (stars >= positive_from).astype(np.int8)
        if is_text(column.type):
            words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
            codes = pc.index_in(words, value_set=pa.array([*_NEGATIVE, *_POSITIVE], words.type))
            labels = pc.fill_null(codes, -1).to_numpy()
            labels = np.where(labels < 0, -1, labels >= len(_NEGATIVE))
        elif is_number(column.type):
            values = column.to_numpy()
            labels = np.where(np.isin(values, (0, 1)), values == 1, -1)
        else:
            raise error(f"{name} must be 0 or 1, yes or no, true or false; got {column.type}")
        wrong = np.flatnonzero(labels < 0)
        if wrong.size:
            raise error(
                f"{name} must be 0 or 1, yes or no, true or false; it is not in {self.where(wrong)}, where row "
                f"{self.rows[wrong[0]]} has {short(column[int(wrong[0])].as_py())}"
            )
        return labels.astype(np.int8)

    def levels(self, levels: Levels, error: type[DataError]) -> npt.NDArray[np.float64]:
        """Take values among the levels of a log; decimal commas are read too."""
        name = f"{self.source}: {self.settled.rating}"
        column = self.table[str(self.settled.rating)]
        values = self._numbers(column, name, error)
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            raise error(f"{name} must be one of the levels {in_words(levels)}; it is no number in {self.where(wrong)}")
        return values_at(level_indices(values, levels, name, error=error), levels)

    def _numbers(
        self, column: pa.ChunkedArray, name: str, error: type[DataError] = FileFormatError
    ) -> npt.NDArray[np.float64]:
        """Take numbers, spelt with a comma too; what is none becomes NaN."""
        read = column
        if is_text(column.type):
            spelt = pc.replace_substring(pc.utf8_trim_whitespace(column), ",", ".")
            read = pc.if_else(pc.match_substring_regex(spelt, NUMBER), spelt, None).cast(pa.float64())
        elif not is_number(column.type):
            raise error(f"{name} must be numbers; got {column.type}")
        return np.asarray(read.to_numpy().astype(np.float64))

    def probabilities(self) -> npt.NDArray[np.float64] | None:
        """Take the probabilities, or one over the weights; each row must have one. Decimal commas are read too."""
        role = "weight" if self.column("probability") is None else "probability"
        column, name = self.column(role), f"{self.source}: {getattr(self.settled, role)}"
        if column is None:
            return None
        values = self._numbers(column, name)
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if wrong.size:
            raise FileFormatError(
                f"{name} must be a finite number above 0; it is not in {self.where(wrong)}, where row "
                f"{self.rows[wrong[0]]} has {short(column[int(wrong[0])].as_py())}"
            )
        return 1 / values if role == "weight" else values


def _form(file: Path, ending: str) -> TextForm:
    """Look for what separates a header's fields, where it is not what the ending says, and for the encoding.

    Spreadsheets have their own.
    """
    if ending == ".parquet" or not file.is_file():
        return TextForm()
    try:
        encoding = likely_encoding(file)
        with pa.input_stream(str(file), compression="detect") as opened:
            header = opened.read(1 << 16).decode(encoding, errors="replace").partition("\n")[0]
    except (OSError, pa.ArrowInvalid):
        return TextForm()
    usual = "," if ending == ".csv" else "\t"
    best = max(",;\t", key=header.count)
    return TextForm(None if usual in header or best not in header else best, encoding=encoding)


def _answered(table: pa.Table, settled: Any, kind: str, source: str) -> tuple[_AnsweredRows, float]:
    """Return the rows of a kind that have a label, and which share of the pairs asked about they are."""
    kinds = _kinds(table, settled, source)
    if kinds is None:
        settled, asked = replace(settled, kind=None), np.ones(len(table), bool)
    else:
        asked = np.isin(kinds, (kind, BEST) if kind == "random" else (kind,))
    answered = asked & ~is_blank(table[str(settled.rating)])
    rows = np.flatnonzero(answered)
    if len(rows) == 0:
        which = "" if asked.all() else f" of kind {kind}"
        raise EmptyLogError(f"{source} has no row{which} with a {settled.rating_word}")
    columns = [str(settled.user), str(settled.item)]
    try:
        pairs = pa.table({name: table[name].cast(pa.string()) for name in columns})
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise FileFormatError(f"{source}: {names_in_words(columns)} must be text or whole numbers: {error}") from None

    def distinct(mask: npt.NDArray[np.bool_]) -> int:
        return len(pairs.filter(pa.array(mask)).drop_null().group_by(columns).aggregate([]))

    share = 1.0 if len(rows) == asked.sum() else distinct(answered) / distinct(asked)
    return _AnsweredRows(table.take(pa.array(rows)), settled, rows, len(table), source), share


def _kinds(table: pa.Table, settled: Any, source: str) -> npt.NDArray[np.str_] | None:
    """Return what each row is said to be; `None` where no column says, or one that says other things."""
    if settled.kind is None or not is_text(table[settled.kind].type):
        return None
    words = pc.fill_null(pc.utf8_lower(pc.utf8_trim_whitespace(table[settled.kind])), "")
    said = np.asarray(words.to_numpy(), dtype=str)
    known = np.isin(said, _PLANNED)
    odd = np.flatnonzero(~known & ~is_blank(table[str(settled.rating)]))
    if known.any() and odd.size:
        raise FileFormatError(
            f"{source}: {settled.kind} must be logged, random or best; it is not in "
            f"{rows_in_words(odd, len(said))}, where row {odd[0]} has {short(str(said[odd[0]]))}"
        )
    return said if known.any() else None
