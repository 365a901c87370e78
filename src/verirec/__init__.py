"""verirec: how good is a recommender really, when its feedback is selective and noisy?

Names are imported when they are first asked for: nobody waits for what they do not use.
"""

from __future__ import annotations

# A name that type checkers take for true; `typing` would be imported before Ctrl-C can be caught (see __main__).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    # `as` says that they are for users too; they are not in __all__, so that `import *` takes neither torch nor `data`.
    from verirec import adapters as adapters
    from verirec import assessment as assessment
    from verirec import data as data
    from verirec import engine as engine
    from verirec import estimation as estimation
    from verirec import exceptions as exceptions
    from verirec import losses as losses
    from verirec import methods as methods
    from verirec import metrics, simulate, theory
    from verirec import nuisance as nuisance
    from verirec.adapters import Adapted, adapt
    from verirec.assessment import Assessment, Monitoring, assess, monitor
    from verirec.data import (
        Dataset,
        Factors,
        FeedbackLog,
        IdMap,
        Split,
        UnbiasedSplit,
        check_file,
        check_frame,
        load_dataset,
        prepare_log,
        read_limits,
        read_log,
        read_predictions,
        scan_log,
        split,
        split_unbiased,
    )
    from verirec.estimation import (
        Estimate,
        EstimateRange,
        Estimates,
        SelectionRange,
        SelectionStrength,
        calibrate,
        compare,
        compare_rankings,
        estimate,
        estimate_click_ranking,
        estimate_ranking,
        selection_strength,
        sensitivity,
    )
    from verirec.estimation.planning import LabelPlan, plan_labels
    from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion
    from verirec.methods import load as load
    from verirec.nuisance.label_model import LabelModel
    from verirec.nuisance.noise_rates import (
        AnchorNoiseRates,
        AuditErrorCurve,
        AuditErrors,
        AuditNoiseRates,
        AuditSample,
        AuditTransitionMatrix,
        ErrorCurve,
        GroupErrors,
        ReaskNoiseRates,
        ReaskSample,
        identified_region,
        identified_transitions,
        weak_separability_test,
        who_errs,
    )
    from verirec.nuisance.propensities import (
        ConstantPropensity,
        GivenPropensity,
        LevelPropensity,
        LoggedPropensity,
        LogisticPropensity,
        NaiveBayesPropensity,
        PopularityPropensity,
        Propensities,
    )
    from verirec.nuisance.surveys import SurveySample
    from verirec.nuisance.suspects import SuspectLabels, find_suspect_labels

__version__ = "0.2.0"

_PACKAGES = {
    "adapters",
    "assessment",
    "data",
    "engine",
    "estimation",
    "exceptions",
    "losses",
    "methods",
    "metrics",
    "nuisance",
    "simulate",
    "theory",
}

_NAMES = {
    "adapters": "Adapted adapt",
    "assessment": "Assessment Monitoring assess monitor",
    "data": "Dataset Factors FeedbackLog IdMap Split UnbiasedSplit check_file check_frame load_dataset prepare_log "
    "read_limits read_log read_predictions scan_log split split_unbiased",
    "estimation": "Estimate EstimateRange Estimates SelectionRange SelectionStrength calibrate compare "
    "compare_rankings estimate estimate_click_ranking estimate_ranking selection_strength sensitivity",
    "estimation.planning": "LabelPlan plan_labels",
    "losses": "GroupedNoiseRates NoiseRates NoiseRegion TransitionMatrix TransitionRegion",
    "methods": "load",
    "nuisance.label_model": "LabelModel",
    "nuisance.noise_rates": "AnchorNoiseRates AuditErrorCurve AuditErrors AuditNoiseRates AuditSample "
    "AuditTransitionMatrix ErrorCurve GroupErrors ReaskNoiseRates ReaskSample identified_region "
    "identified_transitions weak_separability_test who_errs",
    "nuisance.propensities": "ConstantPropensity GivenPropensity LevelPropensity LoggedPropensity LogisticPropensity "
    "NaiveBayesPropensity PopularityPropensity Propensities",
    "nuisance.surveys": "SurveySample",
    "nuisance.suspects": "SuspectLabels find_suspect_labels",
}
"""Names by the package they are imported from; what is under TYPE_CHECKING says the same to type checkers."""

_HOMES = {name: package for package, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Adapted",
    "AnchorNoiseRates",
    "Assessment",
    "AuditErrorCurve",
    "AuditErrors",
    "AuditNoiseRates",
    "AuditSample",
    "AuditTransitionMatrix",
    "ConstantPropensity",
    "Dataset",
    "ErrorCurve",
    "Estimate",
    "EstimateRange",
    "Estimates",
    "Factors",
    "FeedbackLog",
    "GivenPropensity",
    "GroupErrors",
    "GroupedNoiseRates",
    "IdMap",
    "LabelModel",
    "LabelPlan",
    "LevelPropensity",
    "LoggedPropensity",
    "LogisticPropensity",
    "Monitoring",
    "NaiveBayesPropensity",
    "NoiseRates",
    "NoiseRegion",
    "PopularityPropensity",
    "Propensities",
    "ReaskNoiseRates",
    "ReaskSample",
    "SelectionRange",
    "SelectionStrength",
    "Split",
    "SurveySample",
    "SuspectLabels",
    "TransitionMatrix",
    "TransitionRegion",
    "UnbiasedSplit",
    "__version__",
    "adapt",
    "assess",
    "calibrate",
    "check_file",
    "check_frame",
    "compare",
    "compare_rankings",
    "estimate",
    "estimate_click_ranking",
    "estimate_ranking",
    "find_suspect_labels",
    "identified_region",
    "identified_transitions",
    "load_dataset",
    "metrics",
    "monitor",
    "plan_labels",
    "prepare_log",
    "read_limits",
    "read_log",
    "read_predictions",
    "scan_log",
    "selection_strength",
    "sensitivity",
    "simulate",
    "split",
    "split_unbiased",
    "theory",
    "weak_separability_test",
    "who_errs",
]

if not TYPE_CHECKING:  # Or type checkers would believe in any name.

    def __getattr__(name: str) -> Any:
        """Import a name when it is first asked for, and keep it."""
        if name not in _PACKAGES and name not in _HOMES:
            raise AttributeError(f"module 'verirec' has no attribute {name!r}")
        package = _imported(_HOMES.get(name, name))
        found = globals()[name] = package if name in _PACKAGES else getattr(package, name)
        return found


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | _PACKAGES | {*_HOMES})


def _imported(package: str) -> ModuleType:
    """Import a package of ours; if that is the one that trains and torch is not there, say what to install."""
    from importlib import import_module

    try:
        return import_module(f"verirec.{package}")
    except ModuleNotFoundError as error:
        if package != "methods":
            raise
        from verirec.exceptions import MissingExtraError

        raise MissingExtraError(f"training needs {error.name}: pip install 'verirec[train]'") from None
