"""Several answers to one question made one: repeats are merged, people are put to a vote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.exceptions import AnswersWarning, DataError, warn_caller

Rows = npt.NDArray[np.int64]


class Answers(NamedTuple):
    """One answer a pair.

    Parameters
    ----------
    rows
        The first row of each pair that has an answer, in ascending order, shape (m,).
    labels
        0/1, or values of levels, shape (m,).
    """

    rows: Rows
    labels: npt.NDArray[Any]


def combine_answers(
    keys: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int8],
    people: npt.NDArray[Any] | None,
    *,
    file: str,
    where: Callable[[Rows], str],
    error: type[DataError],
) -> Answers:
    """Make one answer of all that a pair has.

    One person's answers to a pair, or all of them where nobody is named, must agree: repeats are merged, with a
    warning, and contradictions refused. Of several people the majority counts; a pair on which they are divided
    evenly is left out. Both are warned of.

    Parameters
    ----------
    keys, labels
        The pair and the answer of each row, shape (n,).
    people
        Who answered, a number each, shape (n,); `None` if nobody says.
    file, where, error
        For messages: the file's name, words for some of its rows, and the class of a refusal.

    Examples
    --------
    >>> import warnings
    >>> keys, labels, people = np.array([[7, 7, 7, 8], [1, 0, 1, 0], [0, 1, 2, 0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     found = combine_answers(keys, labels, people, file="a.csv", where=str, error=DataError)
    >>> found.rows.tolist(), found.labels.tolist()
    ([0, 3], [1, 0])
    """
    once = _once_a_person(keys, labels, people, file, where, error)
    merged = len(keys) - len(once)
    reports = [f"{file}: {merged:,} rows repeat what another row says, and are left out"] if merged else []
    _, first, which, count = np.unique(keys[once], return_index=True, return_inverse=True, return_counts=True)
    liked = np.bincount(which, weights=labels[once])
    if (count > 1).any():
        reports.append(f"{file}: {_disagreement(liked, count)}")
    settled = np.flatnonzero(2 * liked != count)
    if len(settled) == 0:
        raise error(f"{file}: people are divided evenly on all {len(count):,} pairs: none has an answer")
    for report in reports:
        warn_caller(report, AnswersWarning)
    order = settled[np.argsort(once[first[settled]])]
    return Answers(once[first[order]], (2 * liked > count)[order].astype(np.int8))


def one_answer_each(
    keys: npt.NDArray[np.int64],
    labels: npt.NDArray[Any],
    *,
    file: str,
    where: Callable[[Rows], str],
    error: type[DataError],
) -> Answers:
    """Take one level a pair; rows that repeat it are merged, with a warning, and others refused.

    Parameters are those of `combine_answers`.

    Examples
    --------
    >>> found = one_answer_each(np.array([7, 8]), np.array([3.0, 5.0]), file="a.csv", where=str, error=DataError)
    >>> found.rows.tolist(), found.labels.tolist()
    ([0, 1], [3.0, 5.0])
    """
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    other = np.flatnonzero(labels != labels[first][which])
    if other.size:
        raise error(f"{file}: answers to one pair contradict each other in {where(other)}: a level has no majority")
    if len(first) < len(keys):
        warn_caller(
            f"{file}: {len(keys) - len(first):,} rows repeat what another row says, and are left out", AnswersWarning
        )
    rows = np.sort(first)
    return Answers(rows, labels[rows])


def _once_a_person(
    keys: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int8],
    people: npt.NDArray[Any] | None,
    file: str,
    where: Callable[[Rows], str],
    error: type[DataError],
) -> Rows:
    """Return the first row of each person and pair, in ascending order; refuse people who contradict themselves."""
    who = np.zeros(len(keys), np.int64) if people is None else people
    _, first, which, count = np.unique(
        np.stack([keys, who]), axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    liked = np.bincount(which.ravel(), weights=labels)
    both = (liked > 0) & (liked < count)
    if both.any():
        rows = np.flatnonzero(both[which.ravel()])
        of_whom = "" if people is None else " of one person"
        hint = "; if several people answered, say who in a column person" if people is None else ""
        raise error(f"{file}: answers{of_whom} to one pair contradict each other in {where(rows)}{hint}")
    return np.sort(first)


def _disagreement(liked: npt.NDArray[Any], count: npt.NDArray[Any]) -> str:
    r"""Say how often people differ, and what that says of a single answer.

    Two answers, each wrong with chance e and independently, differ with chance 2 e (1 - e).
    """
    several = count > 1
    liked, count = liked[several], count[several]
    differ = (liked > 0) & (liked < count)
    if not differ.any():
        return f"all people agree on each of the {len(count):,} pairs that several answered"
    chance = float((2 * liked * (count - liked) / (count * (count - 1))).mean())
    ties = int((2 * liked == count).sum())
    wrong = f"{(1 - np.sqrt(1 - 2 * chance)) / 2:.0%} of single answers" if chance < 0.5 else "half of all answers"
    left_out = f"; {ties:,} on which they are divided evenly are left out" if ties else ""
    return (
        f"people disagree on {int(differ.sum()):,} of the {len(count):,} pairs that several answered "
        f"({differ.mean():.0%}), where the majority counts{left_out}; if they err independently, about {wrong} are "
        "wrong"
    )
