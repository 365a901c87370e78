"""Weighted rows: MF, IPS and SNIPS, and with a correction for noise OME and OME-IPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from verirec.methods.base import Method
from verirec.training.correction import Kind, NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.objective import Objective, PseudoLabels


@dataclass(kw_only=True, eq=False, repr=False)
class MF(Method):
    r"""Matrix factorisation on the log as it stands: :math:`|O|^{-1} \sum_O e`. Koren et al. (2009)."""

    name: ClassVar[str] = "mf"
    paper: ClassVar[str] = "Koren, Bell, Volinsky 2009, Matrix factorization techniques for recommender systems"
    summary: ClassVar[str] = "the log taken for the world"
    uses_propensities: ClassVar[bool] = False
    sweeps: ClassVar[bool] = True
    takes_correction: ClassVar[bool] = True
    takes_levels: ClassVar[bool] = True

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Average the errors of the rows."""
        return PseudoLabels(correction, lambda batch: batch.weights.new_full((), 1 / batch.density))


@dataclass(kw_only=True, eq=False, repr=False)
class IPS(Method):
    r"""Inverse propensity scoring: :math:`|D|^{-1} \sum_O e / \hat p`. Schnabel et al. (2016)."""

    name: ClassVar[str] = "ips"
    paper: ClassVar[str] = "Schnabel et al. 2016, Recommendations as treatments"
    summary: ClassVar[str] = "weighs rows by 1/p"
    own_estimator: ClassVar[str] = "snips"
    sweeps: ClassVar[bool] = True
    takes_correction: ClassVar[bool] = True
    takes_levels: ClassVar[bool] = True

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Weigh the errors of the rows by 1/p."""
        return PseudoLabels(correction, lambda batch: batch.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class SNIPS(IPS):
    r"""Self-normalised: :math:`\sum_O (e / \hat p) / \sum_O (1 / \hat p)`. Swaminathan and Joachims (2015)."""

    name: ClassVar[str] = "snips"
    paper: ClassVar[str] = "Swaminathan, Joachims 2015, The self-normalized estimator for counterfactual learning"
    summary: ClassVar[str] = "weighs rows by 1/p, which add up to 1"

    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Weigh them by 1/p, made to add up to the grid."""
        return PseudoLabels(correction, _normalised)


def _normalised(batch: Batch) -> Tensor:
    return batch.weights / (batch.density * batch.weights.mean())


@dataclass(kw_only=True, eq=False, repr=False)
class OME(MF):
    r"""Noise alone: :math:`|O|^{-1} \sum_O \tilde e`. Natarajan et al. (2013)."""

    name: ClassVar[str] = "ome"
    paper: ClassVar[str] = "Natarajan et al. 2013, Learning with noisy labels; here with the paper's noise rates"
    summary: ClassVar[str] = "MF, corrected for noise"

    correction: Kind = "surrogate"


@dataclass(kw_only=True, eq=False, repr=False)
class OMEIPS(IPS):
    r"""Noise and selection: :math:`|D|^{-1} \sum_O \tilde e / \hat p` (paper, Section 3.2)."""

    name: ClassVar[str] = "ome-ips"
    paper: ClassVar[str] = "Debiased recommendation with noisy feedback, Section 3.2"
    summary: ClassVar[str] = "IPS, corrected for noise"

    correction: Kind = "surrogate"
