r"""Shares of several groups, partially pooled: those of a group with few rows are shrunk towards those of all.

Of the rows of group g and kind j, :math:`n_{gjk}` have outcome k. A group's chances :math:`T_{gj}` are taken for drawn
from a Dirichlet distribution around those of all groups together, :math:`m_j`:

.. math:: \hat T_{gjk} = \frac{n_{gjk} + s_j m_{jk}}{n_{gj} + s_j}

for a number of rows :math:`s_j` that the common shares count as. It is averaged over, each s by its likelihood, the
Dirichlet-multinomial's, and a prior under which :math:`B = s/(n + s)`, by how much a group of usual size n is shrunk
towards the others, is uniform: the one s of largest likelihood would often pool groups completely. Of G groups B is
:math:`(G - 3)/(G - 1)` of what s says (Efron and Morris 1973): two or three groups do not tell how much groups differ,
and are left apart but for one row in common. Variances have three parts: of a group's own rows, of the common shares,
and of s. With two outcomes this is the beta-binomial model of a rate. Groups without rows have the common shares.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Array = npt.NDArray[np.float64]

_TRIED: Final = 80
_LEAST_ROWS: Final = 0.5
_MOST_ROWS: Final = 1e5
_HALF: Final = 0.5


class Shrunk(NamedTuple):
    """Shares by group, partially pooled.

    Parameters
    ----------
    shares
        Shape (groups, rows, columns): along the last axis they add up to 1.
    variances
        Of these, the same shape.
    own
        By how much each group's shares rest on its own counts, and not on those of all; shape (groups, rows).
    """

    shares: Array
    variances: Array
    own: Array


def shrink(counts: Array) -> Shrunk:
    """Shrink each group's shares towards those of all, by as much as the groups' differences say.

    Parameters
    ----------
    counts
        Shape (groups, rows, columns); shares are within rows.

    Examples
    --------
    >>> alike = shrink(np.array([[[9.0, 1.0]], [[18.0, 2.0]], [[8.0, 2.0]]]))
    >>> alike.shares[:, 0, 1].round(3).tolist()
    [0.103, 0.102, 0.194]
    """
    parts = [_of_row(counts[:, row]) for row in range(counts.shape[1])]
    shares, variances, own = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
    return Shrunk(shares, variances, own)


def _of_row(counts: Array) -> tuple[Array, Array, Array]:
    """Shrink shares, shape (groups, columns): means and variances over all s, by how likely each is."""
    total, sizes = counts.sum(axis=0), counts.sum(axis=1)
    common = (total + _HALF) / (total + _HALF).sum()
    tried = np.geomspace(_LEAST_ROWS, _MOST_ROWS, _TRIED)[:, None, None]
    alpha = tried * common
    likely = (gammaln(tried) - gammaln(sizes[:, None] + tried)).sum(axis=(1, 2))
    likely += (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=(1, 2))
    # By how much shares are shrunk, s / (n + s), is uniform before the counts are seen.
    typical = max(float(sizes[sizes > 0].mean()) if sizes.any() else 1.0, 1.0)
    likely += (np.log(tried) - 2 * np.log(typical + tried)).ravel()
    weights = np.exp(likely - likely.max())
    weights /= weights.sum()
    n_groups = int((sizes > 0).sum())
    drawn = max(n_groups - 3, 0) / max(n_groups - 1, 1) * tried / (sizes[:, None] + tried)
    rows = np.where(sizes[:, None] > 0, np.maximum(sizes[:, None] * drawn / (1 - drawn), 2 * _HALF), tried)
    own = sizes[:, None] / (sizes[:, None] + rows)
    shares = (counts + rows * common) / (sizes[:, None] + rows)
    of_common = common * (1 - common) * (1 / ((tried + 1) * max(n_groups, 1)) + 1 / max(total.sum(), 1.0))
    within = shares * (1 - shares) / (sizes[:, None] + rows + 1) + (1 - own) ** 2 * of_common
    mean = np.tensordot(weights, shares, axes=1)
    variances = np.tensordot(weights, within + (shares - mean) ** 2, axes=1)
    return mean, variances, np.tensordot(weights, own[..., 0], axes=1)
