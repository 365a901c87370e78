"""Reading a recommender back: all of it, or one named error."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verirec.data.feature_columns import FeatureScale
from verirec.data.ids import IdMap
from verirec.data.pair_sketch import PairSketch
from verirec.estimation.curves import PlattCurve
from verirec.estimation.inputs import KnownNoise
from verirec.formatting import names_in_words
from verirec.models import Model
from verirec.sole_writer import named_place
from verirec.training.checkpoints import whole
from verirec.training.heads import Head, read_head
from verirec.training.report import TrainingReport
from verirec.training.saving import read_model, read_rates


class Parts(NamedTuple):
    """What a `Recommender` is made of, in its order."""

    model: Model
    user_ids: IdMap
    item_ids: IdMap
    cold_users: npt.NDArray[np.bool_]
    cold_items: npt.NDArray[np.bool_]
    noise_rates: KnownNoise | None
    report: TrainingReport
    calibration: PlattCurve | None
    user_scale: FeatureScale | None
    head: Head
    trained_on: PairSketch | None


def read_recommender(folder: str | Path) -> Parts:
    """Read what `Recommender.save` wrote; whatever else a folder holds is a `ModelFileError`."""
    place = named_place(folder)
    with whole(place):
        model, masks, facts = read_model(place)
        if set(masks) != {"cold_users", "cold_items"}:
            raise ValueError(f"its tensors are not those of such a model: {names_in_words(sorted(masks))}")
        users, items = (IdMap.in_order(facts[name]) for name in ("user_ids", "item_ids"))
        return Parts(
            model,
            users,
            items,
            _mask(masks["cold_users"], len(users)),
            _mask(masks["cold_items"], len(items)),
            read_rates(facts["noise_rates"]),
            TrainingReport.read(facts),
            None if facts["calibration"] is None else PlattCurve.read(facts["calibration"]),
            None if facts["user_scale"] is None else FeatureScale.read(facts["user_scale"]),
            read_head(facts["head"]),
            None if facts["trained_on"] is None else PairSketch.read(facts["trained_on"]),
        )


def _mask(given: Tensor, size: int) -> npt.NDArray[np.bool_]:
    if given.dtype != torch.bool or given.shape != (size,):
        raise ValueError(f"a mask must be {size:,} booleans; got {given.dtype} of shape {tuple(given.shape)}")
    return np.asarray(given.numpy())
