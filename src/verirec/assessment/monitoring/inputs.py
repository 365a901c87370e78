"""What monitoring is given, checked before the first period is assessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verirec.checks import named_entries
from verirec.data.cells import checked_positions
from verirec.estimation.survey.draws import check_survey
from verirec.exceptions import ParameterError
from verirec.nuisance.noise_rates import AuditSample

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.periods import Periods


def checked_surveys(surveys: Any, periods: Periods, log: FeedbackLog) -> dict[str, Any]:
    """Accept surveys of a log's grid by the names of periods."""
    found = named_entries("surveys", surveys, "periods")
    for name, survey in found.items():
        if name not in periods.names:
            raise ParameterError(
                f"surveys must be by the names of periods, from {periods.names[0]} to {periods.names[-1]}; got {name!r}"
            )
        check_survey(survey, log, f"survey of {name}")
    return found


def check_audit(audit: object, log: FeedbackLog) -> None:
    """Refuse what is no audit, and one whose pairs are not of the log's grid."""
    if audit is None:
        return
    if not isinstance(audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(audit).__name__}")
    for side, size in (("users", log.n_users), ("items", log.n_items)):
        checked_positions(f"the audit's {side}", getattr(audit, side), size)
