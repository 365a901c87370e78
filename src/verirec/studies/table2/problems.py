"""From a data set to what is trained on, chosen by and tested on."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of
from verirec.data.cells import CellValues, DenseCells
from verirec.data.datasets import load_dataset
from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import Split, split
from verirec.exceptions import DataError
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates import AuditSample, rates_from_audit
from verirec.nuisance.surveys import SurveySample
from verirec.simulate import on_matrix
from verirec.studies.table2.plans import DATASETS
from verirec.studies.table2.weights import Weights

SLICE: Final = 0.3
"""Share of the users whose random ratings settings are chosen by, under `unbiased-validation`."""
HELD_OUT: Final = 0.2
"""Share of the log's rows that settings are chosen by, under `honest`."""
AUDITED: Final = 500
"""Logged pairs whose true labels an audit tells."""
SURVEYED: Final = 200
"""Random pairs whose true labels a survey tells."""
OBSERVED: Final = 0.02
SELECTIVITY: Final = 2.0
"""Of the training log that is made on top of KuaiRec: share of pairs, and log-odds from disliked to liked."""
TESTED: Final = 100
"""Random pairs a user that KuaiRec is tested on."""
_STREAMS: Final = {"slice": 10, "held-out": 11, "audit": 12, "flips": 13, "selection": 14, "test": 15, "survey": 16}
_MOST_TABLES: Final = 24
"""Tables of covariates that a process keeps."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set, ready.

    Parameters
    ----------
    dataset
        Its name.
    train
        What people chose to rate, with clean labels: noise comes with a seed.
    random
        Clean ratings of pairs that nobody chose.
    k
        Depth of the ranking metrics.
    published
        Propensities that came with the data, if any.
    """

    dataset: str
    train: FeedbackLog
    random: FeedbackLog
    k: int = 5
    published: npt.NDArray[np.float64] | None = None

    @cached_property
    def weights(self) -> Weights:
        """Propensities."""
        return Weights(self.train, self.published)

    @cached_property
    def sliced(self) -> Split:
        """The random ratings in two: test, and those of some users to choose by.

        Whole users, so that each has as many test items as in the field: NDCG and Recall depend on it. Drawn from each
        ten users with about the same number of likes, so that the two parts are alike: AUC is mostly the user's level.
        """
        likes = np.bincount(self.random.users, self.random.labels, self.random.n_users)
        random = _stream("slice")
        # Ties in a random order.
        order = np.lexsort((random.random(len(likes)), likes))
        order = order[np.isin(order, self.random.users)]
        tens = [order[start : start + 10] for start in range(0, len(order), 10)]
        chosen = np.concatenate([random.permutation(ten)[: round(SLICE * len(ten))] for ten in tens])
        held = np.isin(self.random.users, chosen)
        return Split(self.random.select(~held), self.random.select(held))

    @property
    def has_features(self) -> bool:
        """Whether the log has features of both sides."""
        return self.train.user_features is not None and self.train.item_features is not None

    @property
    def small(self) -> bool:
        """Whether it is of Coat's size."""
        return len(self.train) < 50_000

    @cached_property
    def checksum(self) -> str:
        """A digest of all of it."""
        digest = hashlib.sha256(f"{self.dataset} {self.k} {self.train.n_users} {self.train.n_items}".encode())
        for log in (self.train, self.random):
            digest.update(str(log.fingerprint).encode())
        for more in (self.train.user_features, self.train.item_features, self.published):
            digest.update(b"" if more is None else more.tobytes())
        return digest.hexdigest()[:16]

    def noisy(self, rates: NoiseRates, seed: int) -> FeedbackLog:
        """Return the training log as a seed has it: labels flipped at these rates."""
        return self.train.with_noise(rates, random_state=_stream("flips", seed))

    def parts(self, noisy: FeedbackLog, seed: int) -> Split:
        """Hold rows of a noisy log out to choose by."""
        return split(noisy, HELD_OUT, by="random", random_state=_stream("held-out", seed))

    def clean(self, part: FeedbackLog) -> FeedbackLog:
        """Return rows of the training log with their clean labels."""
        found = np.zeros((self.train.n_users, self.train.n_items), np.int8)
        found[self.train.users, self.train.items] = self.train.labels
        return part.with_labels(found[part.users, part.items])

    def survey(self, seed: int) -> SurveySample:
        """Ask about random pairs of the slice, which are not tested on."""
        rows = self.sliced.held_out
        chosen = np.sort(_stream("survey", seed).choice(len(rows), min(SURVEYED, len(rows)), replace=False))
        return SurveySample(rows.users[chosen], rows.items[chosen], rows.labels[chosen])

    @cached_property
    def _tables(self) -> dict[tuple[int, str], CellValues]:
        return {}

    def learnt(self, part: FeedbackLog, names: tuple[str, ...]) -> dict[tuple[int, tuple[int, int], str], CellValues]:
        """Learn covariates from a part's positions, as `Method.prepare` takes them.

        All seeds of the flips share them, so each is learnt once, and its values on the whole grid are kept.
        """
        from verirec.models.covariates import KINDS

        found = {}
        for name in names:
            place = (zlib.crc32(part.items.tobytes(), zlib.crc32(part.users.tobytes())), name)
            if place not in self._tables:
                if len(self._tables) >= _MOST_TABLES:
                    self._tables.clear()
                values = KINDS[name].fit(part).block(np.arange(part.n_users), np.arange(part.n_items))
                self._tables[place] = DenseCells(values.astype(np.float32))
            found[part.fingerprint, part.shape, name] = self._tables[place]
        return found

    def audit(self, seed: int) -> AuditSample:
        """Ask about random rows of the training log again."""
        count = min(AUDITED, len(self.train))
        rows = _stream("audit", seed).choice(len(self.train), count, replace=False)
        return AuditSample(self.train.users[rows], self.train.items[rows], self.train.labels[rows])

    @cached_property
    def _audited(self) -> dict[tuple[NoiseRates, int], NoiseRates]:
        return {}

    def audited(self, rates: NoiseRates, seed: int) -> NoiseRates:
        """Estimate, by a seed's audit, the rates that its labels were flipped with; worked out once."""
        if (rates, seed) not in self._audited:
            found = rates_from_audit(self.noisy(rates, seed), self.audit(seed), self.weights.constants)
            self._audited[rates, seed] = found
        return self._audited[rates, seed]


