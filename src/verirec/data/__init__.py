"""Data: the feedback log, what it is read from, how it is split, and the data sets of the field."""

from verirec.data.datasets import Dataset, load_dataset
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import read_log
from verirec.data.ids import IdMap
from verirec.data.inspection import check_file, check_frame
from verirec.data.limits import ReadLimits, read_limits
from verirec.data.prediction_files import read_predictions
from verirec.data.predictions import Factors, PredictionsLike, as_predictions
from verirec.data.prepared import prepare_log, scan_log
from verirec.data.splits import Split, UnbiasedSplit, split, split_unbiased

__all__ = [
    "Dataset",
    "Factors",
    "FeedbackLog",
    "IdMap",
    "PredictionsLike",
    "ReadLimits",
    "Split",
    "UnbiasedSplit",
    "as_predictions",
    "check_file",
    "check_frame",
    "load_dataset",
    "prepare_log",
    "read_limits",
    "read_log",
    "read_predictions",
    "scan_log",
    "split",
    "split_unbiased",
]
