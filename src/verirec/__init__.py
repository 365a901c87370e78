"""verirec: how good is a recommender really, when its feedback is selective and noisy?"""

from verirec import metrics, simulate
from verirec.data import (
    Dataset,
    Factors,
    FeedbackLog,
    IdMap,
    Split,
    UnbiasedSplit,
    load_dataset,
    read_log,
    split,
    split_unbiased,
)
from verirec.estimators import Estimate, naive_estimate
from verirec.losses import NoiseRates

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "Estimate",
    "Factors",
    "FeedbackLog",
    "IdMap",
    "NoiseRates",
    "Split",
    "UnbiasedSplit",
    "__version__",
    "load_dataset",
    "metrics",
    "naive_estimate",
    "read_log",
    "simulate",
    "split",
    "split_unbiased",
]
