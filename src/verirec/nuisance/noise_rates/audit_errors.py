"""Rates of wrong labels by group of users, of items, or of pairs, from an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array, one_of, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import in_words
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import AuditError, ParameterError, SmallAuditWarning, warn_caller
from verirec.formatting import short
from verirec.losses import AuditOrigin
from verirec.nuisance.noise_rates.error_curve import AuditErrorCurve, ErrorCurve
from verirec.nuisance.noise_rates.error_groups import GroupErrors, counted, named_groups
from verirec.nuisance.noise_rates.partial_pooling import shrink
from verirec.nuisance.noise_rates.samples import AuditSample
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, score_levels, sort_into_strata
from verirec.nuisance.propensities import as_propensities
from verirec.randomness import RandomState, as_generator

Numbers = npt.NDArray[np.int64]
WhoErrs = GroupErrors | ErrorCurve
"""Who errs, by group or along a score."""

_MOST_NUMBERS: Final = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditErrors:
    """Estimate who errs: rates of wrong labels by group, partially pooled, and whether groups differ.

    Of binary labels and of levels alike. One of `user_groups`, `item_groups` and `strata_of` says what groups are;
    without any of them all pairs are one.

    Parameters
    ----------
    user_groups, item_groups
        Group of each user or of each item, by position; numbers or names.
    strata_of
        "score": strata of a score of the pair, low to high, so that errors near the threshold show. "propensity":
        strata of how likely a pair is to be logged.
    strata
        How many, if groups are strata.
    random_state
        Of the score's folds, of ties and of the test's shuffling.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, careless=0.3, random_state=0)
    >>> rows = np.random.default_rng(0).choice(len(world.log), 800, replace=False)
    >>> users, items = world.log.users[rows], world.log.items[rows]
    >>> audit = AuditSample(users, items, world.at(users, items).true_labels)
    >>> found = AuditErrors(user_groups=world.careless_users).fit(world.log, audit=audit)
    >>> found.wrong.round(2).tolist(), found.test.p_value
    ([[0.08, 0.22], [0.25, 0.39]], 0.001)
    """

    user_groups: npt.ArrayLike | None = None
    item_groups: npt.ArrayLike | None = None
    strata_of: Literal["score", "propensity"] | None = None
    strata: int = 5
    random_state: RandomState = FOLDS_SEED

    def fit(
        self, log: FeedbackLog, *, audit: AuditSample, propensities: Any = None, scores: PredictionsLike | None = None
    ) -> GroupErrors:
        """Count the audited rows of a log by group.

        Parameters
        ----------
        log, audit
            The log, and true labels of some of its pairs.
        propensities
            For strata of the propensity; by default as in `estimate`.
        scores
            For strata of the score, by a model that was not fitted to these labels; by default user and item constants,
            cross-fitted.
        """
        checked_log(log, levels=True)
        if not isinstance(audit, AuditSample):
            raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
        random = as_generator(self.random_state)
        names, of_row, sides = self._groups(log, propensities, scores, random)
        found = counted(log, audit, of_row, len(names), int(random.integers(2**32)))
        _refuse_missing(found.by_truth, log)
        silent = [name for name, count in zip(names, found.by_truth.sum(axis=(1, 2)), strict=True) if count == 0]
        if silent:
            warn_caller(
                f"{len(silent)} of {len(names)} groups have no audited pair ({', '.join(silent[:3])}): their rates are "
                "those of all groups together",
                SmallAuditWarning,
            )
        return GroupErrors(
            log,
            names,
            as_predictions((log.users, log.items, of_row), *log.shape),
            shrink(found.by_truth),
            shrink(found.by_said),
            found.by_truth,
            found.test,
            audit,
            as_predictions((log.users[found.rows], log.items[found.rows], found.weighs), *log.shape),
            sides,
            AuditOrigin(log.fingerprint, len(found.rows) / len(log)),
        )

    def _groups(
        self, log: FeedbackLog, propensities: Any, scores: Any, random: np.random.Generator
    ) -> tuple[tuple[str, ...], Numbers, Any]:
        """Return the groups' names, the group of each row and, of users or items, that of each of these."""
        given = {name: getattr(self, name) for name in ("user_groups", "item_groups", "strata_of")}
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise ParameterError(f"give one of {', '.join(given)} at most; got {' and '.join(named)}")
        if not named:
            return ("all",), np.zeros(len(log), np.int64), {}
        if named[0] == "strata_of":
            return self._strata(log, propensities, scores, random)
        positions, size = (log.users, log.n_users) if named[0] == "user_groups" else (log.items, log.n_items)
        values = as_array(named[0], given[named[0]])
        if values.shape != (size,):
            raise ParameterError(f"{named[0]} must have {size:,} entries, one a position; got shape {values.shape}")
        _refuse_nameless(named[0], values)
        names, numbers = named_groups(values)
        if len(names) < 2:
            raise ParameterError(f"{named[0]} must name at least two groups; got {names[0]} alone")
        return names, numbers[positions], {named[0]: numbers}

    def _strata(
        self, log: FeedbackLog, propensities: Any, scores: Any, random: np.random.Generator
    ) -> tuple[tuple[str, ...], Numbers, Any]:
        what = one_of("strata_of", self.strata_of, ("score", "propensity"))
        count = whole_number("strata", self.strata, min=2, max=100)
        if what == "score":
            values = score_levels(log, scores, random)
        else:
            values = as_propensities(propensities, log).at(log.users, log.items).astype(np.float64)
        of_row = sort_into_strata(values, count, random)
        inside = (values[of_row == stratum] for stratum in range(int(of_row.max()) + 1))
        ends = [(float(own.min()), float(own.max())) for own in inside]
        # Strata of one and the same value are one.
        different = list(dict.fromkeys(ends))
        merged = np.array([different.index(one) for one in ends], np.int64)
        return tuple(f"{what} {low:.3g} to {high:.3g}" for low, high in different), merged[of_row], {}


