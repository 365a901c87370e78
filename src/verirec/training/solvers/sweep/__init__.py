r"""Sweeps: a solver for factor models whose cost grows with the log and not with the grid.

With cross-entropy many methods minimise, times the number of pairs :math:`|D|`,

.. math:: \sum_D [\mathrm{softplus}(z) - g z] + \sum_O [a\,\mathrm{softplus}(z) - b z]
   + \tfrac12 \sum_j r_j \theta_j^2

with the first sum only where errors are imputed, and then a = 0. Each sweep lowers a quadratic that lies above it
(majorise-minimise, Hunter and Lange 2004): softplus bends by at most 1/4, which all pairs of the grid share, and the
rows' by what their logits say. What belongs to one user does not depend on what belongs to another, so that all users
are improved at once, then all items.
"""

from verirec.training.solvers.sweep.rows import compiled_rows
from verirec.training.solvers.sweep.solver import SweepSolver

__all__ = ["SweepSolver", "compiled_rows"]
