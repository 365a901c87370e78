"""Filling in a rating matrix by matrix factorisation, as the paper does with MovieLens 100K."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from verirec.checks import real_number, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import DataError, EmptyLogError, MemoryBudgetError, ParameterError
from verirec.formatting import bytes_in_words
from verirec.randomness import RandomState, as_generator
from verirec.simulate.world import DEFAULT_BUDGET, MOST_FACTORS

Matrix = npt.NDArray[np.float64]


def complete_ratings(
    log: FeedbackLog,
    *,
    rank: int = 8,
    penalty: float = 8.0,
    sweeps: int = 12,
    random_state: RandomState = 0,
    memory_budget: int = DEFAULT_BUDGET,
) -> Matrix:
    r"""Predict every rating of the grid by regularised matrix factorisation with user and item constants.

    Alternating least squares on :math:`\sum_O (r - m - c_u - d_i - u \cdot v)^2 + \lambda(|U|^2 + |V|^2 + |c|^2 +
    |d|^2)`.

    Parameters
    ----------
    log
        Must carry ratings, that is have been made with `positive_from`.
    rank, penalty, sweeps
        Length of the vectors, lambda, and how often both sides are solved for.
    random_state
        Of the starting point. The default is a seed, so that a log has one completion.
    memory_budget
        Bytes that the completed matrix may take.

    Returns
    -------
    The completed ratings, shape (n_users, n_items).

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 1, 0], [5, 1, 5], n_users=2, n_items=2, positive_from=3)
    >>> completed = complete_ratings(log, rank=1, penalty=0.1)
    >>> bool(completed[1, 0] > completed[1, 1])
    True
    """
    given = log.ratings if checked_log(log, levels=True).levels is None else log.label_values
    if given is None:
        raise DataError("the log must carry ratings to complete: make it with positive_from=...")
    rank, sweeps = whole_number("rank", rank, max=MOST_FACTORS), whole_number("sweeps", sweeps)
    penalty = real_number("penalty", penalty, above=0)
    if len(log) == 0:
        raise EmptyLogError("the log is empty: there is no rating to complete from")
    if 8 * log.n_cells > memory_budget:
        raise MemoryBudgetError(
            f"completing {log.n_users:,} x {log.n_items:,} ratings would take {bytes_in_words(8 * log.n_cells)}, above "
            f"the memory_budget of {bytes_in_words(memory_budget)}"
        )
    mean = float(given.mean())
    centred = sparse.csr_array(
        (given.astype(np.float64) - mean, (log.users, log.items)), shape=(log.n_users, log.n_items)
    )
    by_user, by_item = centred, sparse.csr_array(centred.T)
    random = as_generator(random_state)
    # The last column is the side's own constant.
    users = np.zeros((log.n_users, rank + 1))
    items = np.column_stack([random.normal(0, 0.1, (log.n_items, rank)), np.zeros(log.n_items)])
    try:
        for _ in range(sweeps):
            users = _solve(by_user, items, penalty)
            items = _solve(by_item, users, penalty)
    except np.linalg.LinAlgError:
        raise ParameterError(
            f"penalty={penalty:g} is too small for rank {rank}: the regressions are singular"
        ) from None
    completed = users[:, :-1] @ items[:, :-1].T
    completed += mean + users[:, -1:] + items[:, -1]
    return np.asarray(completed)


def _solve(ratings: sparse.csr_array, other: Matrix, penalty: float) -> Matrix:
    """Solve one side's ridge regressions, a row each, the other side held."""
    features = np.column_stack([other[:, :-1], np.ones(len(other))])
    constants = other[:, -1]
    ridge = penalty * np.eye(features.shape[1])
    solved = np.zeros((ratings.shape[0], features.shape[1]))
    for row, (start, stop) in enumerate(zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True)):
        if start < stop:
            rated = ratings.indices[start:stop]
            design = features[rated]
            target = ratings.data[start:stop] - constants[rated]
            solved[row] = np.linalg.solve(design.T @ design + ridge, design.T @ target)
    return solved
