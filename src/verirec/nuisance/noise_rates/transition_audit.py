"""A transition matrix from an audit: which form noise between levels has, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import in_words
from verirec.exceptions import AuditError, ParameterError, SmallAuditWarning, warn_caller
from verirec.losses import AuditOrigin, TransitionMatrix
from verirec.nuisance.noise_rates.samples import AuditSample
from verirec.nuisance.noise_rates.transition_forms import FORMS, MOST_LEVELS, POOLED, FittedForm

Array = npt.NDArray[np.float64]

AUTO: Final = "auto"


class _Audited(NamedTuple):
    """How many rows of each true level were logged at each level, of equal weight, and which levels have none."""

    counts: Array
    missing: tuple[float, ...]
    share: float
    rows: int


@dataclass(frozen=True)
class AuditTransitionMatrix:
    """How to make a transition matrix of an audit.

    Parameters
    ----------
    form
        "free": each true level has its own chances. "band": only neighbouring levels are taken for each other.
        "symmetric": two levels are taken for each other as often. "ordinal": chances fall with the distance by one
        factor. "auto": the one of least AIC, which the result's diagnostics report.

        Of at most 20 levels. A true level that no audited row has is pooled with the others by "ordinal" ("auto" takes
        that then, with a warning); the other forms refuse such an audit.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.stars(100, 120, random_state=0)
    >>> audit = AuditSample(*world.audit(600, random_state=0), levels=world.levels)
    >>> found = AuditTransitionMatrix().fit(world.log, audit=audit)
    >>> found.diagnostics["form"], found.matrix[2].round(2).tolist()
    ('band', [0.0, 0.18, 0.72, 0.1, 0.0])
    """

    form: str = AUTO

    def fit(self, log: FeedbackLog, *, audit: AuditSample) -> TransitionMatrix:
        """Fit it to the audited rows of a log that keeps its levels."""
        one_of("form", self.form, (AUTO, *FORMS))
        levels = checked_log(log, levels=True).levels
        if levels is None:
            raise ParameterError(
                "a transition matrix is for a log that keeps its levels; a binary log: AuditNoiseRates"
            )
        if not isinstance(audit, AuditSample):
            raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
        if len(levels) > MOST_LEVELS:
            raise AuditError(f"an audit tells noise between at most {MOST_LEVELS} levels; the log has {len(levels)}")
        found = _counted(log, audit)
        candidates = self._candidates(found)
        aic = {name: one.aic(found.counts) for name, one in candidates.items()}
        best = min(aic, key=lambda name: aic[name])
        diagnostics: dict[str, Any] = {
            "source": f"an audit of {found.rows:,} rows, {best} form",
            "form": best,
            "aic": aic,
            "audited": found.rows,
            "counts": found.counts,
            "pooled": list(found.missing),
        }
        chosen = candidates[best]
        return TransitionMatrix(
            chosen.matrix, chosen.covariance, AuditOrigin(log.fingerprint, found.share), diagnostics
        )

    def _candidates(self, found: _Audited) -> dict[str, FittedForm]:
        """Fit the forms that can be: all of them, or the pooled one where a level is missing."""
        if not found.missing:
            return {name: fit(found.counts) for name, fit in FORMS.items() if self.form in (AUTO, name)}
        lacking = f"none of {found.rows:,} audited rows has a true level of {in_words(found.missing)}"
        if self.form not in (AUTO, POOLED):
            raise AuditError(
                f"{lacking}, which the form {self.form!r} needs: audit more rows, or take form={POOLED!r}, which pools "
                "all levels"
            )
        warn_caller(f"{lacking}: its noise is pooled with that of the others ({POOLED} form)", SmallAuditWarning)
        return {POOLED: FORMS[POOLED](found.counts)}


def _counted(log: FeedbackLog, audit: AuditSample) -> _Audited:
    """Count audited rows by true and logged level; unequal chances to be audited are made up for."""
    rows, truths, chances = audit.rows_in(log)
    levels = log.levels or ()
    counts = np.zeros((len(levels), len(levels)))
    for level in range(len(levels)):
        own = truths == level
        weights = 1 / chances[own]
        # As many rows of equal weight as these are worth (Kish).
        worth = weights.sum() / (weights @ weights) if own.any() else 0.0
        counts[level] = worth * np.bincount(log.labels[rows[own]], weights=weights, minlength=len(levels))
    missing = tuple(value for value, row in zip(levels, counts, strict=True) if row.sum() == 0)
    return _Audited(counts, missing, len(rows) / len(log), len(rows))
