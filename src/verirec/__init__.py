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
from verirec.estimators import Estimate, EstimateRange, Estimates, estimate, estimate_ranking
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.nuisances.label_model import LabelModel
from verirec.nuisances.noise_rates import (
    AnchorNoiseRates,
    AuditNoiseRates,
    AuditSample,
    identified_region,
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

__version__ = "0.1.0"

__all__ = [
    "AnchorNoiseRates",
    "AuditNoiseRates",
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
    "UnbiasedSplit",
    "__version__",
    "estimate",
    "estimate_ranking",
    "identified_region",
    "load_dataset",
    "metrics",
    "read_log",
    "read_predictions",
    "simulate",
    "split",
    "split_unbiased",
    "theory",
    "weak_separability_test",
]