def _refuse_nameless(name: str, values: npt.NDArray[Any]) -> None:
    """Refuse what is neither names nor numbers nor dates, all of one kind, and entries that are missing."""
    alike: tuple[tuple[type, ...], ...] = (str,), (int, float, np.number, np.bool_)
    if values.dtype.kind == "O":
        proper = any(all(isinstance(one, kind) for one in values) for kind in alike)
    else:
        proper = values.dtype.kind in "biufUM"
    if not proper:
        found = sorted({type(one).__name__ for one in values[:1_000].tolist()})
        raise ParameterError(f"{name} must be names or numbers, one for each position; got {', '.join(found)}")
    missing = int((values != values).sum())
    if missing:
        raise ParameterError(f"{name} must have a group for each position; {missing:,} of {len(values):,} have none")


def _refuse_missing(by_truth: npt.NDArray[np.float64], log: FeedbackLog) -> None:
    levels = (0.0, 1.0) if log.levels is None else log.levels
    missing = tuple(level for level, count in zip(levels, by_truth.sum(axis=(0, 2)), strict=True) if count == 0)
    if missing:
        raise AuditError(
            f"none of the audited rows has a true label of {in_words(missing)}, so that no group's rate can be told: "
            "audit more rows"
        )


def who_errs(
    log: FeedbackLog, *, audit: AuditSample, by: str, propensities: Any = None, random_state: RandomState = FOLDS_SEED
) -> WhoErrs:
    """Find out who errs, from an audit, by one word.

    Parameters
    ----------
    log, audit
        The log, and true labels of some of its pairs.
    by
        "score": an `ErrorCurve` along a score; of a log that keeps its levels, strata of it. "propensity": strata of
        how likely a pair is to be logged. Or a column of the log's features of users or of items: its levels are
        groups, or five equal parts of a column of many numbers.
    propensities
        For strata of the propensity, and for nothing else: by default as in `estimate`.
    random_state
        Of the score's folds, of ties and of the test's shuffling.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=100, n_items=150, random_state=0)
    >>> rows = np.random.default_rng(0).choice(len(world.log), 300, replace=False)
    >>> users, items = world.log.users[rows], world.log.items[rows]
    >>> audit = AuditSample(users, items, world.at(users, items).true_labels)
    >>> who_errs(world.log, audit=audit, by="propensity").names[0]
    'propensity 0.00297 to 0.0646'
    """
    if propensities is not None and by != "propensity":
        raise ParameterError(f'propensities are for by="propensity"; got by={short(by)}')
    if by == "score" and checked_log(log, levels=True).levels is None:
        return AuditErrorCurve(random_state=random_state).fit(log, audit=audit)
    if by in ("score", "propensity"):
        how = AuditErrors(strata_of=by, random_state=random_state)  # type: ignore[arg-type]
        return how.fit(log, audit=audit, propensities=propensities)
    return AuditErrors(**_groups_of_column(log, by), random_state=random_state).fit(log, audit=audit)


def _groups_of_column(log: FeedbackLog, column: object) -> dict[str, Any]:
    """Return the groups of users or of items that a column of their features makes."""
    known: list[str] = []
    for side in ("user", "item"):
        values, names = getattr(log, f"{side}_features"), getattr(log, f"{side}_feature_names") or ()
        known += dict.fromkeys(name.partition("=")[0] for name in names)
        places = [place for place, name in enumerate(names) if name.partition("=")[0] == column]
        if len(places) == 1 and "=" not in names[places[0]]:
            return {f"{side}_groups": _coarse(values[:, places[0]])}
        if places:
            levels = np.array([*(names[place].partition("=")[2] for place in places), "none"])
            own = values[:, places]
            if (own.sum(axis=1) > 1).any():
                raise ParameterError(f"column {column!r} has several levels a row: groups need one")
            return {f"{side}_groups": levels[np.where(own.any(axis=1), own.argmax(axis=1), len(places))]}
    told = f"; the log has {', '.join(known)}" if known else "; the log has no features with names"
    raise ParameterError(
        f"who errs goes by score, propensity, or a column of the features of users or items; got {short(column)}{told}"
    )


def _coarse(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Take a few numbers as they are, and five equal parts of many."""
    if len(np.unique(values)) <= _MOST_NUMBERS:
        return np.array([f"{value:g}" for value in values])
    edges = np.unique(np.quantile(values, [0, 0.2, 0.4, 0.6, 0.8, 1]))
    part = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.array([f"{edges[one]:.3g} to {edges[one + 1]:.3g}" for one in part])
