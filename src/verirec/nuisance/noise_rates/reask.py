"""Noise rates from second answers: the same people, asked about pairs of the log again; no true label is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtri

from verirec.checks import whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import LabelError, NoiseRateWarning, ParameterError, ReaskError, SmallAuditWarning, warn_caller
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates.asked import A_REASK, find_rows
from verirec.nuisance.noise_rates.audit import ROUGH
from verirec.nuisance.noise_rates.direct import chance_of_audit, weights_within
from verirec.nuisance.noise_rates.joint import AuditCounts, Covariance, truly_positive
from verirec.nuisance.noise_rates.repeated import RepeatedRates, repeated_rates
from verirec.nuisance.noise_rates.second_answers import ReaskSample
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, Strata, score_rows, sort_into_strata, table_of
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.randomness import RandomState, as_generator
from verirec.scratch import each

Array = npt.NDArray[np.float64]

FEWEST: Final = 50
"""Pairs that it takes: below, intervals were not measured to hold."""
OPEN: Final = 0.4
"""Rates whose 95% intervals reach further than this to either side are refused: they are no answer."""
ALIKE: Final = 0.01
"""Strata that would differ as much by chance more often than this are taken for alike."""
UNLIKELY: Final = 0.01
"""How likely second answers must be under one pair of rates, or it is warned of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReaskNoiseRates:
    r"""Estimate the noise rates from second answers to logged pairs, with their covariance; no truth is needed.

    Rows are sorted into strata by a cross-fitted score. Of a stratum with a share m of positive labels, the two answers
    are like and dislike with probability :math:`c = \rho_{10} (1 - \rho_{01}) + (\rho_{01} - \rho_{10}) m`, and dislike
    and like with the same, so that 2c of them differ: strata that differ in m tell both rates, by maximum
    likelihood of all the log's labels and the second answers (Hui and Walter, "Estimating the error rates of
    diagnostic tests", Biometrics 1980).

    It rests on three assumptions that the answers cannot check in full: people err anew each time, independently of
    their first answer; second answers are as noisy as the log's; the noise is the same for all pairs of a class. People
    who repeat their mistakes make the rates too small. True labels (`AuditNoiseRates`) need none of the first two.

    Parameters
    ----------
    strata
        Number of strata.
    folds
        Of the score's cross-fitting.
    random_state
        Of the folds.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=400, n_items=600, random_state=0)
    >>> random = np.random.default_rng(0)
    >>> rows = random.choice(len(world.log), 1_000, replace=False)
    >>> users, items = world.log.users[rows], world.log.items[rows]
    >>> again = NoiseRates(0.2, 0.1).observe(world.at(users, items).true_labels, random.random(1_000))
    >>> rates = ReaskNoiseRates().fit(world.log, reask=ReaskSample(users, items, again))
    >>> rates.source
    'second answers to 1,000 pairs'
    >>> {name: (round(low, 2), round(high, 2)) for name, (low, high) in rates.interval().items()}
    {'rho01': (0.06, 0.23), 'rho10': (0.09, 0.25)}
    """

    strata: int = 10
    folds: int = 5
    random_state: RandomState = FOLDS_SEED

    def fit(
        self, log: FeedbackLog, *, reask: ReaskSample, propensities: Any = None, scores: PredictionsLike | None = None
    ) -> NoiseRates:
        """Estimate the rates of a log's labels.

        Parameters
        ----------
        log
            With the re-asked pairs in it.
        reask
            Their second answers. Which pairs were asked about may depend on their score and their label.
        propensities, scores
            As in `AuditNoiseRates.fit`.
        """
        if not isinstance(reask, ReaskSample):
            raise ParameterError(f"reask must be a ReaskSample; got {type(reask).__name__}")
        rows, inside = find_rows(A_REASK, reask.users, reask.items, checked_log(log))
        answers = reask.labels[inside]
        _refuse_too_little(log.labels, log.labels[rows])
        weights: Array = np.broadcast_to(1.0, len(log))
        if propensities is not None:
            propensities = as_propensities(propensities, log)
            if propensities.depends_on_label:
                weights = each(lambda p: 1 / p, propensities.at(log.users, log.items))
        count, random = whole_number("strata", self.strata), as_generator(self.random_state)
        score = score_rows(log, propensities, scores, folds=self.folds, random=random)
        strata = sort_into_strata(score, count, random)
        said = _said_by_stratum(log.labels, strata)
        within = np.ones(len(rows))
        if reask.probabilities is not None:
            within = weights_within(strata[rows].astype(np.int64) * 2 + log.labels[rows], reask.probabilities[inside])
        found = repeated_rates(AuditCounts.of(log.labels, strata, rows, answers, weights, within))
        # Unequal weights are worth fewer rows (Kish).
        worth = float(each(np.square, weights).mean() / weights.mean() ** 2)
        covariance = _scaled(found.covariance, worth * max(float((within**2).mean() / within.mean() ** 2), 1.0))
        _warn_of_precision(covariance, len(rows), said)
        labels = log.labels[rows]
        agreement = _agreement(found, (labels, answers, strata[rows]), weights[rows] * within)
        _warn_of_other_rates(labels, answers, agreement)
        facts = {
            "method": "second answers",
            "asked": len(rows),
            "differ": float((labels != answers).mean()),
            "strata": len(said),
            "said": (float(said.min()), float(said.max())),
            "agreement": agreement,
            "weighted": propensities is not None and propensities.depends_on_label,
            "source": f"second answers to {len(rows):,} pairs",
        }
        return NoiseRates(found.rho01, found.rho10, covariance, diagnostics=facts)


