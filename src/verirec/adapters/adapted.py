"""What an adapter makes of another library's model, and what it may be told besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from verirec.data.ids import IdMap
from verirec.data.predictions import PredictionsLike


@dataclass(frozen=True, eq=False, repr=False)
class Adapted:
    """Another library's model as predictions for the grid of a log; taken wherever predictions are.

    Parameters
    ----------
    predictions
        In one of the forms that predictions have, by the log's positions.
    source
        Library, version and class, for messages.
    probabilities
        Whether they are probabilities; `None` where their range tells. Where they are not, `estimate`, `compare` and
        `assess` set rows apart to calibrate them by, and say so.
    ids
        Of the users and items of the log that it was made for: positions mean nothing for another's.
    """

    predictions: PredictionsLike
    source: str
    probabilities: bool | None
    ids: tuple[IdMap, IdMap] | None = None

    def __repr__(self) -> str:
        given = "scores of pairs" if isinstance(self.predictions, tuple) else repr(self.predictions)
        if isinstance(self.predictions, np.ndarray):
            given = f"scores of {self.predictions.shape[0]:,} users x {self.predictions.shape[1]:,} items"
        kinds = {True: "probabilities", False: "scores", None: given}
        return f"Adapted({self.source}: {kinds[self.probabilities]})"


@dataclass(frozen=True)
class Extras:
    """What a model itself may not know: see `adapt`."""

    user_ids: Any = None
    item_ids: Any = None
    dataset: Any = None
    features: Callable[[Any, Any], Any] | None = None
    user: str | None = None
    item: str | None = None
    score: str | None = None


def source_of(model: object) -> str:
    """Return what a model is called in messages: its library, the version that is installed, and its class.

    Examples
    --------
    >>> import numpy as np
    >>> source_of(np.random.default_rng(0)) == f"numpy {np.__version__}'s Generator"
    True
    """
    kind = type(model)
    module = kind.__module__.partition(".")[0]
    library = {"sklearn": "scikit-learn"}.get(module, module)
    try:
        return f"{library} {version(library)}'s {kind.__name__}"
    except PackageNotFoundError:
        return f"{library}'s {kind.__name__}"
