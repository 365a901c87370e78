"""Whose preferences the semi-synthetic study is about: the five levels of every pair, and true labels if known."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from verirec.checks import one_of
from verirec.data.cells import DenseCells
from verirec.data.datasets import CATALOGUE, existing_home, find_dataset, load_dataset
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import DataError
from verirec.losses import NoiseRates
from verirec.simulate import World, complete_ratings, levels_by_rank, on_levels
from verirec.simulate.levels import Levels
from verirec.simulate.opinions import Opinions
from verirec.studies.semi_synthetic.plans import PREFERENCES, Setting

_SMOOTHING: Final = 1.0
LIKED_ABOVE: Final = 2.0
"""Watch ratio above which KuaiRec's complete block has a video as liked."""
MOST_ABSENT: Final = 0.01
"""Share of pairs that a published matrix may lack: KuaiRec's has .4% of its block without a ratio."""


@dataclass(frozen=True, eq=False)
class Population:
    """People and items.

    Parameters
    ----------
    levels
        1 to 5, shape (n_users, n_items): how likely a pair is to be liked and to be logged.
    true_labels
        What people truly prefer, 0/1 of the same shape; `None` if it is drawn from the levels' probabilities.
    """

    levels: Levels
    true_labels: npt.NDArray[np.int8] | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of all of it."""
        digest = hashlib.sha256(repr(self.levels.shape).encode())
        digest.update(self.levels.tobytes())
        digest.update(b"" if self.true_labels is None else self.true_labels.tobytes())
        return digest.hexdigest()

    def draw(self, setting: Setting, random: np.random.Generator) -> World:
        """Draw a world: what is logged, what people truly prefer unless that is known, and what they say.

        Examples
        --------
        >>> population = Population(np.full((20, 30), 4, np.int8), np.ones((20, 30), np.int8))
        >>> bool(population.draw(Setting("a"), np.random.default_rng(0)).true_labels.all())
        True
        """
        rates = NoiseRates(setting.rho01, setting.rho10)
        world = on_levels(
            self.levels,
            noise_rates=rates,
            probabilities=setting.gamma,
            propensities=setting.propensities,
            random_state=random,
        )
        if self.true_labels is None:
            return world
        log = world.log
        opinions = Opinions.drawn(DenseCells(self.true_labels), rates, random)
        labels = opinions.all(log.users, log.items)[2]
        own = FeedbackLog.from_arrays(log.users, log.items, labels, n_users=log.n_users, n_items=log.n_items)
        return replace(world, log=own, opinions=opinions)


def load_population(preferences: str, data_home: str | Path | None = None) -> Population:
    """Load one by name.

    "movielens-100k": ratings completed by matrix factorisation and sorted into levels, as in the paper; true labels
    are drawn. "kuairec": the true labels are people's own, in the complete block; levels sort the pairs by how often
    the user and the item have a positive label, in the paper's shares. Where KuaiRec is at hand as its makers publish
    it, the block is made of that (see `block_of_ratios`).
    """
    one_of("preferences", preferences, PREFERENCES)
    data = load_dataset(preferences, data_home=data_home)
    if data.train is not None:
        return Population(levels_by_rank(complete_ratings(data.train)))
    if data.complete is not None:
        return of_people(data.complete)
    if data.test is None:
        raise DataError(f"{preferences} must have a label for every pair; got none")
    return of_people(block_of_ratios(data.test))


def has_population(preferences: str, data_home: str | Path | None = None) -> bool:
    """Tell whether the files of one are at hand, in any form that it is made of."""
    one_of("preferences", preferences, PREFERENCES)
    return find_dataset(CATALOGUE[preferences], existing_home(data_home)) is not None


def block_of_ratios(log: FeedbackLog) -> npt.NDArray[np.int8]:
    """Make the complete block of watch ratios: liked above `LIKED_ABOVE`; pairs without a ratio count as not liked.

    Refused where more than `MOST_ABSENT` of all pairs are without one.

    Examples
    --------
    >>> users, items, ratios = [0, 0, 1, 1], [0, 1, 0, 1], [0.5, 2.5, 2.0, 3.0]
    >>> block_of_ratios(FeedbackLog.from_arrays(users, items, ratios, n_users=2, n_items=2, positive_from=1)).tolist()
    [[0, 1], [0, 1]]
    """
    absent = log.n_cells - len(log)
    if absent > MOST_ABSENT * log.n_cells:
        raise DataError(
            f"preferences need a watch ratio for at least {1 - MOST_ABSENT:.0%} of all pairs; "
            f"{absent:,} of {log.n_cells:,} are without one"
        )
    if log.ratings is None:
        raise DataError("preferences need watch ratios; got labels only")
    block = np.zeros((log.n_users, log.n_items), np.int8)
    block[log.users, log.items] = log.ratings > LIKED_ABOVE
    return block


def of_people(true_labels: npt.NDArray[np.int8]) -> Population:
    r"""Sort pairs into levels by :math:`logit(\bar r_u) + logit(\bar r_i)`, the labels themselves being the truth.

    Examples
    --------
    >>> of_people(np.array([[1, 1], [0, 1]], np.int8)).levels.tolist()
    [[1, 3], [1, 2]]
    """
    scores = np.zeros(true_labels.shape)
    for axis in (0, 1):
        count = true_labels.shape[axis]
        share = (true_labels.sum(axis=axis, keepdims=True) + _SMOOTHING) / (count + 2 * _SMOOTHING)
        scores += logit(share)
    return Population(levels_by_rank(scores), true_labels)
