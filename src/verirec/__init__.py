"""verirec: how good is a recommender really, when its feedback is selective and noisy?"""

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
from verirec.estimators import (
    Estimate,
    EstimateRange,
    Estimates,
    compare,
    estimate,
    estimate_ranking,
    sensitivity,
)
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.nuisances.label_model import LabelModel
from verirec.nuisances.noise_rates import (
    AnchorNoiseRates,
    AuditNoiseRates,
    AuditPlan,
    AuditSample,
    identified_region,
    plan_audit,
    weak_separability_test,
)
from verirec.nuisances.propensities import (
    ConstantPropensity,
    GivenPropensity,
    LoggedPropensity,
    LogisticPropensity,
    NaiveBayesPropensity,
    PopularityPropensity,
    Propensities,
)
from verirec.nuisances.suspects import SuspectLabels, find_suspect_labels

__version__ = "0.1.0"

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
    "plan_audit",
    "read_log",
    "read_predictions",
    "sensitivity",
    "simulate",
    "split",
    "split_unbiased",
    "theory",
    "weak_separability_test",
]
