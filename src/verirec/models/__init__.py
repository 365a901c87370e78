"""Models of what people like: always logits, always of (users, items)."""

from verirec.models.building import ModelKind, build_model
from verirec.models.cumulative import CumulativeModel
from verirec.models.factors import FactorModel, Penalties
from verirec.models.ncf import NeuralModel
from verirec.models.scoring import CustomModel, Model

__all__ = [
    "CumulativeModel",
    "CustomModel",
    "FactorModel",
    "Model",
    "ModelKind",
    "NeuralModel",
    "Penalties",
    "build_model",
]
