"""A survey's pairs as estimators use them: what each stands for, and whether they can be random pairs of the target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions, checked_positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.levels import check_scale
from verirec.data.pair_keys import places_in
from verirec.data.parts import counts, totals
from verirec.data.splits import split_unbiased
from verirec.estimation.inputs import KnownNoise
from verirec.estimation.survey.support import refuse_part
from verirec.estimation.survey.target import Target
from verirec.exceptions import NoiseRateError, NoiseRateWarning, SurveyError, SurveyWarning, warn_caller
from verirec.losses import Corrected, corrected
from verirec.nuisance.noise_rates import AuditedRows
from verirec.nuisance.surveys import BEYOND_CHANCE, SurveySample

Array = npt.NDArray[np.float64]

_MUCH_MORE: Final = 2.0


@dataclass(frozen=True, eq=False)
class Draws:
    """Surveyed pairs of a target.

    Parameters
    ----------
    users, items
        Positions, shape (n,).
    labels
        True labels or, of noisy answers, corrected ones.
    shares
        The part of the target that each stands for, adding up to 1.
    clusters
        Which were drawn together, from 0, shape (n,).
    logged
        Which of the pairs people logged of their own accord, shape (n,).
    facts
        What to report of them.
    strata
        Parts of the target that were drawn from apart, from 0, shape (n,); `None` for one.
    survey_groups
        How many groups are the survey's: the first ones, audited rows come after them; `None` for all.
    """

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    labels: Corrected
    shares: Array
    clusters: npt.NDArray[np.int64]
    logged: npt.NDArray[np.bool_]
    facts: dict[str, Any] = field(default_factory=dict)
    strata: npt.NDArray[np.int64] | None = None
    survey_groups: int | None = None

    def __len__(self) -> int:
        return len(self.users)

    @property
    def effective(self) -> float:
        """How many equally likely pairs they are worth (Kish)."""
        return 1 / float(self.shares @ self.shares)

    @property
    def groups(self) -> int:
        """How many were drawn apart from each other."""
        return int(self.clusters.max()) + 1

    @property
    def _surveyed(self) -> int:
        return self.groups if self.survey_groups is None else self.survey_groups

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the survey's variance, G - 2.

        Audited rows add none, however many: it is the survey's few groups that leave the variance of all other pairs
        uncertain. Satterthwaite's number would rest on that very variance, and be large where it is small by chance.
        """
        return max(self._surveyed - 2, 1)

    def factor(self, fitted: int = 0) -> float:
        """Return G/(G - 1 - m): by how much squares of the survey's groups fall short, m numbers fitted to them."""
        return self._surveyed / max(self._surveyed - 1 - fitted, 1)

    def variance(self, sums: Array, fitted: int = 0) -> float:
        """Return the variance of a total from its sums over groups, audited rows by their own number."""
        own, audited = np.split(sums, [self._surveyed])
        logged = int(self.logged.sum())
        return float(own @ own) * self.factor(fitted) + float(audited @ audited) * logged / max(logged - 1, 1)

    def deviations(self, values: Array, centre: float | None = None) -> Array:
        """Add up shares times values less their stratum's mean over draws made together, shape (groups,).

        With a `centre` all strata's means are moved by what it is apart from the mean of all.
        """
        mean = float(self.shares @ values)
        middle: Array | float = mean
        if self.strata is not None:
            within = totals(self.strata, self.shares * values, 2) / totals(self.strata, self.shares, 2)
            middle = within[self.strata]
        moved = middle + (0.0 if centre is None else centre - mean)
        return totals(self.clusters, self.shares * (values - moved), self.groups)

    def effective_class(self, label: int) -> float:
        """Return how many equally likely pairs those of one label are worth, by the answers as they were given."""
        shares = self.shares[(self.labels.values > 0.5) == (label == 1)]
        return float(shares.sum()) ** 2 / float(shares @ shares) if len(shares) else 0.0

    def rates_variance(self, slopes: Array) -> float:
        """Return what uncertain noise rates add, where they corrected the labels, to a mean with these slopes."""
        labels = self.labels
        if labels.covariance is None or len(labels.slopes) == 0:
            return 0.0
        gradient = labels.rate_gradient(slice(None), self.shares * slopes)
        return float(gradient @ labels.covariance @ gradient)

    def select(self, rows: npt.NDArray[np.bool_], shares: Array) -> Draws:
        """Return some of the draws, with shares that add up to 1."""
        return Draws(
            self.users[rows],
            self.items[rows],
            self.labels.select(rows),
            shares,
            np.unique(self.clusters[rows], return_inverse=True)[1],
            self.logged[rows],
            self.facts | {"used": int(rows.sum())},
        )


