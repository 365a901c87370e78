"""Large symmetric linear systems, of which only products are at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from verirec.data.threads import one_product_thread

Array = npt.NDArray[np.float64]


def conjugate_gradients(
    times: Callable[[Array], Array], right: Array, roughly: Callable[[Array], Array], *, tolerance: float, steps: int
) -> Array:
    """Solve a symmetric positive definite system, preconditioned.

    Parameters
    ----------
    times
        Multiplies a vector of shape (n,) by the matrix.
    right
        The right side, shape (n,).
    roughly
        Solves nearly the same system, symmetric and positive definite too: the matrix's diagonal, or what is nearer.
    tolerance, steps
        When to stop: at this size of the residual relative to the right side, or after so many steps.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradients(lambda v: matrix @ v, np.array([3.0, 4.0]), lambda v: v / 3, tolerance=1e-9, steps=9)
    array([1., 1.])
    """
    from scipy.sparse.linalg import LinearOperator, cg  # Takes long to import, and is not always needed.

    size = (len(right), len(right))
    matrix = LinearOperator(size, matvec=times, dtype=np.float64)
    inverse = LinearOperator(size, matvec=roughly, dtype=np.float64)
    with one_product_thread():
        return np.asarray(cg(matrix, right, rtol=tolerance, atol=0.0, maxiter=steps, M=inverse)[0])
