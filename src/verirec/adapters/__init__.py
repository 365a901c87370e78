"""Other libraries' models and lists, as predictions."""

from verirec.adapters.adapt import adapt
from verirec.adapters.adapted import Adapted
from verirec.adapters.catalogue import CATALOGUE

__all__ = ["CATALOGUE", "Adapted", "adapt"]
