"""What estimates of any kind start from: the logged pairs, what is known of their noise, and the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import cell_keys
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.pair_keys import places_in
from verirec.estimation.catalogue import DELTA, SURVEY_ESTIMATORS, Chosen, chosen_by_source
from verirec.estimation.inputs import AnyNoise, KnownNoise, Noise, checked_noise, checked_transitions, judgeable
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.target import Target, training_rows
from verirec.exceptions import AuditError, EmptyLogError, LabelError, NoiseRateError, ParameterError
from verirec.losses import TransitionMatrix, TransitionRegion
from verirec.nuisance.click_model import clicks_only
from verirec.nuisance.noise_rates import AuditedRows, AuditSample, AuditTransitionMatrix, WhoErrs, rates_from_audit
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.nuisance.surveys import SurveySample


class Gathered(NamedTuple):
    """What an estimate starts from, checked; pairs only if some estimator needs them.

    Parameters
    ----------
    pairs
        The logged pairs.
    noise, estimators
        What is known of noise, and what to apply.
    judged
        Those of the pairs that are spoken of: all, unless some are left out.
    """

    pairs: LoggedPairs | None
    noise: AnyNoise
    estimators: Chosen
    judged: LoggedPairs | None = None


def gather(
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: AnyNoise = None,
    audit: AuditSample | None = None,
    survey: SurveySample | None = None,
    exclude: Any = None,
    selection: Any = None,
    estimators: str | Sequence[str] | None = None,
    errors: WhoErrs | None = None,
) -> Gathered:
    """Check what an estimate is given (see `estimate`); where there are no noise rates, an audit gives them.

    An audit that cannot tell them, of one true class say, still serves the estimators that its labels are in.
    """
    there = {"with_audit": audit is not None, "with_survey": survey is not None}

    def selected_with(rates: object) -> Chosen:
        found = chosen_by_source(estimators, with_rates=rates is not None, **there)
        return found if selection is None else found.with_range(with_rates=rates is not None)

    if survey is not None and selection is None and len(checked_log(log, levels=True)) > 1 and clicks_only(log):
        return _of_clicks(log, propensities, noise_rates, audit, estimators)
    judgeable(log, levels=True)
    check_errors(errors, log, audit)
    if selection is not None:
        checked_log(log)
    selected = selected_with(audit if noise_rates is None else noise_rates)
    if DELTA in selected.survey:
        checked_log(log)
    given = checked_noise(noise_rates, log) if log.levels is None else checked_transitions(noise_rates, log)
    if audit is None and not selected.log and not selected.ranged:
        return Gathered(None, given, selected)
    pairs = replace(logged_pairs(log, propensities, audit), errors=errors)
    named = not (estimators is None or (isinstance(estimators, str) and estimators == "all"))
    by_rates = any(one.noise_corrected and not one.audited for one in selected.log)
    needed = named and by_rates
    noise: AnyNoise = given
    # Who errs says more than rates, where nothing else asks for these.
    spared = errors is not None and not by_rates and survey is None and selection is None
    if not isinstance(given, TransitionMatrix | TransitionRegion) and not spared:
        noise = noise_in_hand(given, pairs, audit, needed=needed)
    if noise is None and not spared:
        selected = selected_with(None)
    return _judged(Gathered(pairs, noise, selected), exclude, by_default=estimators is None)


def _of_clicks(
    log: FeedbackLog, propensities: Any, noise_rates: AnyNoise, audit: AuditSample | None, estimators: Any
) -> Gathered:
    """Leave clicks alone to the survey: by default and of "all" only what needs no labels of the log is applied."""
    names = estimators
    if names is None or (isinstance(names, str) and names == "all"):
        names = [name for name in SURVEY_ESTIMATORS if name != DELTA]
    selected = chosen_by_source(names, with_rates=True, with_audit=True, with_survey=True)
    if selected.log or DELTA in selected.survey:
        judgeable(log)
    given = checked_noise(noise_rates, log)
    return Gathered(None if audit is None else logged_pairs(log, propensities, audit), given, selected)


def check_errors(errors: object, log: FeedbackLog, audit: object) -> None:
    """Refuse what does not say who errs in this log, by this audit; without one nothing uses it."""
    if errors is None:
        return
    if not isinstance(errors, WhoErrs):
        raise ParameterError(f"errors must be what AuditErrors or AuditErrorCurve found; got {type(errors).__name__}")
    if audit is None:
        raise ParameterError("errors are a control variate of audited-dr: give the audit too")
    if errors.log.shape != log.shape or errors.log.levels != log.levels:
        raise ParameterError("errors must be of this log; these are of one of another grid or other levels")
    if isinstance(audit, AuditSample):
        unknown = _unlike(audit, errors.audit, log.n_items)
        if unknown:
            raise ParameterError(
                f"errors must be found from this audit; {unknown:,} of its {len(audit):,} pairs were not in theirs, or "
                "had other true labels"
            )


def _unlike(audit: AuditSample, other: AuditSample, n_items: int) -> int:
    """Count the pairs of an audit that another one does not have, or with another true label."""
    own, theirs = (cell_keys(one.users, one.items, n_items) for one in (audit, other))
    order = np.argsort(theirs)
    place = order[np.clip(np.searchsorted(theirs, own, sorter=order), 0, len(theirs) - 1)]
    return int(((theirs[place] != own) | (other.true_labels[place] != audit.true_labels)).sum())


def _judged(found: Gathered, exclude: Any, *, by_default: bool) -> Gathered:
    """Leave pairs out; estimators that nobody asked for are not applied where these were all rows of the log."""
    if found.pairs is None or not found.estimators.log:
        return found
    try:
        return found._replace(judged=spoken_of(found.pairs, exclude))
    except (AuditError, EmptyLogError, LabelError):
        others = found.estimators.survey or found.estimators.ranged
        if exclude is None or not (by_default and others):
            raise
        return found._replace(estimators=found.estimators._replace(log=[]))


def spoken_of(pairs: LoggedPairs, exclude: Any) -> LoggedPairs:
    """Leave pairs out: rows of theirs, their part of the grid and, where a recommender was trained on them, of chance.

    The rows of a log that was trained on are taken for the other part of a random split of one log. If they are among
    the rows to judge by, the propensities are those of both parts.

    Parameters
    ----------
    pairs
        All that may judge.
    exclude
        As in `estimate`; `None` leaves all.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], n_users=2, n_items=4)
    >>> left = spoken_of(logged_pairs(log, np.full((2, 4), 0.5), None), ([0, 0], [1, 2]))
    >>> len(left.log), left.n_cells, left.p.tolist()
    (3, 6, [0.375, 0.375, 0.375])
    """
    if exclude is None:
        return pairs
    log = pairs.log
    target = Target.of(log.shape, None, exclude)
    inside = target.holds(log.users, log.items)
    part = judgeable(log if inside.all() else log.select(inside), levels=True)
    propensities = pairs.propensities if len(part) == len(log) else pairs.propensities.thinned(len(part) / len(log))
    trained = training_rows(exclude, log.shape)
    if trained:
        propensities = propensities.apart_from(trained / len(part))
    audited = None if pairs.audited is None else _among(pairs.audited, inside, log, part)
    return LoggedPairs(part, propensities, audited, target.left_out, pairs.errors)


def _among(audited: AuditedRows, kept: npt.NDArray[np.bool_], log: FeedbackLog, part: FeedbackLog) -> AuditedRows:
    """Return the audited rows of a log that are among those of a part of it, by their numbers there."""
    found = audited.among(kept, log, part)
    if len(found.rows) == 0:
        raise AuditError(f"all {len(audited.rows):,} audited pairs are among those that are left out")
    return found


def audit_within(audit: AuditSample | None, log: FeedbackLog) -> AuditSample | None:
    """Return the audited pairs that are among a log's rows, such as those of a part that judges; `None` if none is.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2)
    >>> audit_within(AuditSample([0, 0], [0, 1], [1, 1]), log.select([0, 2])).items.tolist()
    [0]
    """
    if audit is None:
        return None
    _, inside = places_in(audit.users, audit.items, log.users, log.items)
    return audit.select(inside) if inside.any() else None


def logged_pairs(log: FeedbackLog, propensities: Any, audit: object) -> LoggedPairs:
    """Put a log, its propensities and an audit together, if there is one."""
    if audit is not None and not isinstance(audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
    audited = None if audit is None else audit.rows_in(log)
    return LoggedPairs(log, as_propensities(propensities, log), audited)


def noise_in_hand(noise: Noise, pairs: LoggedPairs, audit: AuditSample | None, *, needed: bool = False) -> Any:
    """Return the noise rates given, or else those that the audit tells; `None` if it cannot and they are not needed."""
    if noise is not None or audit is None:
        return noise
    try:
        return noise_from_audit(pairs.log, audit, pairs.propensities)
    except (AuditError, NoiseRateError):
        if needed:
            raise
        return None


def noise_from_audit(log: FeedbackLog, audit: AuditSample, propensities: Propensities) -> KnownNoise:
    """Return what an audit tells of noise: two rates or, of a log that keeps its levels, a matrix."""
    if log.levels is not None:
        return AuditTransitionMatrix().fit(log, audit=audit)
    return rates_from_audit(log, audit, propensities)