def rates_from_reask(log: FeedbackLog, reask: ReaskSample, propensities: Propensities) -> NoiseRates:
    """Estimate the rates, weighted where labels decide what is logged."""
    weights = propensities if propensities.depends_on_label else None
    return ReaskNoiseRates().fit(log, reask=reask, propensities=weights)


def _refuse_too_little(labels: npt.NDArray[np.int8], asked: npt.NDArray[np.int8]) -> None:
    if len(np.unique(labels)) < 2:
        raise LabelError("a re-ask needs a log with rows of both classes, positive and negative")
    if len(asked) < FEWEST:
        raise ReaskError(f"a re-ask needs at least {FEWEST} pairs of the log; it has {len(asked):,}")
    if len(np.unique(asked)) < 2:
        kind = "likes" if asked[0] else "dislikes"
        raise ReaskError(f"a re-ask needs pairs of both labels; all {len(asked):,} were logged as {kind}")


def _said_by_stratum(labels: npt.NDArray[np.int8], strata: Strata) -> Array:
    """Return each stratum's share of positive labels; refuse strata that differ no more than by chance."""
    table = table_of(strata, labels, 2)
    rows, level = table.sum(axis=1), float(labels.mean())
    said = table[:, 1] / rows
    spread = float(rows @ (said - level) ** 2) / (level * (1 - level))
    if len(said) < 2 or chdtrc(len(said) - 1, spread) > ALIKE:
        raise ReaskError(
            f"second answers cannot tell the two rates apart here: the share of likes hardly differs between the "
            f"{len(said)} strata of the score ({said.min():.2f} to {said.max():.2f}), no more than by chance; true "
            "labels of some logged pairs (an audit) would do, or better scores"
        )
    return np.asarray(said)


def _scaled(covariance: Covariance, factor: float) -> Covariance:
    (a, b), (_, d) = (np.array(covariance) * factor).tolist()
    return ((a, b), (b, d))


def _warn_of_precision(covariance: Covariance, count: int, said: Array) -> None:
    half_width = float(ndtri(0.975) * np.sqrt(np.diag(np.array(covariance)).max()))
    if half_width <= ROUGH:
        return
    enough = int(np.ceil(count * (half_width / ROUGH) ** 2 / 100) * 100)
    leaves = (
        f"a re-ask of {count:,} pairs leaves the noise rates {{}} uncertain: a 95% interval reaches {half_width:.2f} "
        f"to either side, as the share of likes differs too little between strata ({said.min():.2f} to "
        f"{said.max():.2f}) for so few pairs; about {enough:,} pairs would do, or fewer true labels (an audit)"
    )
    if half_width > OPEN:
        raise ReaskError(leaves.format("too"))
    warn_caller(leaves.format("very"), SmallAuditWarning)


def _agreement(
    found: RepeatedRates,
    asked: tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], Strata],
    weights: Array,
) -> float:
    """Return how likely the second answers to likes, and those to dislikes, are under the rates fitted to both."""
    labels, answers, strata = asked
    liked = truly_positive(found.rho01, found.rho10, found.shares, strata, labels)
    expected = liked * (1 - found.rho01) + (1 - liked) * found.rho10
    return chance_of_audit(labels, answers, expected, weights)


def _warn_of_other_rates(labels: npt.NDArray[np.int8], answers: npt.NDArray[np.int8], agreement: float) -> None:
    if (labels == answers).all():
        warn_caller(
            f"all {len(labels):,} second answers agree with the first: the rates are 0 if people err anew each time, "
            "and anything if they repeat their mistakes",
            NoiseRateWarning,
        )
    if agreement >= UNLIKELY:
        return
    changed = [int(((labels == first) & (answers != first)).sum()) for first in (1, 0)]
    asked = [int((labels == first).sum()) for first in (1, 0)]
    warn_caller(
        f"second answers do not seem to be as noisy as the log's labels: {changed[0]:,} of {asked[0]:,} likes became "
        f"dislikes and {changed[1]:,} of {asked[1]:,} dislikes likes, which one pair of rates does not explain; true "
        "labels of some logged pairs (an audit) would tell",
        NoiseRateWarning,
    )
