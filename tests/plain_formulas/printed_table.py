"""The printed table's arithmetic, cell by cell in loops."""

from __future__ import annotations

import math


def printed_estimates(predictions, observed, labels, propensities, rates):
    """Matrices as lists of rows; `rates` a (rho01, rho10) a source. Gives {(method, source): value}."""
    cells = [
        (f, o, r, 1 / p)
        for row in zip(predictions, observed, labels, propensities, strict=True)
        for f, o, r, p in zip(*row, strict=True)
    ]
    n = len(cells)

    def imputed_label(weight):
        top = sum(weight(w) * f for f, o, _, w in cells if o)
        return top / sum(weight(w) for _, o, _, w in cells if o)

    def imputed(m, f):
        return -m * math.log(f) - (1 - m) * math.log(1 - f)

    def error(f, r, pair):
        if pair is not None:
            r = (r - pair[1]) / (1 - pair[0] - pair[1])
        return -r * math.log(f) - (1 - r) * math.log(1 - f)

    m, m_mrdr = imputed_label(lambda w: w), imputed_label(lambda w: w * (w - 1))
    found = {}
    for source, pair in {"none": None, **rates}.items():
        prefix = "" if pair is None else "ome-"
        seen = [error(f, r, pair) for f, o, r, _ in cells if o]
        found["ome" if prefix else "naive", source] = sum(seen) / len(seen)
        found[f"{prefix}eib", source] = sum(error(f, r, pair) if o else imputed(m, f) for f, o, r, _ in cells) / n
        found[f"{prefix}ips", source] = sum(w * error(f, r, pair) for f, o, r, w in cells if o) / n
        found[f"{prefix}dr", source] = (
            sum(imputed(m, f) + (w * (error(f, r, pair) - imputed(m, f)) if o else 0) for f, o, r, w in cells) / n
        )
    rest = [(w, error(f, r, None) - imputed(m_mrdr, f)) for f, o, r, w in cells if o]
    mean = sum(imputed(m_mrdr, f) for f, *_ in cells) / n
    found["mrdr", "none"] = mean + sum(w * one for w, one in rest) / n
    found["sdr", "none"] = mean + sum(w * one for w, one in rest) / sum(w for w, _ in rest)
    rest = [(w, error(f, r, None) - imputed(m, f)) for f, o, r, w in cells if o]
    eta = sum(w * one for w, one in rest) / sum(w * w for w, _ in rest)
    found["tdr", "none"] = sum(imputed(m, f) + eta * w for f, _, _, w in cells) / n
    return found
