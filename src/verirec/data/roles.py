"""Which column of a table plays which part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from verirec.checks import truth_value
from verirec.exceptions import ColumnError, ParameterError
from verirec.formatting import names_in_words, short

_USUAL_NAMES: Final[dict[str, frozenset[str]]] = {
    "user": frozenset(["user", "userid", "uid", "customer", "customerid", "reviewerid"]),
    "item": frozenset(["item", "itemid", "iid", "movie", "movieid", "video", "videoid"])
    | frozenset(["song", "songid", "product", "productid", "asin"]),
    "rating": frozenset(["rating", "ratings", "label", "stars", "watchratio", "click", "clicked", "liked"]),
}

_OWN_ROLES: Final = ("timestamp", "propensity", "weight", "unbiased")
"""Columns that a log's own table has by the name of their role, beside user, item, label and rating."""


@dataclass(frozen=True)
class Roles:
    """Columns by the part they play. The first three may be left open: then the usual names are tried."""

    usual_names: ClassVar[dict[str, frozenset[str]]] = _USUAL_NAMES
    preferred: ClassVar[frozenset[str]] = frozenset()
    """Names of the third column that win over its other usual ones."""
    rating_word: ClassVar[str] = "rating"
    """What the third column is called, here and in what users write."""
    hinted: ClassVar[tuple[str, ...]] = ()
    """Roles that an error says how to name, each time all of them; none for those that are unclear."""
    takes_delimiter: ClassVar[bool] = True
    """Whether whoever reads such a file can say what its fields are separated by, and to leave out broken lines."""
    optional_names: ClassVar[dict[str, frozenset[str]]] = {}
    """Usual names of columns that may be there, by role: taken where exactly one has such a name."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    propensity: str | None = None
    weight: str | None = None
    unbiased: str | None = None

    def settle(self, columns: list[str], likely: Mapping[str, str | None] | None = None) -> Roles:
        """Settle every part on a column that exists, or say which ones there are.

        Parameters
        ----------
        columns
            Names of what there is.
        likely
            Names of roles left open that win over the usual ones, where there is such a column.

        Examples
        --------
        >>> settled = Roles(rating="liked").settle(["userId", "movieId", "liked"])
        >>> settled.user, settled.item, settled.rating
        ('userId', 'movieId', 'liked')
        """
        unnamed = [column for column in columns if not isinstance(column, str)]
        if unnamed:
            raise ColumnError(f"columns must be named by strings; got {unnamed[0]!r}: rename the frame's columns")
        named = {role: name for role, name in vars(self).items() if name is not None}
        self._check(named, columns)
        if not named and type(self) is Roles and _is_ours(columns):
            return Roles("user", "item", "label", **{role: role for role in _OWN_ROLES if role in columns})
        named |= self._guessed([role for role in self.usual_names if role not in named], columns, likely or {})
        for role, usual in self.optional_names.items():
            found = [column for column in columns if _plain(column) in usual and column not in named.values()]
            if role not in named and len(found) == 1:
                named[role] = found[0]
        for role, name in named.items():
            others = [other for other, its_name in named.items() if its_name == name and other != role]
            if others:
                raise ColumnError(
                    f"column {name!r} cannot be both the {self.word(role)} and the {self.word(others[0])}"
                )
        return type(self)(**named)

    def _check(self, named: Mapping[str, Any], columns: list[str]) -> None:
        """Refuse names that are no strings, or of no column."""
        self.refuse_odd_names()
        for role, name in named.items():
            if name not in columns:
                raise ColumnError(f"no column {short(name)} (for {self.word(role)}); {self._what_there_is(columns)}")

    def refuse_odd_names(self) -> None:
        """Refuse names that are no strings."""
        for role, name in vars(self).items():
            if name is not None and not isinstance(name, str):
                raise ColumnError(f"the {self.word(role)} column must be named by a string; got {short(name)}")

    def word(self, role: str) -> str:
        """Return what users call a role."""
        return self.rating_word if role == "rating" else role

    def _guessed(self, roles: list[str], columns: list[str], likely: Mapping[str, str | None]) -> dict[str, str]:
        """Find a column for each of some roles, or say of all that cannot be told."""
        candidates = {
            role: [wanted] if (wanted := likely.get(role)) in columns else self._candidates(role, columns)
            for role in roles
        }
        unclear = {self.word(role): found for role, found in candidates.items() if len(found) != 1}
        if not unclear:
            return {role: str(found[0]) for role, found in candidates.items()}
        reasons = (
            f"the {word} ({'several could be it: ' + ', '.join(map(str, found)) if found else 'none has a usual name'})"
            for word, found in unclear.items()
        )
        hints = ", ".join(f"{word}=..." for word in (map(self.word, self.hinted) if self.hinted else unclear))
        if type(self) is Roles and unclear.get("rating") == []:
            hints += " (clicks=True if each row is a click, without one)"
        which = "it" if len(self.hinted or unclear) == 1 else "them"
        raise ColumnError(
            f"cannot tell which column is {', '.join(reasons)}; name {which}: {hints}; {self._what_there_is(columns)}"
        )

    def _candidates(self, role: str, columns: list[str]) -> list[str]:
        """Return the columns that could play a part by their names."""
        sure = [column for column in columns if _plain(column) in self.preferred] if role == "rating" else []
        return sure if len(sure) == 1 else [one for one in columns if _plain(one) in self.usual_names[role]]

    def _what_there_is(self, columns: list[str]) -> str:
        if len(columns) == 1:
            otherwise = "give delimiter=..." if self.takes_delimiter else "write it with commas (.csv) or tabs (.tsv)"
            return f"the only column is {short(columns[0])}: if a file's fields are separated otherwise, {otherwise}"
        return f"the columns are: {names_in_words(columns) or 'none'}"

    def names(self) -> list[str]:
        """Return the columns that are needed, each once."""
        return list(dict.fromkeys(name for name in vars(self).values() if name is not None))


@dataclass(frozen=True)
class ClickRoles(Roles):
    """Columns of a file of clicks, each row of which is one: no column says what was thought of it."""

    usual_names: ClassVar = {role: _USUAL_NAMES[role] for role in ("user", "item")}


def log_roles(options: Mapping[str, Any]) -> Roles:
    """Return the roles of a log's columns by the options that it is read with; of clicks there is no rating.

    Examples
    --------
    >>> log_roles({"clicks": True, "timestamp": "when"}).settle(["user", "item", "when"]).names()
    ['user', 'item', 'when']
    """
    clicks = truth_value("clicks", options.get("clicks", False))
    for name in ("rating", "positive_from", "levels", "scale"):
        if clicks and options.get(name) is not None:
            raise ParameterError(f"clicks are rows without a rating: give clicks or {name}, not both")
    kind = ClickRoles if clicks else Roles
    return kind(**{role.name: options.get(role.name) for role in fields(Roles)})


def log_duplicates(options: Mapping[str, Any]) -> Any:
    """Return what to do with repeated pairs: of clicks, where nobody says, the first one counts."""
    asked = options.get("duplicates", "error")
    return "first" if options.get("clicks") and isinstance(asked, str) and asked == "error" else asked


@dataclass(frozen=True)
class PairRoles(Roles):
    """Columns of a file of which the pairs alone count."""

    usual_names: ClassVar = {role: _USUAL_NAMES[role] for role in ("user", "item")}


@dataclass(frozen=True)
class ScoreRoles(Roles):
    """Columns of predictions: scores of pairs or, where there is a rank and no score is named, top-k lists."""

    usual_names = _USUAL_NAMES | {
        "rating": frozenset(
            ["score", "scores", "prediction", "predictions", "predicted", "probability", "rating", "rank"]
        )
    }
    preferred = frozenset(["rank"])
    rating_word = "score"
    takes_delimiter = False

    @property
    def says_ranks(self) -> bool:
        """Whether the third column is a rank, lower the better."""
        return self.rating is not None and _plain(self.rating) in self.preferred


@dataclass(frozen=True)
class TruthRoles(Roles):
    """Columns of a file of pairs with true labels: an audit's, a survey's, or both in one plan.

    It may say what each pair is (`kind`: logged or random), how likely it was to be asked about (`probability`, or
    `weight`, one over it), which pairs were drawn together (`cluster`), and who answered (`person`).
    """

    usual_names = _USUAL_NAMES | {"rating": frozenset(["truelabel", "truth", "true", "label", "rating", "answer"])}
    preferred = frozenset(["truelabel", "truth"])
    rating_word = "true_label"
    hinted = ("user", "item", "rating")
    takes_delimiter = False
    optional_names: ClassVar = {
        "kind": frozenset(["kind"]),
        "probability": frozenset(["probability", "probabilities", "inclusionprobability"]),
        "weight": frozenset(["weight", "weights"]),
        "cluster": frozenset(["cluster", "clusters", "clusterid"]),
        "person": frozenset(
            f"{who}{what}"
            for who in ("person", "annotator", "rater", "respondent", "worker", "labeler", "labeller", "answeredby")
            for what in ("", "id", "name")
        ),
    }

    kind: str | None = None
    probability: str | None = None
    cluster: str | None = None
    person: str | None = None


@dataclass(frozen=True)
class ReaskRoles(TruthRoles):
    """Columns of a file of second answers, each by whoever gave the first; a plan that was filled in has them too."""

    usual_names = _USUAL_NAMES | {
        "rating": frozenset(["answer", "secondanswer", "secondlabel", "truelabel", "label", "rating"])
    }
    preferred = frozenset(["answer", "secondanswer", "secondlabel"])
    rating_word = "answer"


def is_usual(role: str, column: str) -> bool:
    """Tell whether a column has a usual name of a log's user, item or rating.

    Examples
    --------
    >>> is_usual("item", "movieId"), is_usual("item", "sku")
    (True, False)
    """
    return _plain(column) in _USUAL_NAMES[role]


def _is_ours(columns: list[str]) -> bool:
    """Tell whether a table is one that a log made of itself: it has both labels and what they were made of."""
    return columns[:3] == ["user", "item", "label"] and {*columns[3:]} <= {"rating", *_OWN_ROLES}


def _plain(column: str) -> str:
    return "".join(filter(str.isalnum, column)).lower()
