"""What a recommender would lose that knows nothing but the share of liked pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from verirec.estimation import Estimate

if TYPE_CHECKING:
    from verirec.assessment.findings import Findings


class ConstantLoss(NamedTuple):
    """The loss of the best constant, where the share of liked pairs is known, and the ends of its interval."""

    value: float
    low: float
    high: float


def _entropy(share: float) -> float:
    return -sum(part * float(np.log(part)) for part in (share, 1 - share) if part > 0)


_LEAST: Final[dict[str, Callable[[float], float]]] = {
    "log": _entropy,
    "squared": lambda share: share * (1 - share),
    "absolute": lambda share: min(share, 1 - share),
}
"""By the share of liked pairs, what the best constant loses on average: all rise up to a share of one half."""


def constant_loss(found: Findings) -> ConstantLoss | None:
    r"""Return what the best constant loses: with q the share of liked pairs, :math:`-q \log q - (1 - q) \log (1 - q)`.

    That is of the log loss; of the squared loss it is q(1 - q), of the absolute loss min(q, 1 - q). Its interval is
    that of the share. There is none of levels, of other losses, and where the share itself is a range.

    Examples
    --------
    >>> from verirec import SurveySample, simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> users, items = np.random.default_rng(0).integers([[200], [300]], size=(2, 400))
    >>> survey = SurveySample(users, items, world.true_labels[users, items])
    >>> found = constant_loss(assess(world.log, survey=survey, noise_rates=world.noise_rates))
    >>> found.low < world.true_inaccuracy(np.full((200, 300), world.true_labels.mean())) < found.high
    True
    """
    share, least = found.liked_corrected, _LEAST.get(found.loss)
    if least is None or found.stars is not None or not isinstance(share, Estimate):
        return None
    low, high = (min(max(end, 0.0), 1.0) for end in share.interval)
    ends = least(low), least(high)
    return ConstantLoss(
        least(min(max(share.value, 0.0), 1.0)), min(ends), least(0.5) if low < 0.5 < high else max(ends)
    )
