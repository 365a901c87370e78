"""Saving and loading: tensors in one file, ids and parameters in a JSON beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from verirec.atomic_write import replace_file
from verirec.data.ids import IdMap
from verirec.exceptions import ModelFileError, ParameterError
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.methods.base import Method
from verirec.methods.catalogue import catalogue
from verirec.models import CustomModel, build_model
from verirec.models.factors import SideInformation
from verirec.training.checkpoints import FORMAT, read_tensors, write_tensors

TENSORS: Final = "model.safetensors"
FACTS: Final = "model.json"
_SIDES: Final = ("user_features", "item_features", "user_logits", "item_logits")


def save_method(method: Method, folder: Path) -> Path:
    """Save a fitted method into a folder, the JSON last: a folder without it is no model."""
    if isinstance(method.model_, CustomModel):
        raise ParameterError(
            "a module of your own cannot be saved by verirec, which would have to pickle it: save its state_dict()"
        )
    tensors = dict(method.model_.state_dict())
    tensors |= {name: value for name in _SIDES if (value := getattr(method.model_, name, None)) is not None}
    tensors |= {f"cold_{side}": torch.as_tensor(getattr(method, f"cold_{side}_")) for side in ("users", "items")}
    facts = {
        "format": FORMAT,
        "method": method.name,
        "parameters": method.parameters_,
        "user_ids": _ids(method.user_ids_),
        "item_ids": _ids(method.item_ids_),
        "noise_rates": _rates(method.noise_rates_),
        "history": method.history_,
        "stopped_because": method.stopped_because_,
        "best_epoch": method.best_epoch_,
        "judge": method.judge_,
        "solver": method.solver_,
        "held_out_error": method.held_out_error_ if np.isfinite(method.held_out_error_) else None,
    }
    text = json.dumps(facts, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / TENSORS, tensors, {"kind": "model", "facts": text})
    replace_file(folder / FACTS, text.encode())
    return folder


def load(folder: str | Path) -> Method:
    """Load a model that `save` wrote; one that was changed, or is of a newer version, is a `ModelFileError`."""
    path = Path(folder)
    if not (path / FACTS).is_file():
        raise ModelFileError(f"{path} is no model folder: it has no {FACTS}")
    tensors, wrapped = read_tensors(path / TENSORS)
    if wrapped.get("kind") != "model":
        raise ModelFileError(f"{path / TENSORS}: not a model")
    text = (path / FACTS).read_bytes().decode(errors="replace")
    if wrapped.get("facts") != text:
        raise ModelFileError(f"{path / FACTS}: its contents were changed after it was written")
    facts = json.loads(text)
    method = catalogue[facts["method"]](**facts["parameters"])
    method.user_ids_, method.item_ids_ = (IdMap.in_order(facts[side]) for side in ("user_ids", "item_ids"))
    method.cold_users_, method.cold_items_ = (tensors.pop(f"cold_{side}").numpy() for side in ("users", "items"))
    side = SideInformation(*(tensors.pop(name, None) for name in _SIDES))
    shape = len(method.user_ids_), len(method.item_ids_)
    built = build_model(
        method.model, shape, method.dim, constants=method.constants, side=side, random=torch.Generator()
    )
    built.load_state_dict(tensors)
    method.model_ = built.eval()
    method.models_, method.parameters_ = {"prediction": method.model_}, facts["parameters"]
    method.noise_rates_ = _read_rates(facts["noise_rates"])
    method.propensities_ = None
    method.history_, method.stopped_because_ = facts["history"], facts["stopped_because"]
    method.best_epoch_, method.judge_, method.solver_ = facts["best_epoch"], facts["judge"], facts["solver"]
    method.held_out_error_ = float("nan") if facts["held_out_error"] is None else facts["held_out_error"]
    return method


def _ids(ids: IdMap) -> list[Any]:
    values: list[Any] = ids.ids().tolist()
    return values


def _rates(rates: NoiseRates | GroupedNoiseRates | None) -> Any:
    """Return rates as JSON holds them, those of each group with whose groups they are; the covariance is left out."""
    if isinstance(rates, NoiseRates):
        return [rates.rho01, rates.rho10]
    if rates is None:
        return None
    groups = {name: getattr(rates, name) for name in ("user_groups", "item_groups")}
    kept = {name: np.asarray(of).tolist() for name, of in groups.items() if of is not None}
    return {"rates": [_rates(one) for one in rates.rates], **kept}


def _read_rates(held: Any) -> NoiseRates | GroupedNoiseRates | None:
    if isinstance(held, list):
        return NoiseRates(held[0], held[1])
    if held is None:
        return None
    rates = tuple(NoiseRates(*both) for both in held.pop("rates"))
    return GroupedNoiseRates(rates, **{name: np.array(groups) for name, groups in held.items()})