def target_of(survey: SurveySample, log: FeedbackLog, exclude: Any) -> Target:
    """Return the pairs that a survey speaks for.

    Where nobody says which users could have been asked, and the pairs are of far fewer users than random ones would
    be, these users are the frame.
    """
    check_survey(survey, log)
    frame = survey.frame
    if frame is not None:
        checked_positions("the survey's frame", frame, log.n_users)
    elif survey.clusters is None and survey.probabilities is None and _few(survey.users, log.n_users):
        frame = np.unique(survey.users)
        warn_caller(
            f"the survey's {len(survey):,} pairs are of {len(frame):,} users, far fewer than random pairs would be of: "
            "the answer speaks for these users; if they were drawn at random from all, say clusters=users",
            SurveyWarning,
        )
    return Target.of(log.shape, frame, exclude)


def check_survey(survey: Any, log: FeedbackLog, name: str = "survey") -> None:
    """Refuse what is no survey, and one whose pairs are not of the log's grid."""
    if not isinstance(survey, SurveySample):
        raise SurveyError(f"{name} must be a SurveySample; got {type(survey).__name__}")
    for side, size in (("users", log.n_users), ("items", log.n_items)):
        checked_positions(f"the {name}'s {side}", getattr(survey, side), size)
    check_scale(f"the {name}", survey.levels, log.levels, error=SurveyError)


def _few(positions: Positions, size: int) -> bool:
    """Tell whether more draws share a user, or an item, than chance explains."""
    counts = np.bincount(positions).astype(float)
    together = float((counts * (counts - 1)).sum()) / 2
    expected = len(positions) * (len(positions) - 1) / 2 / size
    return bool(together > _MUCH_MORE * expected + BEYOND_CHANCE * np.sqrt(expected + 1))


def self_selected(log: FeedbackLog) -> FeedbackLog:
    """Return the rows that people chose themselves: all, unless the log says which were shown at random."""
    return log if log.unbiased is None else split_unbiased(log).self_selected


def draws_of(
    survey: SurveySample, target: Target, log: FeedbackLog, rates: KnownNoise | None, *, of_all: bool = True
) -> Draws:
    """Put a survey's pairs together with what they stand for, and warn where they cannot be random.

    Parameters
    ----------
    survey, target, log
        Of one grid; pairs outside the target are left out.
    rates
        Of noise, where the survey's own labels have it.
    of_all
        Whether every pair of the target could have been drawn: then the pairs are held against the log.
    """
    if of_all and survey.best:
        raise SurveyError(
            "this survey is of pairs among their users' best, as a plan for a ranking draws them: it tells how well "
            "these are ranked (estimate_ranking, --ranking-only), and no loss"
        )
    if survey.noisy and rates is None:
        raise NoiseRateError("the survey's labels are noisy: give noise_rates, or an audit, to correct them")
    inside = target.holds(survey.users, survey.items)
    if not inside.any():
        raise SurveyError(
            f"all {len(survey):,} surveyed pairs are among those that are left out: none is of the pairs to speak of"
        )
    kept = survey if inside.all() else survey.select(inside)
    own = self_selected(log)
    weights = np.ones(len(kept)) if kept.probabilities is None else kept.probabilities.max() / kept.probabilities
    clusters = _clusters_of(kept, log.n_items) if of_all else own_clusters(kept)
    n_levels, noise = None if log.levels is None else len(log.levels), rates if kept.noisy else None
    labels = corrected(kept.labels, n_levels, noise, kept.users, kept.items, log=log.fingerprint)
    _, logged = places_in(kept.users, kept.items, own.users, own.items)
    facts: dict[str, Any] = {
        "surveyed": len(kept),
        "left_out": len(survey) - len(kept),
        **_counts(kept),
        "target_users": len(target.users),
        "target_pairs": len(target),
        "noisy": bool(survey.noisy),
    }
    found = Draws(kept.users, kept.items, labels, weights / weights.sum(), clusters, logged, facts)
    facts |= {"effective_sample_size": found.effective, "clusters": found.groups}
    if found.groups < 3:
        raise SurveyError(f"a survey needs draws of at least 3 clusters to tell its own error; it has {found.groups}")
    if kept.lacking:
        warn_caller(kept.lacking, SurveyWarning)
    if kept.noisy and getattr(rates, "audit", None) is not None:
        warn_caller(
            "the survey's answers are as noisy as the log's, and are corrected by the audit's noise rates: what rests "
            "on them holds if people err alike on all pairs; audited-dr does not need that",
            NoiseRateWarning,
        )
    if of_all:
        refuse_part(kept, clusters, len(target))
        # Rows that were shown at random are the log's own, and no pair is in a log twice.
        if not kept.shown and (
            len(own) == len(log) or not places_in(kept.users, kept.items, log.users, log.items)[1].all()
        ):
            _refuse_logged(found, target, own)
        _warn_of_activity(found, target, own)
    return found


def _counts(survey: SurveySample) -> dict[str, Any]:
    """Count the draws of each label."""
    counts = np.bincount(survey.labels, minlength=2 if survey.levels is None else len(survey.levels)).tolist()
    return {"liked": counts[1], "disliked": counts[0]} if survey.levels is None else {"of_levels": counts}


