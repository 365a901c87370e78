"""Delta-dr by loops: its weights, and the logistic regression behind them, on a grid small enough to write down."""

from __future__ import annotations

import math


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def contribution(c, o, r, negative, positive, b, delta):
    """c + o [r (l1 - c)/p1 + (1 - r)(l0 - c)/p0]."""
    if not o:
        return c
    return c + r * (positive - c) / sigmoid(b + delta) + (1 - r) * (negative - c) / sigmoid(b)


def offset(x, delta):
    """-log(1 - q + q e^-delta), q = sigma(x) of what is liked among logged pairs."""
    q = sigmoid(x)
    return -math.log(1 - q + q * math.exp(-delta))


def constants(logged, target, x, delta, n_users, n_items, *, ridge, steps=4000):
    """Maximise the likelihood of which pairs of a target were logged, one constant at a time, by Newton's steps."""
    level, users, items = 0.0, [0.0] * n_users, [0.0] * n_items

    def step(pairs, penalty):
        slope, bend = -penalty[0] * penalty[1], penalty[0]
        for u, i in pairs:
            p = sigmoid(level + users[u] + items[i] + offset(x[u][i], delta))
            slope, bend = slope + ((u, i) in logged) - p, bend + p * (1 - p)
        return slope / bend

    for _ in range(steps):
        before = level, *users, *items
        level += step(target, (0.0, 0.0))
        for u in range(n_users):
            users[u] += step([pair for pair in target if pair[0] == u], (ridge, users[u]))
        for i in range(n_items):
            items[i] += step([pair for pair in target if pair[1] == i], (ridge, items[i]))
        if max(abs(a - b) for a, b in zip(before, (level, *users, *items), strict=True)) < 1e-11:
            break
    return [level + one for one in users], items


def delta_dr(target, logged, labels, negative, positive, c, b, delta):
    """The mean over a target; `c` and `b` by pair."""
    total = 0.0
    for pair in target:
        o = pair in logged
        r = labels[pair] if o else 0
        total += contribution(c[pair], o, r, negative[pair], positive[pair], b[pair], delta)
    return total / len(target)
