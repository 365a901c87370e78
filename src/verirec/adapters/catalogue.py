"""Which libraries' models there are adapters for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from verirec.adapters import (
    classifiers,
    cornac_models,
    frames,
    implicit_models,
    lenskit_pipelines,
    lightfm_models,
    matrices,
    recbole_models,
    rectools_models,
)
from verirec.adapters.adapted import Adapted, Extras
from verirec.data.feedback_log import FeedbackLog


class Adapter(NamedTuple):
    """How models of a library are read.

    Parameters
    ----------
    library
        Its name on PyPI.
    modules
        Top-level modules that its classes come from: they are told by these, and the library is never imported.
    version
        That the adapter is tested with.
    takes, ids, gives
        What models, how their users and items are matched with a log's, and what comes out, in words.
    read
        Makes predictions for a log of a model.
    """

    library: str
    modules: tuple[str, ...]
    version: str
    takes: str
    ids: str
    gives: str
    read: Callable[[Any, FeedbackLog, Extras], Adapted]


_BY_POSITION: Final = "the log's positions, or user_ids= and item_ids="

CATALOGUE: Final = (
    Adapter(
        "implicit",
        ("implicit",),
        "0.7",
        "AlternatingLeastSquares, BayesianPersonalizedRanking, LogisticMatrixFactorization",
        _BY_POSITION,
        "scores",
        implicit_models.read,
    ),
    Adapter(
        "scikit-learn",
        ("sklearn",),
        "1.4 and later",
        "fitted classifiers of labels 0 and 1, and what derives from them",
        "features= of pairs by position, or the log's own features",
        "probabilities; scores of those without predict_proba",
        classifiers.read,
    ),
    Adapter(
        "lenskit",
        ("lenskit",),
        "2025.8",
        "trained pipelines with a scorer",
        "the log's ids",
        "scores",
        lenskit_pipelines.read,
    ),
    Adapter("cornac", ("cornac",), "3.0", "fitted models", "the log's ids", "scores", cornac_models.read),
    Adapter(
        "rectools", ("rectools",), "0.19", "fitted models", "the log's ids, by dataset=", "scores", rectools_models.read
    ),
    Adapter(
        "recbole",
        ("recbole",),
        "1.2",
        "trained models that have full_sort_predict",
        "the log's ids, by dataset=",
        "scores",
        recbole_models.read,
    ),
    Adapter(
        "lightfm", ("lightfm",), "1.17", "fitted models without features", _BY_POSITION, "scores", lightfm_models.read
    ),
    Adapter(
        "pandas, polars, pyarrow",
        ("pandas", "polars", "pyarrow"),
        "any",
        "frames of top-k lists (user, item, rank), of scores (user, item, score), or with a row a user",
        "the log's ids",
        "rankings; scores",
        frames.read,
    ),
)

MATRIX: Final = Adapter(
    "matrices", (), "any", "matrices of scores, users by items", "user_ids= and item_ids=", "scores", matrices.read
)
"""What is taken where ids come with it; without them a matrix is by position, and needs no adapter."""


def adapter_of(model: object) -> Adapter | None:
    """Return the adapter for a model by the modules of its classes; `None` if there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> adapter_of(pd.DataFrame()).library, adapter_of(0.5)
    ('pandas, polars, pyarrow', None)
    """
    for kind in type(model).__mro__:
        module = kind.__module__.partition(".")[0]
        for adapter in CATALOGUE:
            if module in adapter.modules:
                return adapter
    return None
