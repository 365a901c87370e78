"""What an audit, a grid and the tails of a log say of the noise rates: a row, a stratum or a cell at a time."""

from __future__ import annotations

import math


def chance(label, true_label, share, rho01, rho10):
    """P(r, r*) of a row in a stratum with this share of true positives."""
    wrong = rho01 if true_label else rho10
    return (share if true_label else 1 - share) * (1 - wrong if label == true_label else wrong)


def log_likelihood(counts, rho01, rho10, shares):
    """Sum over strata of the rows with one label and the rows with both."""
    total = 0.0
    for stratum, share in enumerate(shares):
        for label, rows in ((1, counts.positive[stratum]), (0, counts.negative[stratum])):
            if rows:
                total += rows * math.log(sum(chance(label, truth, share, rho01, rho10) for truth in (0, 1)))
        for label in (0, 1):
            for truth in (0, 1):
                if counts.both[stratum][label][truth]:
                    total += counts.both[stratum][label][truth] * math.log(chance(label, truth, share, rho01, rho10))
    return total


def count_rows(labels, strata, audited):
    """Count rows by stratum; `audited` maps a row to its true label."""
    seen = sorted(set(strata))
    positive, negative = [0] * len(seen), [0] * len(seen)
    both = [[[0, 0], [0, 0]] for _ in seen]
    for row, (label, stratum) in enumerate(zip(labels, strata, strict=True)):
        place = seen.index(stratum)
        if row in audited:
            both[place][label][audited[row]] += 1
        elif label:
            positive[place] += 1
        else:
            negative[place] += 1
    return positive, negative, both


def shares_of_wrong_labels(pairs):
    """Give rho01 and rho10 of (label, true label) pairs."""
    wrong, total = [0, 0], [0, 0]
    for label, truth in pairs:
        total[truth] += 1
        wrong[truth] += label != truth
    return wrong[1] / total[1], wrong[0] / total[0]


def extremes(matrix):
    low, high = math.inf, -math.inf
    for line in matrix:
        for value in line:
            low, high = min(low, value), max(high, value)
    return 1 - high, low


def tails(labels, scores, quantile, fewest=20):
    """Give the share of negatives among the highest scores, of positives among the lowest, and the rows of a tail."""
    count = max(math.ceil(quantile * len(labels)), fewest)
    ranked = [label for _, _, label in sorted((score, row, labels[row]) for row, score in enumerate(scores))]
    highest, lowest = ranked[len(ranked) - count :], ranked[:count]
    return sum(1 - label for label in highest) / count, sum(lowest) / count, count


def repeated_log_likelihood(counts, rho01, rho10, shares):
    """Sum over strata of the rows with one answer and the rows with two; each errs by itself, given the truth."""

    def said(label, truth):
        wrong = rho01 if truth else rho10
        return 1 - wrong if label == truth else wrong

    total = 0.0
    for stratum, share in enumerate(shares):
        for label, rows in ((1, counts.positive[stratum]), (0, counts.negative[stratum])):
            if rows:
                total += rows * math.log(share * said(label, 1) + (1 - share) * said(label, 0))
        for first in (0, 1):
            for second in (0, 1):
                rows = counts.both[stratum][first][second]
                if rows:
                    liked, not_liked = said(first, 1) * said(second, 1), said(first, 0) * said(second, 0)
                    total += rows * math.log(share * liked + (1 - share) * not_liked)
    return total
