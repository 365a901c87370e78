"""Ranking metrics as their definitions have them: one user and one order at a time, ties by trying every order."""

from __future__ import annotations

import itertools
import math


def dcg(ordered, k):
    return sum(label / math.log2(1 + rank) for rank, label in enumerate(ordered[:k], start=1))


def ndcg(ordered, k):
    ideal = dcg(sorted(ordered, reverse=True), k)
    return dcg(ordered, k) / ideal if ideal else 1.0


def recall(ordered, k):
    return sum(ordered[:k]) / max(1, sum(ordered))


def precision(ordered, k):
    return sum(ordered[:k]) / k


def f1(ordered, k):
    both = precision(ordered, k) + recall(ordered, k)
    return 2 * precision(ordered, k) * recall(ordered, k) / both if both else 0.0


METRICS = {"ndcg": ndcg, "recall": recall, "precision": precision, "f1": f1}


def orders(labels, scores):
    """Give every order of the labels in which no score is followed by a higher one."""
    ties = {}
    for label, score in zip(labels, scores, strict=True):
        ties.setdefault(score, []).append(label)
    by_tie = [list(itertools.permutations(ties[score])) for score in sorted(ties, reverse=True)]
    return [list(itertools.chain.from_iterable(parts)) for parts in itertools.product(*by_tie)]


def expected(metric, labels, scores, k):
    values = [metric(order, k) for order in orders(labels, scores)]
    return sum(values) / len(values)


def mean_over_users(metric, users, labels, scores, k, convention):
    per_user = []
    for user in sorted(set(users)):
        rows = [row for row, owner in enumerate(users) if owner == user]
        own_labels, own_scores = [labels[row] for row in rows], [scores[row] for row in rows]
        if convention == "usual" and sum(own_labels) == 0:
            continue
        per_user.append(expected(metric, own_labels, own_scores, k))
    return sum(per_user) / len(per_user) if per_user else math.nan


def auc(labels, scores):
    wins, pairs = 0.0, 0
    for label, score in zip(labels, scores, strict=True):
        for other_label, other_score in zip(labels, scores, strict=True):
            if label == 1 and other_label == 0:
                pairs += 1
                wins += 1.0 if score > other_score else 0.5 if score == other_score else 0.0
    return wins / pairs if pairs else math.nan
