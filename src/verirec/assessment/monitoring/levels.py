r"""How sure a verdict must be if somebody looks every month: an error that is spent look by look.

Whoever looks at 95% intervals twelve times is misled at least once with a chance of up to 46%. Here look t may spend

.. math:: \alpha_t = \frac{\alpha}{t (t + 1)}, \qquad \sum_{t \ge 1} \alpha_t = \alpha,

shared by the m statements that are made at it: each has an interval of level :math:`1 - \alpha_t / m`. By the union
bound, the chance of *any* wrong verdict at *any* look, however long one goes on, is at most :math:`\alpha`, whatever
the dependence between them. The level of a look does not depend on how many come after it.
"""

from __future__ import annotations


def level_at(look: int, statements: int, confidence: float) -> float:
    """Return the level that intervals of a look must have so that all verdicts together have `confidence`.

    Parameters
    ----------
    look
        Its number, from 1.
    statements
        How many verdicts may be given at it.
    confidence
        Of all verdicts of all looks.

    Examples
    --------
    >>> [round(level_at(look, 1, 0.95), 4) for look in (1, 2, 12)]
    [0.975, 0.9917, 0.9997]
    """
    return 1 - (1 - confidence) / (look * (look + 1)) / max(statements, 1)
