"""The errors a user can meet, by name. Each carries one line: what was expected, what came, and where."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

_LONGEST_MESSAGE: Final = 900
"""Characters of a message: a file's name may have thousands."""


class CountedMessage(NamedTuple):
    """How many of some values are wrong (`wrong` of `of`), so that it can be told of several parts of them together.

    The message has `{wrong}`, `{of}` and, where it is told, `{place}` in it: where the first wrong one is.
    """

    message: str
    wrong: int
    of: int
    place: int = 0

    def __str__(self) -> str:
        return self.message.format(wrong=f"{self.wrong:,}", of=f"{self.of:,}", place=self.place)


class VerirecError(Exception):
    """Base of every error that verirec raises on purpose; its message is one line, whatever the values in it show."""

    counted: CountedMessage | None = None

    def __init__(self, message: str = "") -> None:
        line = " ".join(map(str.strip, message.splitlines()))
        super().__init__(line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}...")

    @classmethod
    def counting(cls, counted: CountedMessage) -> Self:
        """Make an error that can be told of several parts together: see `verirec.data.cells.recount`."""
        error = cls(str(counted))
        error.counted = counted
        return error


class ParameterError(VerirecError, ValueError):
    """An argument is outside what the function can take."""


class UnknownNameError(ParameterError, KeyError):
    """A result has nothing of that name."""

    # KeyError would show the message in quotes.
    __str__ = Exception.__str__


class DataError(VerirecError, ValueError):
    """The data cannot be used as it is."""


class ColumnError(DataError):
    """A column is missing, named twice, or cannot be told from the others."""


class MissingValueError(DataError):
    """A column has nulls or NaN where a value is needed."""


class IdError(DataError):
    """Ids are of a kind that cannot name a user or an item (floats, mixed types)."""


class UnknownIdError(DataError, KeyError):
    """An id is not in the log's catalogue."""

    # KeyError would show the message in quotes.
    __str__ = Exception.__str__


class PositionError(DataError, IndexError):
    """A position is negative or beyond the number of users or items."""


class LabelError(DataError):
    """Labels are not 0/1 and no rule makes them so, or the rule leaves one class."""


class DuplicatePairError(DataError):
    """A user-item pair occurs more than once and the rows disagree."""


class EmptyLogError(DataError):
    """There is no row to work on."""


class FileFormatError(DataError):
    """A file is not what its name says: wrong format, truncated, or malformed."""


class FileLimitError(FileFormatError):
    """A file holds more than readers take unless they are told to: rows, columns, long texts, or it unpacks too far."""


class DatasetNotFoundError(DataError):
    """A data set's files are not where they were looked for."""


class DownloadError(DataError):
    """A download failed or its checksum does not match."""


class NoiseRateError(ParameterError):
    """Noise rates that leave no signal: negative, or adding up to 1 or more."""


class PredictionError(DataError):
    """Predictions have the wrong shape, do not cover a pair, or are not what the loss needs."""


class AdapterError(PredictionError):
    """A model of another library cannot be read: none that is known, or not as its adapter expects it."""


class PropensityError(DataError):
    """Propensities are not probabilities above 0, are not known where they are needed, or cannot be fitted."""


class AuditError(DataError):
    """An audit sample cannot tell the noise rates: no pair of the log in it, or one true class only."""


class ReaskError(DataError):
    """Second answers cannot tell the noise rates: too few, of one label only, or of pairs that are too much alike."""


class SurveyError(DataError):
    """A survey is not one of random pairs of the grid, or is too small to tell anything."""


class UnreachableError(SurveyError):
    """No number of pairs to ask about gives what is wanted: there are too few, or there is nothing to tell apart."""


class MissingExtraError(VerirecError, ImportError):
    """Something needs a package that is not installed; the message names the extra that brings it."""


class ModelError(ParameterError):
    """A model that does not give finite logits of pairs, or lacks what it needs."""


class NotFittedError(VerirecError, AttributeError, ValueError):
    """A recommender was asked for something before it was trained."""


class TrainingError(VerirecError, RuntimeError):
    """Training cannot go on: it diverged before anything was learnt, or a checkpoint is of another run."""


class NoMinimumError(ParameterError):
    """With these penalties a loss may fall without end, and there are no held-out rows to stop by."""


class ModelFileError(DataError):
    """A file of a model or a checkpoint is missing, damaged, changed, or of a newer version."""


