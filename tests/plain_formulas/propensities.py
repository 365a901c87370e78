"""Propensity models by their definitions: every cell of the grid a row, every constant a column, plain Newton."""

from __future__ import annotations

import math

import numpy as np

from verirec import FeedbackLog


def log_of(observed, labels=None, **columns):
    """Give the log that has a row for each 1 of a grid of 0/1."""
    observed = np.asarray(observed)
    users, items = np.nonzero(observed)
    labels = np.arange(len(users)) % 2 if labels is None else labels
    return FeedbackLog.from_arrays(
        users, items, labels, n_users=observed.shape[0], n_items=observed.shape[1], **columns
    )


def design(n_users, n_items, user_features=None, item_features=None):
    """Give a row a cell: intercept, then users, then items, then products of standardised features."""
    users = standardised(user_features) if user_features is not None else None
    items = standardised(item_features) if item_features is not None else None
    rows = []
    for user in range(n_users):
        for item in range(n_items):
            row = [1.0]
            row += [float(user == other) for other in range(n_users)]
            row += [float(item == other) for other in range(n_items)]
            if users is not None:
                row += [a * b for a in users[user] for b in items[item]]
            rows.append(row)
    return np.array(rows)


def standardised(features):
    columns = []
    for column in np.asarray(features, float).T:
        center = sum(column) / len(column)
        spread = math.sqrt(sum((value - center) ** 2 for value in column) / len(column))
        columns.append([(value - center) / (spread if spread > 0 else 1.0) for value in column])
    return np.array(columns).T


def probabilities(matrix, coefficients):
    return 1 / (1 + np.exp(-(matrix @ coefficients)))


def objective(matrix, observed, penalties, coefficients):
    z = matrix @ coefficients
    return float(observed @ z - np.logaddexp(0, z).sum() - penalties @ coefficients**2 / 2)


def hessian(matrix, p, penalties):
    return matrix.T @ (matrix * (p * (1 - p))[:, None]) + np.diag(penalties)


def newton(matrix, observed, penalties, steps=60):
    """Maximise the penalised log-likelihood; the least-squares step takes care of columns that add up to others."""
    coefficients = np.zeros(matrix.shape[1])
    for _ in range(steps):
        p = probabilities(matrix, coefficients)
        gradient = matrix.T @ (observed - p) - penalties * coefficients
        step = np.linalg.lstsq(hessian(matrix, p, penalties), gradient, rcond=1e-12)[0]
        value, length = objective(matrix, observed, penalties, coefficients), 1.0
        while objective(matrix, observed, penalties, coefficients + length * step) < value - 1e-9 and length > 1e-6:
            length /= 2
        coefficients = coefficients + length * step
    return coefficients


def variance_change(matrix, p, penalties, rows, slopes, influence):
    """Give 2 a'H^-1 c + c'H^-1 c less (1 - p) times each row's product with itself, leverage by the diagonal of H.

    `rows` are the observed cells. The intercept is no constant of its own in the leverage.
    """
    information = hessian(matrix, p, penalties)
    rest = 1 - p[rows]
    c, a = matrix[rows].T @ (rest * slopes), matrix[rows].T @ (rest * influence)
    inverse = np.linalg.pinv(information, rcond=1e-12)
    itself = 0.0
    for row, r, s, i in zip(rows, rest, slopes, influence, strict=True):
        leverage = sum(
            matrix[row, column] ** 2 / information[column, column]
            for column in range(1, matrix.shape[1])
            if matrix[row, column] != 0
        )
        itself += (2 * i + s) * s * r**3 * leverage
    return float(2 * a @ inverse @ c + c @ inverse @ c) - itself


def naive_bayes(label, log_labels, sample_labels, cells):
    """Give P(o | r) = P(r | o) P(o) / P(r), at most 1."""
    of_log = sum(other == label for other in log_labels) / len(log_labels)
    of_all = sum(other == label for other in sample_labels) / len(sample_labels)
    return min(1.0, of_log * (len(log_labels) / cells) / of_all)


def popularity(item_counts, n_users, power):
    raised = [max(count, 0.5) ** power for count in item_counts]
    density = sum(item_counts) / (n_users * len(item_counts))
    mean = sum(raised) / len(raised)
    return [min(1.0, density * value / mean) for value in raised]


def effective_sample_size(weights):
    return sum(weights) ** 2 / sum(weight**2 for weight in weights)


def imbalance(positions, size, weights):
    """Compare log activity of rows, plain and weighted, with that of the grid in its standard deviations."""
    activity = [math.log(1 + sum(position == other for position in positions)) for other in range(size)]
    center = sum(activity) / size
    spread = math.sqrt(sum((value - center) ** 2 for value in activity) / size)
    plain = sum(activity[position] for position in positions) / len(positions)
    weighted = sum(w * activity[position] for position, w in zip(positions, weights, strict=True)) / sum(weights)
    return (plain - center) / spread, (weighted - center) / spread
