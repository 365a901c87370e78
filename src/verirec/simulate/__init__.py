"""Simulated worlds: selective and noisy logs whose truth is known in every cell."""

from verirec.simulate.completion import complete_ratings
from verirec.simulate.graded import GradedWorld, on_stars, stars
from verirec.simulate.levels import LEVEL_PROBABILITIES, LEVEL_PROPORTIONS, level_propensities, levels_by_rank
from verirec.simulate.make import on_completed, on_levels, on_matrix, world
from verirec.simulate.prediction_matrices import prediction_matrices
from verirec.simulate.world import World, WorldCells

__all__ = [
    "LEVEL_PROBABILITIES",
    "LEVEL_PROPORTIONS",
    "GradedWorld",
    "World",
    "WorldCells",
    "complete_ratings",
    "level_propensities",
    "levels_by_rank",
    "on_completed",
    "on_levels",
    "on_matrix",
    "on_stars",
    "prediction_matrices",
    "stars",
    "world",
]
