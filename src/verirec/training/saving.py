"""Files of trained models: tensors in one file, what else there is in a JSON beside it; nothing is pickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from verirec.atomic_write import replace_together
from verirec.exceptions import ModelFileError, ParameterError
from verirec.formatting import short
from verirec.losses import GroupedNoiseRates, NoiseRates, TransitionMatrix
from verirec.models import FactorModel, Model, NeuralModel, build_model
from verirec.models.covariates import Covariates
from verirec.models.factors import SideInformation
from verirec.sole_writer import named_place
from verirec.training.checkpoints import file_of_tensors, read_tensors

TENSORS: Final = "model.safetensors"
FACTS: Final = "model.json"
_LONGEST_NAME: Final = 4_000
"""Characters of a folder's name: systems end at 4,096 bytes, and would say so by an error of their own."""
_SIDES: Final = ("user_features", "item_features")


def write_model(place: str | Path, model: Model, more: dict[str, Tensor], facts: dict[str, Any]) -> Path:
    """Write a model into a folder, with more tensors and with facts; the JSON last: a folder without it is no model.

    Parameters
    ----------
    place
        A folder, made where it is not there.
    model
        One of verirec's own kinds.
    more
        Tensors by names that the model does not use.
    facts
        As JSON can hold them.
    """
    folder = named_place(place)
    if not isinstance(model, FactorModel | NeuralModel):
        raise ParameterError(
            "a module of your own cannot be saved by verirec, which would have to pickle it: save its state_dict()"
        )
    tensors = dict(model.state_dict()) | more
    tensors |= {name: value for name in _SIDES if (value := getattr(model, name, None)) is not None}
    if isinstance(model, FactorModel) and model.covariates is not None:
        tensors |= model.covariates.tensors()
    text = json.dumps(facts | {"model": _description(model)}, indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = file_of_tensors(tensors, {"kind": "model", "facts": text})
        replace_together({folder / TENSORS: content, folder / FACTS: text.encode()})
    except OSError as error:
        raise ParameterError(f"cannot write to {short(str(folder))}: {error.strerror or error}") from None
    return folder


def read_model(folder: Path) -> tuple[Model, dict[str, Tensor], dict[str, Any]]:
    """Read back a model, the other tensors and the facts; what was changed since is a `ModelFileError`.

    So is whatever does not make a model: shapes are compared before anything of their size is made, and numbers that
    are not finite are refused.
    """
    if len(str(folder)) > _LONGEST_NAME or not (folder / FACTS).is_file():
        raise ModelFileError(f"{str(folder)[:300]} is no model folder: it has no {FACTS}")
    tensors, wrapped = read_tensors(folder / TENSORS)
    if wrapped.get("kind") != "model":
        raise ModelFileError(f"{folder / TENSORS}: not a model")
    text = (folder / FACTS).read_bytes().decode(errors="replace")
    if wrapped.get("facts") != text:
        raise ModelFileError(f"{folder / FACTS}: its contents were changed after it was written")
    facts = json.loads(text)
    _check_numbers(tensors)
    model = _built(facts.pop("model"), (len(facts["user_ids"]), len(facts["item_ids"])), tensors)
    own = set(model.state_dict())
    return model, {name: value for name, value in tensors.items() if name not in own}, facts


def _check_numbers(tensors: dict[str, Tensor]) -> None:
    """Refuse tensors with values that are not finite; a covariate that is the same for all has an endless scale."""
    for name, value in tensors.items():
        allowed = ~value.isnan() if name.endswith(".scale") else value.isfinite()
        if not allowed.all():
            raise ValueError(f"{name} has values that are not finite")


def _built(about: dict[str, Any], shape: tuple[int, int], tensors: dict[str, Tensor]) -> Model:
    """Make a model of a file's tensors, and have it predict the corners of its grid; takes its features out of them."""
    kind, dim, constants = about["kind"], about["dim"], about["constants"]
    if type(kind) is not str or type(dim) is not int or type(constants) is not bool:
        raise ValueError(f"a model is described by a kind, a size and whether it has constants; got {short(about)}")
    users, items = (tensors.pop(name, None) for name in _SIDES)
    for features, size in zip((users, items), shape, strict=True):
        if features is not None and (features.ndim != 2 or len(features) != size):
            raise ValueError(f"features must have {size:,} rows; got shape {tuple(features.shape)}")
    side = SideInformation(users, items, Covariates.of_tensors(tensors, shape))
    # Shapes without contents: what a file claims costs nothing until its tensors have these shapes.
    with torch.device("meta"):
        model = build_model(kind, shape, dim, constants=constants, side=side, random=torch.Generator())
    wanted = model.state_dict()
    for name, like in wanted.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (like.shape, like.dtype):
            raise ValueError(f"{name} must be {like.dtype} of shape {tuple(like.shape)}; got {tuple(found.shape)}")
    model.load_state_dict({name: tensors[name] for name in wanted}, assign=True)
    corners = torch.meshgrid(*(torch.tensor([0, size - 1]) for size in shape), indexing="ij")
    with torch.no_grad():
        if not model(*(side.flatten() for side in corners)).isfinite().all():
            raise ValueError("the model's logits are not finite")
    return model.eval()


def _description(model: FactorModel | NeuralModel) -> dict[str, Any]:
    """Return what `build_model` needs to make such a model."""
    kind = "ncf" if isinstance(model, NeuralModel) else "features" if model.has_features else "mf"
    return {"kind": kind, "dim": model.dim, "constants": model.constants}


def plain_rates(rates: NoiseRates | GroupedNoiseRates | TransitionMatrix | None) -> Any:
    """Return rates as JSON holds them, those of each group with whose groups they are; the covariance is left out."""
    if isinstance(rates, TransitionMatrix):
        return {"matrix": rates.matrix.tolist()}
    if isinstance(rates, NoiseRates):
        return [rates.rho01, rates.rho10]
    if rates is None:
        return None
    groups = {name: getattr(rates, name) for name in ("user_groups", "item_groups")}
    kept = {name: np.asarray(of).tolist() for name, of in groups.items() if of is not None}
    return {"rates": [plain_rates(one) for one in rates.rates], **kept}


def read_rates(held: Any) -> NoiseRates | GroupedNoiseRates | TransitionMatrix | None:
    """Read back what `plain_rates` made."""
    if isinstance(held, dict) and "matrix" in held:
        return TransitionMatrix(held["matrix"])
    if isinstance(held, list):
        return NoiseRates(held[0], held[1])
    if held is None:
        return None
    rates = tuple(NoiseRates(*both) for both in held["rates"])
    groups = {name: np.array(groups) for name, groups in held.items() if name != "rates"}
    return GroupedNoiseRates(rates, **groups)
