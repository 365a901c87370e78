"""A recommender of another library, judged end to end: implicit's factors on MovieLens 100K.

    pip install implicit      # in an environment of its own that has verirec
    python benchmarks/implicit_movielens.py --data FOLDER

Ratings of 4 and 5 are positive. Labels are then flipped with rates (.2, .1), so that what people said before is the
truth: 300 held-out pairs of it are the audit. Both models learn from the noisy positives of four fifths of the log and
are judged on the rest. The naive estimate on the unflipped labels of the same rows, which no user would have, is shown
beside: `ome`, which corrects for noise only, should hold it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.lmf import LogisticMatrixFactorization
from scipy.sparse import csr_matrix

import verirec as vr

RATES = vr.NoiseRates(0.2, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder that holds movielens-100k")
    options = parser.parse_args()
    clean = vr.load_dataset("movielens-100k", data_home=options.data, positive_from=4).train
    noisy = clean.with_noise(RATES, random_state=0)
    train, test = vr.split(noisy, 0.2, by="random", random_state=0)
    _, truth = vr.split(clean, 0.2, by="random", random_state=0)
    audited = np.random.default_rng(0).choice(len(test), 300, replace=False)
    audit = vr.AuditSample(test.users[audited], test.items[audited], truth.labels[audited])
    rates = vr.AuditNoiseRates().fit(test, audit=audit)
    print(f"{test}\nnoise rates from 300 pairs: rho01 {rates.rho01:.3f}, rho10 {rates.rho10:.3f} (true: .2, .1)")
    for name, (factors, loss) in fitted(train).items():
        start = time.perf_counter()
        result = vr.estimate(
            factors, test, noise_rates=rates, estimators=("naive", "ips", "dr", "ome", "ome-ips", "ome-dr"), loss=loss
        )
        ranking = vr.estimate_ranking(factors, test, noise_rates=rates, k=10)
        taken = time.perf_counter() - start
        without_noise = vr.estimate(factors, truth, estimators="naive", loss=loss)["naive"]
        print(f"\n{name}, {loss} loss, {taken:.1f} s")
        print(result.to_frame().round(4).to_string(index=False))
        print(f"naive, unflipped labels: {without_noise.value:.4f}")
        print(ranking.to_frame().round(4).to_string(index=False))


def fitted(train: vr.FeedbackLog) -> dict[str, tuple[vr.Factors, str]]:
    liked = train.labels == 1
    matrix = csr_matrix(
        (np.ones(liked.sum(), np.float32), (train.users[liked], train.items[liked])),
        shape=(train.n_users, train.n_items),
    )
    logistic = LogisticMatrixFactorization(factors=16, iterations=30, random_state=0)
    squares = AlternatingLeastSquares(factors=16, iterations=15, random_state=0)
    for model in (logistic, squares):
        model.fit(matrix, show_progress=False)
    return {
        "implicit's logistic factors": (vr.Factors(logistic.user_factors, logistic.item_factors), "log"),
        "implicit's least squares": (
            vr.Factors(squares.user_factors, squares.item_factors, link="identity"),
            "squared",
        ),
    }


if __name__ == "__main__":
    main()