def load_problem(dataset: str, data_home: str | Path | None = None) -> Problem:
    """Load one by name.

    KuaiRec has a rating of every pair and no self-selected part. The training log is made on top, by the semi-synthetic
    mechanism: a pair is logged with log-odds that add up a user's activity, a video's popularity (both drawn) and 2
    where the user likes it. Testing is on random pairs, 100 a user, that are not in it. From `small_matrix.csv` as
    published liked is a watch ratio of at least 1, as in the paper; the complete block has labels of its own (above 2).
    """
    one_of("dataset", dataset, DATASETS)
    data = load_dataset(dataset, data_home=data_home)
    if dataset == "kuairec":
        return _on_complete(*_complete(data))
    if data.train is None or data.test is None:
        raise DataError(f"{dataset} must have a self-selected and a random part")
    return Problem(dataset, data.train, data.test, published=data.propensities)


def _complete(data: Any) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Return labels of all pairs, and which of them are known."""
    if data.complete is not None:
        return data.complete, np.ones(data.complete.shape, bool)
    log: FeedbackLog = data.test
    labels, known = np.zeros((log.n_users, log.n_items), np.int8), np.zeros((log.n_users, log.n_items), bool)
    labels[log.users, log.items], known[log.users, log.items] = log.labels, True
    return labels, known


def _on_complete(labels: npt.NDArray[np.int8], known: npt.NDArray[np.bool_]) -> Problem:
    """Make a problem where every pair's label is known."""
    world = on_matrix(
        labels,
        noise_rates=NoiseRates(0.0, 0.0),
        observed=OBSERVED,
        selectivity=SELECTIVITY,
        random_state=_stream("selection"),
    )
    train = world.log.select(known[world.log.users, world.log.items])
    free = known.copy()
    free[train.users, train.items] = False
    # The first of each user's free pairs in a random order.
    order = np.where(free, _stream("test").random(labels.shape), 2.0)
    items = np.argsort(order, axis=1)[:, :TESTED]
    users = np.repeat(np.arange(len(labels)), items.shape[1])
    flat = items.ravel()
    usable = free[users, flat]
    users, flat = users[usable], flat[usable]
    test = FeedbackLog.from_arrays(users, flat, labels[users, flat], n_users=labels.shape[0], n_items=labels.shape[1])
    return Problem("kuairec", train, test, k=50)


def _stream(name: str, seed: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, _STREAMS[name]])
