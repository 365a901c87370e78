"""What there is to warn of: where intervals may not hold, though the estimates are what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.pair_keys import pairs_of
from verirec.data.parts import SHORT, counts, mean_of, over_parts, totals
from verirec.data.predictions import LinkedFactors
from verirec.estimation.catalogue import Estimator
from verirec.estimation.cell_losses import coin_losses, worse_than_a_coin
from verirec.estimation.inputs import FEW, AnyNoise, warn_of_little_signal, warn_of_unweighted_audit
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.level_losses import LevelLosses
from verirec.estimation.overlap import warn_of_reach
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs, Rows
from verirec.exceptions import (
    AlikeUsersWarning,
    MisfitWarning,
    NoiseRateWarning,
    OverlapWarning,
    ScoreWarning,
    warn_caller,
)
from verirec.losses import AnyRegion
from verirec.scratch import each

Array = npt.NDArray[np.float64]

_MASS_OFF: Final = 0.1
_BEYOND_CHANCE: Final = 4.0
"""How far the weights may be from adding up to all pairs: a tenth, or so many standard errors."""
_MUCH: Final = 0.5
_MUCH_CLIPPED: Final = 0.1
_FAR: Final = 1.5
_SIZES: Final[Mapping[str, Callable[[float], float]]] = {"squared": lambda f: f * f, "absolute": lambda f: f}
_COPIES: Final = 1.2
"""How often rows may be there, on average, under the names of users who are nearly the same: 95% intervals that take
them for independent cover 93% at this."""
_RARE: Final = 0.1
"""The share of a class from which on few of its rows make an estimate skewed."""
_FEW_OF_A_SIDE, _FEW_SIDES = 10, 10
_FITS: Final = 3.0
"""Rows that a user or an item must have to be held against its propensities, how many such there must be, and how many
times as much as by chance their weights may vary."""


def warn_of_log(
    problem: EstimationProblem,
    estimators: list[Estimator],
    noise: AnyNoise,
    *,
    alike_together: bool = False,
    groups_given: bool = False,
) -> None:
    """Say so where a log, its propensities or its noise rates leave intervals in doubt, whoever is judged.

    Parameters
    ----------
    problem, estimators, noise
        As in `judge`.
    alike_together, groups_given
        Whether a bootstrap draws users who are nearly the same together, as far as they are found, or groups given.
    """
    pairs, corrected = problem.pairs, any(one.noise_corrected and not one.audited for one in estimators)
    if any(estimator.uses_propensities for estimator in estimators):
        _warn_of_two_policies(pairs)
        _warn_of_weights(problem, noise if any(one.noise_corrected for one in estimators) else None)
        if not groups_given:  # Users who go together miss or make up their pairs together too.
            _warn_of_misfit(problem)
    if not groups_given and pairs.copies > _COPIES:
        _warn_of_alike(pairs.copies, together=alike_together)
    _warn_of_rare_class(pairs)
    if pairs.learnt and len(pairs.log) == pairs.n_cells and not all(one.noise_corrected for one in estimators):
        warn_caller(
            "every pair is logged: if the labels are true nothing is left to estimate, and intervals of estimates "
            "without noise rates have no width",
            NoiseRateWarning,
        )
    if not isinstance(noise, AnyRegion):
        warn_of_unweighted_audit(problem.propensities, noise)
        if corrected:
            warn_of_little_signal(noise)


def _warn_of_two_policies(pairs: LoggedPairs) -> None:
    """Say so where rows shown at random and others are weighted together, each by the propensity of its own traffic."""
    log = pairs.log
    if log.unbiased is None or log.propensities is None or pairs.learnt or log.unbiased.all() or not log.unbiased.any():
        return
    warn_caller(
        f"{int(log.unbiased.sum()):,} rows that were shown at random and {int((~log.unbiased).sum()):,} others are "
        "weighted together: that is right only if each propensity is that of being shown by either, "
        "1 - (1 - p)(1 - q), and not by its own policy; else take the former as a survey, "
        "SurveySample.from_unbiased(log), and the others, split_unbiased(log).self_selected, by their propensities",
        MisfitWarning,
    )


def _warn_of_alike(copies: float, *, together: bool) -> None:
    """Say that users are nearly the same: what that does to intervals, or what a bootstrap makes of it."""
    found = f"users who rated nearly the same items are in this log: each row is there {copies:.1f} times on average."
    if together:
        told = "They are drawn together as far as they are found; if you know who they are, give user_groups=..."
    else:
        told = (
            f"Intervals take users for independent and are about {np.sqrt(copies):.1f} times too short; take "
            "interval='bootstrap', which draws such users together, or count them once"
        )
    warn_caller(f"{found} {told}", AlikeUsersWarning)


def warn_of_recommender(problem: EstimationProblem) -> None:
    """Say so where predictions are not what is judged, or know more of the log than they can."""
    _warn_of_clipping(problem)
    _warn_of_scores(problem)
    rows = problem.rows(None)
    if known_by_heart(rows):
        warn_caller(
            f"these predictions tell the {len(rows.log):,} logged labels apart without an error: rows that a "
            "recommender was trained on cannot judge it, take others",
            ScoreWarning,
        )


def warn_of_results(results: Mapping[str, Estimate | EstimateRange], least: float) -> None:
    """Say so where estimates are impossible, or mostly made of pairs that are hardly ever logged."""
    for name, one in results.items():
        if not isinstance(one, Estimate):
            continue
        if one.interval[1] < least:
            warn_caller(
                f"{name} is estimated at {one.value:.3g}, below {least:g}, the least that this loss can be: the noise "
                "rates or the propensities do not fit this log, or the recommender was trained on it",
                MisfitWarning,
            )
        if abs(one.diagnostics.get("extrapolated", 0.0)) > _MUCH * abs(one.value):
            warn_caller(
                f"{name} is {one.value:.3g}, of which {one.diagnostics['extrapolated']:.3g} is extrapolated by 1/p to "
                "pairs that are hardly ever logged; its interval may not hold",
                OverlapWarning,
            )


def known_by_heart(rows: Rows) -> bool:
    """Tell whether predictions part the logged labels without an error: every like above every dislike."""
    if rows.log.levels is not None:
        return _best_everywhere(rows)
    labels, differences = rows.log.labels, rows.difference
    if not FEW <= int(labels.sum()) <= len(labels) - FEW:
        return False

    def ends(at: slice) -> tuple[float, float]:
        liked = labels[at] == 1
        return differences[at][liked].max(initial=-np.inf), differences[at][~liked].min(initial=np.inf)

    highest, lowest = zip(*over_parts(ends, len(labels), size=SHORT), strict=True)
    return bool(max(highest) < min(lowest))


def _best_everywhere(rows: Rows) -> bool:
    """Tell whether no other level than the logged one would have a smaller loss, in any row; rows are of two levels."""
    labels = rows.log.labels
    if np.sort(counts(labels, int(labels.max()) + 1))[-2:].min() < FEW:
        return False

    def best(at: slice) -> bool:
        losses = np.cumsum(np.concatenate([rows.if_negative[None, at], rows.difference[:, at]]), axis=0)
        return bool((losses.argmin(axis=0) == labels[at]).all())

    return all(over_parts(best, len(labels), size=SHORT))


def _warn_of_rare_class(pairs: LoggedPairs) -> None:
    """Say so where an estimate rests on a few rows of a class that is rare: it is skewed, and its interval is not."""
    if pairs.log.levels is not None:
        return  # A rare level need not be one that losses are large at.
    for label, kind in ((1, "positive"), (0, "negative")):
        count, total, squares = _of_class(pairs, label)
        effective, share = total**2 / squares, total / pairs.weight_sums.total
        if share < _RARE and effective < FEW <= pairs.weight_sums.worth:
            warn_caller(
                f"{count:,} of {len(pairs.log):,} rows are {kind}, worth {effective:.0f} equally weighted ones: "
                "so few carry the estimates that intervals are too short",
                OverlapWarning,
            )


def _of_class(pairs: LoggedPairs, label: int) -> tuple[int, float, float]:
    """Return the number of rows of a class, their weights' sum and that of the weights' squares."""
    labels, weights = pairs.log.labels, pairs.weights

    def of(at: slice) -> tuple[int, float, float]:
        own = weights[at][labels[at] == label]
        return len(own), float(own.sum()), float(own @ own)

    counts, sums, squares = zip(*over_parts(of, len(labels), size=SHORT), strict=True)
    return sum(counts), sum(sums), sum(squares)


def _warn_of_clipping(problem: EstimationProblem) -> None:
    """Say so where the clip makes other predictions of many."""
    clipped = problem.facts.get("clipped", 0)
    if clipped > _MUCH_CLIPPED * len(problem.log):
        warn_caller(
            f"clip={problem.losses.clip:g} changed the predictions of {clipped:,} of {len(problem.log):,} logged "
            "pairs: what is judged are the changed ones",
            ScoreWarning,
        )


def _warn_of_scores(problem: EstimationProblem) -> None:
    """Say so where factors do worse on the logged pairs than a coin, or are taken for logits unsaid; or stars stand."""
    given = problem.losses.predictions
    if isinstance(problem.losses, LevelLosses):
        problem.losses.warn_of_scale(problem.log)
        return
    _warn_of_stars(problem)
    if not isinstance(given, LinkedFactors) or given.link != "logistic":
        return
    rows, loss = problem.rows(None), problem.losses.loss
    coins = coin_losses(loss, rows.log)
    if worse_than_a_coin(rows.errors, coins):
        warn_caller(
            f"the {loss.name} loss of these factors is {mean_of(rows.errors):.3g} on the logged pairs, above a coin's "
            f"{mean_of(coins):.3g}: are they scores that are no logits? calibrate makes probabilities of them",
            ScoreWarning,
        )
    elif given.link_is_assumed:
        warn_caller(
            "these factors name no link and are taken for logits, which those of ALS or BPR are not: calibrate "
            "(calibrate='platt') makes probabilities of scores; link='logistic' says that they are logits",
            ScoreWarning,
        )


def _warn_of_stars(problem: EstimationProblem) -> None:
    """Say so where most predictions are far outside of 0 and 1, and a loss compares them with 0/1 labels."""
    name, rows = problem.losses.loss.name, problem.rows(None)
    if name not in _SIZES:
        return
    # l(f, 0) of these losses is a power of |f|.
    far = rows.if_negative > _SIZES[name](_FAR)
    if far.mean() > _MUCH:
        warn_caller(
            f"the predictions of {int(far.sum()):,} of {len(far):,} logged pairs are beyond {_FAR:g}, and the {name} "
            "loss compares them with labels of 0 and 1: if they are stars, read the log with levels=[1, 2, 3, 4, 5] in "
            "place of positive_from; calibrate makes probabilities of scores",
            ScoreWarning,
        )


def _warn_of_weights(problem: EstimationProblem, noise: AnyNoise) -> None:
    """Say so where a few rows carry the weighted estimates, or where the weights do not stand for the grid."""
    effective, mass, pairs = problem.facts["effective_sample_size"], problem.facts["mass"], problem.pairs
    if effective < FEW:
        warn_caller(
            f"the weighted rows are worth {effective:.0f} equally weighted ones: intervals are not to be trusted",
            OverlapWarning,
        )
    else:
        warn_of_reach(pairs, noise)
    if _mass_is_off(problem):
        warn_caller(
            f"the rows' weights add up to {mass:.2f} of all pairs where 1 is right: the propensities do not fit this "
            f"log, or {_why(mass)}; ips is biased by that factor",
            MisfitWarning,
        )


def _why(mass: float) -> str:
    return (
        "some users and items are never logged"
        if mass < 1
        else "each row has that of its own policy, where several could have shown it"
    )


def _mass_is_off(problem: EstimationProblem) -> bool:
    """Tell whether the weights add up to more or less than all pairs."""
    pairs = problem.pairs
    if pairs.by_level is not None:
        return False  # The weights of single rows are those of levels that may be wrong.
    chance = pairs.chance / pairs.n_cells
    return bool(abs(problem.facts["mass"] - 1) > max(_MASS_OFF, _BEYOND_CHANCE * chance))


def _warn_of_misfit(problem: EstimationProblem) -> None:
    """Say so where propensities that were given do not fit single users or items, though all in all they do."""
    pairs = problem.pairs
    if pairs.by_level is not None or pairs.learnt or pairs.copies > _COPIES or _mass_is_off(problem):
        return
    misfit = varies_too_much(pairs)
    if misfit > _FITS:
        warn_caller(
            f"the weights of single users and items are {np.sqrt(misfit):.1f} times as far from adding up to all of "
            "their pairs as they would be by chance: the propensities do not fit this log",
            MisfitWarning,
        )


def varies_too_much(pairs: LoggedPairs) -> float:
    r"""Return how much more than by chance the weights of users, or of items, differ from their numbers of pairs.

    With M pairs of a user, :math:`z = (\sum w - M) / [\sum (1 - p) w^2]^{1/2}` over the user's rows; the mean of
    :math:`z^2` over users with enough rows, or over items, whichever is larger. 1 is right.
    """
    log, left_out, most = pairs.log, pairs_of(pairs.left_out, pairs.log.n_items), 0.0
    for own, taken, size, others in (
        (log.users, left_out[0], log.n_users, log.n_items),
        (log.items, left_out[1], log.n_items, log.n_users),
    ):
        judged = counts(own, size) >= _FEW_OF_A_SIDE
        if judged.sum() >= _FEW_SIDES:
            off = totals(own, pairs.weights, size) - (others - counts(taken, size))
            spread = totals(own, each(lambda p, weights: (1 - p) * weights**2, pairs.p, pairs.weights), size)
            most = max(most, float((off[judged] ** 2 / np.maximum(spread[judged], 1e-12)).mean()))
    return most
