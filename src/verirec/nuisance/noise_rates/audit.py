"""Noise rates from an audit: pairs of the log whose true labels are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import one_of, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import counts
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import (
    AuditError,
    NoiseRateWarning,
    ParameterError,
    SmallAuditWarning,
    warn_caller,
)
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.losses.noise_rates import AuditOrigin, checked_groups
from verirec.nuisance.noise_rates.direct import chance_of_audit, direct_rates, weights_within
from verirec.nuisance.noise_rates.joint import AuditCounts, Rates, joint_rates, truly_positive
from verirec.nuisance.noise_rates.samples import AuditedRows, AuditSample
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, Strata, score_rows, sort_into_strata, strata_there
from verirec.nuisance.noise_rates.tails import weak_separability_test
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.randomness import RandomState, as_generator
from verirec.scratch import each, those

Array = npt.NDArray[np.float64]

ROUGH: Final = 0.15
"""Rates whose 95% intervals reach further than this to either side are too open for most uses."""
UNLIKELY: Final = 0.1
"""How likely an audit must be under rates that were fitted to it, which is to be careful, not to be warned of."""
_ROWS_FOR_TAILS: Final = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditNoiseRates:
    r"""Estimate the noise rates from an audit, with their covariance.

    Parameters
    ----------
    method
        "joint" (default): maximum likelihood of all the log's labels and the audit together, over strata of a
        cross-fitted score, each with its own share of true positives and all with the same rates. Of n log labels in a
        stratum, a share :math:`\pi_s (1 - \rho_{01}) + (1 - \pi_s) \rho_{10}` is positive. Which pairs were audited may
        depend on their score and their label, not on their true label. It takes the noise for the same in all pairs of
        a class, and is warned of where the audit itself says otherwise. "direct": the audit's own shares of wrong
        labels, each pair by one over its probability: the mean rates of the logged pairs, whatever the noise is.
    strata
        Number of strata.
    folds
        Of the score's cross-fitting.
    user_groups, item_groups
        Group of each user or each item, integers from 0: one pair of rates a group.
    random_state
        Of the folds; an audit that `plan_labels` planned keeps to the default, by which its pairs were chosen.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> rows = np.random.default_rng(0).choice(len(world.log), 500, replace=False)
    >>> users, items = world.log.users[rows], world.log.items[rows]
    >>> audit = AuditSample(users, items, world.at(users, items).true_labels)
    >>> rates = AuditNoiseRates().fit(world.log, audit=audit)
    >>> round(rates.rho01, 2), round(rates.rho10, 2)
    (0.23, 0.09)
    >>> rates.source
    'an audit of 500 pairs'
    """

    method: Literal["joint", "direct"] = "joint"
    strata: int = 10
    folds: int = 5
    user_groups: npt.ArrayLike | None = None
    item_groups: npt.ArrayLike | None = None
    random_state: RandomState = FOLDS_SEED

    def fit(
        self, log: FeedbackLog, *, audit: AuditSample, propensities: Any = None, scores: PredictionsLike | None = None
    ) -> NoiseRates | GroupedNoiseRates:
        """Estimate the rates of a log's labels.

        Parameters
        ----------
        log
            With the audited pairs in it.
        audit
            Their true labels.
        propensities
            Weights of the score's fit; by default all rows weigh the same. Who rates what does not change the rates, as
            long as it depends on what people prefer and not on what they say: where it does (naive Bayes), give the
            propensities, and all counts are weighted by them.
        scores
            The score behind the strata, in any form of predictions, by a model that was not fitted to these labels;
            by default `LabelModel`, cross-fitted. Any score is valid, a good one makes the rates more precise.

        Returns
        -------
        `NoiseRates`, or `GroupedNoiseRates` if there are groups.
        """
        one_of("method", self.method, ("joint", "direct"))
        if not isinstance(audit, AuditSample):
            raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
        audited = audit.rows_in(checked_log(log))
        if audit.probabilities is None:
            audited = audited._replace(probabilities=np.ones(len(audited.rows)))
        _refuse_one_class(audited.true_labels, "")
        weights = None
        if propensities is not None:
            propensities = as_propensities(propensities, log)
            if propensities.depends_on_label:
                weights = each(lambda p: 1 / p, propensities.at(log.users, log.items))
        strata: Strata = np.broadcast_to(np.int8(0), len(log))
        if self.method == "joint":
            count, random = whole_number("strata", self.strata), as_generator(self.random_state)
            score = score_rows(log, propensities, scores, folds=self.folds, random=random)
            strata = sort_into_strata(score, count, random)
        if self.user_groups is None and self.item_groups is None:
            return self._rates(log, strata, audited, weights, "")
        return self._by_group(log, strata, audited, weights)

    def _rates(
        self,
        log: FeedbackLog,
        strata: Strata,
        audited: AuditedRows,
        weights: Array | None,
        where: str,
        origin: FeedbackLog | None = None,
    ) -> NoiseRates:
        """Estimate the rates of a log's rows, which may be a part of another log's, their origin."""
        rows, true_labels, _ = audited
        labels = log.labels
        _refuse_one_class(true_labels, where)
        if min(self._shares(labels, rows)) == 0:
            warn_caller(
                f"no audited pair{where} has one of the two labels: the rates then rest on the strata alone, and their "
                "intervals are too short",
                NoiseRateWarning,
            )
        rho01, rho10, covariance, facts = self._estimated(labels, strata, audited, weights)
        for which, rate in (("rho01", rho01), ("rho10", rho10)):
            if rate < 1e-6:
                warn_caller(
                    f"{which}{where} is estimated at 0, the end of its range: its interval is approximate",
                    NoiseRateWarning,
                )
        facts |= {"method": f"audit, {self.method}", "audited": len(rows), "weighted": weights is not None}
        facts["source"] = f"an audit of {len(rows):,} pairs"
        half_width = float(ndtri(0.975) * np.sqrt(np.diag(np.array(covariance)).max()))
        if half_width > ROUGH:
            warn_caller(
                f"an audit of {len(rows):,} pairs{where} leaves the noise rates very uncertain: a 95% interval reaches "
                f"{half_width:.2f} to either side; plan_labels tells how many more pairs it takes",
                SmallAuditWarning,
            )
        rates = NoiseRates(rho01, rho10, covariance, self._origin(origin or log, labels, rows), facts)
        if self.method == "joint" and facts["agreement"] < UNLIKELY:
            shares = direct_rates(labels[rows], true_labels, 1 / audited.probabilities).rates
            facts |= _warn_of_disagreement(rates, shares, None if where else log, where)
        return rates

    def _estimated(
        self, labels: npt.NDArray[np.int8], strata: Strata, audited: AuditedRows, weights: Array | None
    ) -> Rates:
        """Return rates, covariance and facts, by either method; the joint one is held against the direct one."""
        rows, true_labels, probabilities = audited
        own = np.ones(len(rows)) if weights is None else weights[rows]
        if self.method == "direct":
            direct = direct_rates(labels[rows], true_labels, own / probabilities)
            (first, second), (positives, negatives) = direct.variances, direct.rows
            facts = {"positives": positives, "negatives": negatives}
            return (*direct.rates, ((first, 0.0), (0.0, second)), facts)
        within = weights_within(strata[rows].astype(np.int64) * 2 + labels[rows], probabilities)
        counts = AuditCounts.of(labels, strata, rows, true_labels, weights, within)
        rho01, rho10, covariance, facts = joint_rates(counts)
        if weights is not None:
            # Unequal weights are worth fewer rows (Kish).
            (a, b), (_, d) = np.array(covariance) * float(each(np.square, weights).mean()) / float(weights.mean()) ** 2
            covariance = ((a, b), (b, d))
        which = np.searchsorted(strata_there(strata), strata[rows])
        shares = np.asarray(facts.pop("shares"), np.float64)
        q = truly_positive(rho01, rho10, shares, which, labels[rows])
        agreement = chance_of_audit(labels[rows], true_labels, q, own * within)
        return rho01, rho10, covariance, facts | {"agreement": agreement}

    @staticmethod
    def _origin(log: FeedbackLog, labels: npt.NDArray[np.int8], rows: npt.NDArray[np.int64]) -> AuditOrigin:
        """Say which log was audited, and what share of it: the smaller one, where labels were audited unequally."""
        return AuditOrigin(log.fingerprint, min(AuditNoiseRates._shares(labels, rows)))

    @staticmethod
    def _shares(labels: npt.NDArray[np.int8], rows: npt.NDArray[np.int64]) -> list[float]:
        """Return the audited share of the negative labels, and of the positive ones."""
        return (counts(labels[rows], 2) / np.maximum(counts(labels, 2), 1)).tolist()  # type: ignore[no-any-return]

    def _by_group(
        self,
        log: FeedbackLog,
        strata: Strata,
        audited: AuditedRows,
        weights: Array | None,
    ) -> GroupedNoiseRates:
        if self.user_groups is not None and self.item_groups is not None:
            raise ParameterError("give user_groups or item_groups, not both")
        by_user = self.user_groups is not None
        name, size = ("user_groups", log.n_users) if by_user else ("item_groups", log.n_items)
        groups = checked_groups(name, self.user_groups if by_user else self.item_groups, 2**31)
        if len(groups) != size:
            raise ParameterError(f"{name} must have {size:,} entries, one a position; got {len(groups):,}")
        rates = []
        for group in range(int(groups.max()) + 1):
            inside = each(
                lambda own, group: groups[own] == group, log.users if by_user else log.items, group, dtype=bool
            )
            part = log.select(inside)
            own = audited.among(inside, log, part)
            if len(own.rows) == 0:
                raise AuditError(f"group {group} has no audited pair")
            of_part = None if weights is None else those(weights, inside)
            where = f" in group {group}"
            rates.append(self._rates(part, those(strata, inside), own, of_part, where, log))
        return GroupedNoiseRates(tuple(rates), **{name: groups})


def rates_from_audit(log: FeedbackLog, audit: AuditSample, propensities: Propensities) -> NoiseRates:
    """Estimate one pair of rates, weighted where labels decide what is logged."""
    weights = propensities if propensities.depends_on_label else None
    rates = AuditNoiseRates().fit(log, audit=audit, propensities=weights)
    if not isinstance(rates, NoiseRates):
        raise AuditError("rates by group were not asked for")
    return rates


def _warn_of_disagreement(
    rates: NoiseRates, direct: tuple[float, float], log: FeedbackLog | None, where: str
) -> dict[str, Any]:
    """Say that the rates' assumption fails; where there is a log, with a look at its most extreme rows."""
    facts: dict[str, Any] = {"direct": direct}
    anchors = ""
    if log is not None and len(log) >= _ROWS_FOR_TAILS:
        facts["separability"] = weak_separability_test(log, rates)
        anchors = "; anchors would not do either" if facts["separability"].p_value < UNLIKELY else ""
    warn_caller(
        f"the noise rates{where}, {rates.rho01:.3g} and {rates.rho10:.3g}, assume that the noise is the same for all "
        "pairs of a class, and the audit does not agree with them: its own shares of wrong labels are "
        f"{direct[0]:.3g} and {direct[1]:.3g}. People may err near their threshold. Go by audited-dr (audit=...), "
        f"which does not rest on it{anchors}",
        NoiseRateWarning,
    )
    return facts


def _refuse_one_class(true_labels: npt.NDArray[np.int8], where: str) -> None:
    for truth, kind, untold in ((1, "positive", "rho01"), (0, "negative", "rho10")):
        if not (true_labels == truth).any():
            raise AuditError(
                f"an audit without a true {kind}{where} cannot tell {untold}; it has {len(true_labels):,} pairs"
            )