class GridSizeError(DataError):
    """A grid has too many pairs for what has to visit all of them."""


class MemoryBudgetError(VerirecError, MemoryError):
    """A dense matrix, or a file that is read, would exceed the memory budget it was given."""


class DiskSpaceError(VerirecError, OSError):
    """A disk has no room for what is to be written."""


class OpenFilesError(VerirecError, RuntimeError):
    """The system lets this process have fewer files open than the work has parts."""


class EngineError(VerirecError, RuntimeError):
    """Work cannot be sent to where it should run: no cluster answers, workers lack what they need."""


class WorkerEndedError(EngineError):
    """A process that worked was ended from outside, again and again or with what it alone knew."""


class VerirecWarning(UserWarning):
    """Base of every warning: the result is valid, and something about it should be known."""


class RepeatedPairWarning(VerirecWarning):
    """Repeated pairs with one and the same label were merged into one row."""


class DroppedRowsWarning(VerirecWarning):
    """Rows of a log that cannot be used were left out, as was asked for."""


class ReusedWorkWarning(VerirecWarning):
    """Parts of long work that an earlier run finished are used again."""


class UnkeptWorkWarning(VerirecWarning):
    """Finished parts of long work cannot be kept: a run that is stopped has to do them again."""


class UnknownIdWarning(VerirecWarning):
    """Some of a file is of users or items that the log does not have, and is left out."""


class IncompleteDatasetWarning(VerirecWarning):
    """A data set's file has another number of rows than its makers published."""


class LabelRuleWarning(VerirecWarning):
    """A label rule does not hold for all parts of a data set."""


class FeatureWarning(VerirecWarning):
    """Some of the features say nothing: a column that is constant, a level that was not there in training."""


class ScoreWarning(VerirecWarning):
    """Scores are not what was asked for: metrics that need probabilities are left out, or a clip changes many."""


class OneClassWarning(VerirecWarning):
    """Labels are of one class: a metric that compares two is not defined, and NaN."""


class OverlapWarning(VerirecWarning):
    """A few rows carry much of the weight: parts of the grid are hardly ever logged."""


class AlikeUsersWarning(VerirecWarning):
    """Users rated nearly the same items, and count as if they were independent."""


class MisfitWarning(VerirecWarning):
    """Something does not fit: an estimate is outside of what is possible, or rates have not a curve's form."""


class NoiseRateWarning(VerirecWarning):
    """Noise rates that leave little signal, lie on a boundary, or rest on an assumption that may not hold."""


class SmallAuditWarning(VerirecWarning):
    """An audit sample, or a re-ask, is too small for its rates to be precise."""


class SurveyWarning(VerirecWarning):
    """A survey is small, or may not be of random pairs of the whole grid."""


class AnswersWarning(VerirecWarning):
    """People answered the same question more than once, or differently: their answers were combined."""


class DivergenceWarning(VerirecWarning):
    """A loss has no minimum, or ran away; the best state is kept."""


class VanishedFactorsWarning(VerirecWarning):
    """Factors without constants shrank to nothing: all predictions are 1/2."""


class MissingExtraWarning(VerirecWarning):
    """Something optional is not installed; what is done without it is the same, and slower."""


class CacheWarning(VerirecWarning):
    """The cache folder cannot be written; what is done without it is the same, and slower to start."""


class AlignmentWarning(VerirecWarning):
    """Nothing says whose rows a model's are: they were taken to be in the order of the log's ids."""


class TrainedRowsWarning(VerirecWarning):
    """Rows that judge a recommender are among those that it was trained on."""


class UncomparedWarning(VerirecWarning):
    """There are more recommenders than every two of them are compared of."""


class ColdStartWarning(VerirecWarning):
    """Users or items without ratings are predicted from what all have in common."""


@contextlib.contextmanager
def naming(name: str, errors: type[VerirecError] = VerirecError) -> Iterator[None]:
    """Say which recommender an error, if of such a kind, is about."""
    try:
        yield
    except errors as error:
        raise type(error)(f"{name}: {error}") from None


def warn_caller(message: str, category: type[VerirecWarning]) -> None:
    """Warn, pointing at the first line outside of verirec: the one that can do something about it."""
    # A dataclass's own __init__ says that it comes from "<string>"; a context around a function, from contextlib.
    inside = (str(Path(__file__).parent) + os.sep, "<string>", contextlib.__file__)
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
