"""AUC, NDCG@5 and Recall@5 on a test set of Yahoo! R3's size, beside plain NumPy and a loop over users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.speed.case import Case, Run

if TYPE_CHECKING:
    import numpy as np

    Figures = tuple[float, float, float]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users, labels and scores of 54,000 pairs."""
    import numpy as np

    random = np.random.default_rng(0)
    return np.repeat(np.arange(5_400), 10), random.integers(2, size=54_000), random.random(54_000)


def ours() -> Run:
    """Rankings that are safe under ties."""
    from verirec.metrics import UserRankings

    given = data()

    def run() -> Figures:
        rankings = UserRankings(*given)
        return rankings.auc, rankings.ndcg(5), rankings.recall(5)

    return _same_as_numpy(run)


def _same_as_numpy(run: Run) -> Run:
    import numpy as np

    np.testing.assert_allclose(run(), plain_numpy()())
    return run


def plain_numpy() -> Run:
    """Vectorised, not safe under ties."""
    import numpy as np
    from scipy.stats import rankdata

    users, labels, scores = data()

    def run() -> Figures:
        positives, negatives = labels.sum(), len(labels) - labels.sum()
        auc = (rankdata(scores)[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives)
        order = np.lexsort((-scores, users))
        u, y = users[order], labels[order]
        n_users = u[-1] + 1
        counts = np.bincount(u, minlength=n_users)
        place = np.arange(len(u)) - (np.cumsum(counts) - counts)[u]
        of_user = np.bincount(u, weights=y, minlength=n_users)
        discounts = 1 / np.log2(np.arange(2, 7))
        top = place < 5
        gained = np.bincount(u[top], weights=y[top] * discounts[place[top]], minlength=n_users)
        ideal = np.append(0, np.cumsum(discounts))[np.minimum(of_user, 5).astype(int)]
        ndcg = np.divide(gained, ideal, out=np.ones(n_users), where=ideal > 0).mean()
        recall = (np.bincount(u[top], weights=y[top], minlength=n_users) / np.maximum(of_user, 1)).mean()
        return float(auc), float(ndcg), float(recall)

    return run


def loop() -> Run:
    """A loop over users with scikit-learn."""
    import numpy as np
    from sklearn.metrics import ndcg_score, roc_auc_score

    users, labels, scores = data()

    def run() -> Figures:
        ndcg, recall = [], []
        for user in range(users.max() + 1):
            rows = users == user
            y, s = labels[rows], scores[rows]
            ndcg.append(ndcg_score([y], [s], k=5) if y.any() else 1.0)
            recall.append(y[np.argsort(-s)[:5]].sum() / max(1, y.sum()))
        return float(roc_auc_score(labels, scores)), float(np.mean(ndcg)), float(np.mean(recall))

    return _same_as_numpy(run)


_TITLE, _SIZE = "AUC, NDCG@5 and Recall@5 together", "54,000 pairs of 5,400 users"
CASES = [
    Case("metrics/numpy", _TITLE, _SIZE, {"verirec": ours, "vectorised NumPy": plain_numpy}, rounds=15),
    Case("metrics/loop", _TITLE, _SIZE, {"verirec": ours, "loop over users, scikit-learn": loop}, rounds=2),
]