def own_clusters(survey: SurveySample) -> npt.NDArray[np.int64]:
    """Number the clusters as given; each pair is its own where none are."""
    given = np.arange(len(survey)) if survey.clusters is None else survey.clusters
    return np.unique(given, return_inverse=True)[1]


def _clusters_of(survey: SurveySample, n_items: int) -> npt.NDArray[np.int64]:
    """Number the clusters; the items, where pairs are of far fewer than random ones would be."""
    if survey.clusters is None and survey.probabilities is None and _few(survey.items, n_items):
        items, clusters = np.unique(survey.items, return_inverse=True)
        warn_caller(
            f"the survey's {len(survey):,} pairs are of {len(items):,} items, far fewer than random pairs would be of: "
            "the items are taken for drawn at random, and are its clusters; if they were not, the answer speaks for "
            "such items only",
            SurveyWarning,
        )
        return clusters
    return own_clusters(survey)


def with_audit(draws: Draws, audited: AuditedRows, target: Target, log: FeedbackLog) -> Draws:
    """Put an audit's true labels of logged pairs beside a survey's of random ones: logged pairs are then known better.

    The target is parted into pairs that people logged of their own accord and others, each with its known size. The
    others are the survey's; of the logged ones, audit and survey stand for parts in proportion to how many pairs each
    has of them. Audited rows that were shown at random are left out; so is an audit of one row, which tells no error.
    """
    own = self_selected(log)
    inside = target.holds(log.users[audited.rows], log.items[audited.rows])
    if log.unbiased is not None:
        inside &= ~log.unbiased[audited.rows]
    count = int(inside.sum())
    if count < 2 or draws.logged.all():
        return draws
    rows, chances = audited.rows[inside], audited.probabilities[inside]
    share = float(target.holds(own.users, own.items).sum()) / len(target)
    both = int(draws.logged.sum()) + count
    shares = np.empty(len(draws))
    for which, part in ((draws.logged, share * (both - count) / both), (~draws.logged, 1 - share)):
        if which.any():
            shares[which] = part * draws.shares[which] / draws.shares[which].sum()
    of_audit = share * count / both * (1 / chances) / (1 / chances).sum()
    logged = np.concatenate([draws.logged, np.ones(count, bool)])
    return Draws(
        np.concatenate([draws.users, log.users[rows]]),
        np.concatenate([draws.items, log.items[rows]]),
        draws.labels.extended(audited.true_labels[inside]),
        np.concatenate([shares, of_audit]),
        np.concatenate([draws.clusters, draws.groups + np.arange(count)]),
        logged,
        draws.facts | {"audited": count},
        logged.astype(np.int64),
        draws.groups,
    )


def _refuse_logged(draws: Draws, target: Target, log: FeedbackLog) -> None:
    """Raise where all pairs are logged ones, and warn where more are than chance explains."""
    share = float(target.holds(log.users, log.items).sum()) / len(target)
    found = float(draws.shares @ draws.logged)
    if draws.logged.all() and share < 0.5:
        raise SurveyError(
            f"all {len(draws):,} surveyed pairs are logged ones, {share:.1%} of all: people chose them, so they are "
            "not random; give them as audit=..."
        )
    chance = np.sqrt(max(share * (1 - share), 1e-12) / draws.effective)
    if abs(found - share) > BEYOND_CHANCE * chance + 1 / draws.effective:
        warn_caller(
            f"{found:.1%} of the surveyed pairs are in the log where {share:.1%} of random pairs would be: the survey "
            "may not be one of random pairs, and the answer is right for pairs like these only",
            SurveyWarning,
        )


def _warn_of_activity(draws: Draws, target: Target, log: FeedbackLog) -> None:
    """Warn where the users who were asked log more, or less, than those that the answer speaks for."""
    activity = np.log1p(counts(log.users, log.n_users))
    within = activity[target.users]
    if target.frame is not None and len(target.frame) < log.n_users:
        others = np.setdiff1d(np.arange(log.n_users), target.frame)
        spread = np.sqrt(within.var() / len(within) + activity[others].var() / len(others))
        _warn_if_apart(within.mean() - activity[others].mean(), spread, "the survey's users", "other users")
    by_draw = activity[draws.users] - within.mean()
    error = np.sqrt((totals(draws.clusters, draws.shares * by_draw, draws.groups) ** 2).sum())
    error = max(error, within.std() / np.sqrt(draws.groups))
    _warn_if_apart(float(draws.shares @ by_draw), error, "the users of the surveyed pairs", "those the answer is for")


def _warn_if_apart(difference: float, error: float, some: str, others: str) -> None:
    if abs(difference) > BEYOND_CHANCE * error + 1e-9:
        more = "more" if difference > 0 else "less"
        warn_caller(
            f"{some} log {more} than {others}, by a factor of {np.exp(difference):.2f} and beyond chance: what holds "
            "for them may not hold for others",
            SurveyWarning,
        )
