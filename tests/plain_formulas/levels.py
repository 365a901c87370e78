"""The paper's five levels (Section 4), a cell at a time."""

from __future__ import annotations

GAMMA = {1: 0.1, 2: 0.3, 3: 0.5, 4: 0.7, 5: 0.9}


def propensity(level, alpha, p):
    return p * alpha ** min(4, 6 - level)


def rotate(level):
    return 0.9 if level == 1 else GAMMA[level] - 0.2


def coarse(level):
    return 0.2 if GAMMA[level] <= 0.6 else 0.6


def by_rank(scores, proportions):
    """Sort the cells, ties by their place, and hand the levels out from below up to each cumulated share."""
    cells = [(score, row, column) for row, line in enumerate(scores) for column, score in enumerate(line)]
    levels = [[0] * len(line) for line in scores]
    borders = [round(sum(proportions[: level + 1]) * len(cells)) for level in range(5)]
    borders[-1] = len(cells)
    for place, (_, row, column) in enumerate(sorted(cells)):
        levels[row][column] = 1 + sum(place >= border for border in borders)
    return levels
