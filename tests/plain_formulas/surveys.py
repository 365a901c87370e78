"""Survey estimates by loops, from a list of draws and a dictionary of all pairs of the target."""

from __future__ import annotations

import math

from scipy.stats import t as student

PSEUDO = 2


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))


def shares(probabilities):
    """1/h, adding up to 1."""
    total = sum(1 / h for h in probabilities)
    return [1 / h / total for h in probabilities]


def kish(weights):
    return sum(weights) ** 2 / sum(w**2 for w in weights)


def intercept(z, y, v):
    """Newton's method on the weighted logistic likelihood, with two likes and two dislikes at the mean logit."""
    n = len(v)
    rows = [(a, b, n * c) for a, b, c in zip(z, y, v, strict=True)]
    typical = sum(a * c for a, c in zip(z, v, strict=True))
    rows += [(typical, 1, PSEUDO), (typical, 0, PSEUDO)]
    c = 0.0
    for _ in range(200):
        slope = sum(w * (label - sigmoid(logit + c)) for logit, label, w in rows)
        bend = sum(w * sigmoid(logit + c) * (1 - sigmoid(logit + c)) for logit, _, w in rows)
        c += max(min(slope / bend, 1), -1)
    return c


def cluster_sums(values, v, clusters, centre):
    sums = {}
    for value, share, cluster in zip(values, v, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + share * (value - centre)
    return sums


def mean_of(values, v):
    return sum(a * b for a, b in zip(values, v, strict=True))


def interval(base, constants, slopes, y, v, clusters, *, liked=None, fitted=0, confidence=0.95, extra=0.0):
    """Value, standard error and ends of b + sum v (x + y d), with two likes and two dislikes, of draws likely to be."""
    n, liked = len(v), [0.5] * len(v) if liked is None else liked
    values = [x + label * d for x, label, d in zip(constants, y, slopes, strict=True)]
    as_like = [x + d for x, d in zip(constants, slopes, strict=True)]
    chances = {"like": [q / sum(liked) for q in liked], "dislike": [(1 - q) / (n - sum(liked)) for q in liked]}
    keep = n / (n + 2 * PSEUDO)
    centre = keep * mean_of(values, v)
    for kind, ones in (("like", as_like), ("dislike", constants)):
        weights = [share * chance for share, chance in zip(v, chances[kind], strict=True)]
        centre += (1 - keep) / 2 * mean_of(ones, weights) / sum(weights)
    spread = sum((keep * one) ** 2 for one in cluster_sums(values, v, clusters, centre).values())
    for kind, ones in (("like", as_like), ("dislike", constants)):
        for one, share, chance in zip(ones, v, chances[kind], strict=True):
            spread += PSEUDO * chance * (keep * share * (one - centre)) ** 2
    groups = len(set(clusters))
    error = math.sqrt(spread * groups / (groups - 1 - fitted) + extra)
    reach = student.ppf((1 + confidence) / 2, max(groups - 2, 1)) * error
    value = base + mean_of(values, v)
    return value, error, (min(base + centre - reach, value), max(base + centre + reach, value))


def survey(negative, difference, y, v, clusters):
    return interval(0.0, negative, difference, y, v, clusters)


def survey_ppi(negative, difference, q, y, v, clusters, target):
    """PPI++; `target` has (l0, d, q) of every pair that the answer speaks for."""
    observed = [a + label * d for a, label, d in zip(negative, y, difference, strict=True)]
    predicted = [a + one * d for a, one, d in zip(negative, q, difference, strict=True)]
    of_observed = cluster_sums(observed, v, clusters, mean_of(observed, v))
    of_predicted = cluster_sums(predicted, v, clusters, mean_of(predicted, v))
    squares = sum(one**2 for one in of_predicted.values())
    power = sum(of_observed[g] * of_predicted[g] for g in of_predicted) / squares if squares > 0 else 1.0
    power = min(max(power, 0.0), 1.0)
    base = power * sum(a + one * d for a, d, one in target) / len(target)
    constants = [a - power * t for a, t in zip(negative, predicted, strict=True)]
    return interval(base, constants, difference, y, v, clusters, liked=q, fitted=int(power > 0))
