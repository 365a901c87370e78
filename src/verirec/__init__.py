"""verirec: how good is a recommender really, when its feedback is selective and noisy?"""

from importlib import import_module
from typing import Any

from verirec import metrics, simulate, theory
from verirec.data import (
    Dataset,
    Factors,
    FeedbackLog,
    IdMap,
    Split,
    UnbiasedSplit,
    load_dataset,
    read_log,
    read_predictions,
    split,
    split_unbiased,
)
from verirec.estimation import (
    Estimate,
    EstimateRange,
    Estimates,
    compare,
    estimate,
    estimate_ranking,
    sensitivity,
)
from verirec.exceptions import MissingExtraError
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.noise_rates import (
    AnchorNoiseRates,
    AuditNoiseRates,
    AuditPlan,
    AuditSample,
    identified_region,
    plan_labels,
    weak_separability_test,
)
from verirec.nuisance.propensities import (
    ConstantPropensity,
    GivenPropensity,
    LoggedPropensity,
    LogisticPropensity,
    NaiveBayesPropensity,
    PopularityPropensity,
    Propensities,
)
from verirec.nuisance.suspects import SuspectLabels, find_suspect_labels

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is first asked for: it takes a second, and not everybody trains."""
    if name == "assess":
        return import_module("verirec.assessment").assess
    if name not in ("methods", "load"):
        raise AttributeError(f"module 'verirec' has no attribute {name!r}")
    try:
        found = import_module("verirec.methods")
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"training needs {error.name}: pip install 'verirec[train]'") from None
    return found if name == "methods" else found.load


__all__ = [
    "AnchorNoiseRates",
    "AuditNoiseRates",
    "AuditPlan",
    "AuditSample",
    "ConstantPropensity",
    "Dataset",
    "Estimate",
    "EstimateRange",
    "Estimates",
    "Factors",
    "FeedbackLog",
    "GivenPropensity",
    "GroupedNoiseRates",
    "IdMap",
    "LabelModel",
    "LoggedPropensity",
    "LogisticPropensity",
    "NaiveBayesPropensity",
    "NoiseRates",
    "NoiseRegion",
    "PopularityPropensity",
    "Propensities",
    "Split",
    "SuspectLabels",
    "UnbiasedSplit",
    "__version__",
    "compare",
    "estimate",
    "estimate_ranking",
    "find_suspect_labels",
    "identified_region",
    "load_dataset",
    "metrics",
    "plan_labels",
    "read_log",
    "read_predictions",
    "sensitivity",
    "simulate",
    "split",
    "split_unbiased",
    "theory",
    "weak_separability_test",
]
