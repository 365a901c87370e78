"""Noise that a log allows without an audit: estimates are then ranges over all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verirec.exceptions import NoiseRateError
from verirec.losses.noise_rates import NoiseRegion
from verirec.losses.transitions import TransitionMatrix


@dataclass(frozen=True, eq=False)
class TransitionRegion:
    """Noise between levels of one form, from none to the most that a log allows, or that was looked at.

    Parameters
    ----------
    matrices
        From the least noise to the most.
    form
        What the matrices have in common, in a word.
    most
        How often levels are taken for others at the most, on average over levels.
    cut_off
        Whether the log would allow more, and the region ends where hardly any signal is left.

    Examples
    --------
    >>> region = TransitionRegion(tuple(TransitionMatrix.band(3, rate) for rate in (0.0, 0.1, 0.2)), "band", 0.13)
    >>> len(region.lattice)
    3
    """

    matrices: tuple[TransitionMatrix, ...]
    form: str
    most: float
    cut_off: bool = False

    def __post_init__(self) -> None:
        given: Any = self.matrices
        object.__setattr__(self, "matrices", tuple(given) if isinstance(given, list | tuple) else ())
        sizes = {one.n_levels for one in self.matrices if isinstance(one, TransitionMatrix)}
        if len(sizes) != 1 or not all(isinstance(one, TransitionMatrix) for one in self.matrices):
            raise NoiseRateError("a region of transition matrices needs at least one, and all of as many levels")

    @property
    def n_levels(self) -> int:
        """K."""
        return self.matrices[0].n_levels

    @property
    def corners(self) -> tuple[TransitionMatrix, ...]:
        """Where estimates may have their ends: an inverse is not linear in the noise, so all of them."""
        return self.matrices

    @property
    def lattice(self) -> tuple[TransitionMatrix, ...]:
        """As `corners`."""
        return self.matrices


AnyRegion = NoiseRegion | TransitionRegion
"""What makes a range of an estimate."""
