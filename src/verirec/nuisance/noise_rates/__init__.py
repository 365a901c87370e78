"""How often labels are wrong: from an audit, from second answers, from anchors, or a region of what is possible."""

from verirec.nuisance.noise_rates.anchor import AnchorNoiseRates
from verirec.nuisance.noise_rates.audit import AuditNoiseRates, rates_from_audit
from verirec.nuisance.noise_rates.audit_errors import AuditErrors, WhoErrs, who_errs
from verirec.nuisance.noise_rates.error_curve import AuditErrorCurve, ErrorCurve
from verirec.nuisance.noise_rates.error_groups import GroupErrors
from verirec.nuisance.noise_rates.reask import ReaskNoiseRates, rates_from_reask
from verirec.nuisance.noise_rates.samples import AuditedRows, AuditSample
from verirec.nuisance.noise_rates.second_answers import ReaskSample
from verirec.nuisance.noise_rates.tails import SeparabilityTest, identified_region, weak_separability_test
from verirec.nuisance.noise_rates.transition_audit import AuditTransitionMatrix
from verirec.nuisance.noise_rates.transition_region import identified_transitions

__all__ = [
    "AnchorNoiseRates",
    "AuditErrorCurve",
    "AuditErrors",
    "AuditNoiseRates",
    "AuditSample",
    "AuditTransitionMatrix",
    "AuditedRows",
    "ErrorCurve",
    "GroupErrors",
    "ReaskNoiseRates",
    "ReaskSample",
    "SeparabilityTest",
    "WhoErrs",
    "identified_region",
    "identified_transitions",
    "rates_from_audit",
    "rates_from_reask",
    "weak_separability_test",
    "who_errs",
]
