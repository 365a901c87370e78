"""Recommenders of an assessment: each judged on the pairs that its predictions cover, and every two compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from verirec.assessment.findings import AssessedRecommender, Comparison
from verirec.data.predictions import PredictionsLike
from verirec.estimation.catalogue import chosen
from verirec.estimation.coverage import covered_rows, on_covered
from verirec.estimation.inference import judge, judge_difference
from verirec.estimation.inputs import Rates
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.sensitivity import Sensitivity, flip_factor, vary
from verirec.estimation.setup import drawn_seed, make_problem
from verirec.exceptions import VerirecError
from verirec.losses import LossLike, NoiseRegion

ON_LOGGED: Final = ("naive", "snips", "ome", "ome-snips")
"""Estimators for predictions of the logged pairs only."""
ON_ALL: Final = ("naive", "snips", "dr", "ome", "ome-snips", "ome-dr")
"""Estimators for predictions of all pairs."""


@dataclass(frozen=True)
class Settings:
    """How an assessment judges: the same for every recommender, so that all are alike."""

    noise: Rates | NoiseRegion
    loss: LossLike
    confidence: float
    clip: float | None
    sample: int | None
    seed: Any

    def problem(
        self, predictions: PredictionsLike, pairs: LoggedPairs, estimators: tuple[str, ...]
    ) -> EstimationProblem:
        """Put a recommender and the pairs that it is judged on together."""
        return make_problem(
            predictions,
            pairs,
            chosen(estimators, with_rates=True),
            loss=self.loss,
            clip=self.clip,
            sample=self.sample,
            seed=drawn_seed(self.seed),
        )


@dataclass(frozen=True, eq=False)
class _Entrant:
    """A recommender's predictions, with the rows they cover if they are not for all pairs."""

    problem: EstimationProblem
    covered: int | None

    @property
    def whole(self) -> bool:
        return self.covered is None

    def judged(self, settings: Settings) -> AssessedRecommender:
        names = ON_ALL if self.whole else ON_LOGGED
        estimates = judge(self.problem, chosen(names, with_rates=True), settings.noise, settings.confidence)
        main, selection_only = ("ome-dr", "dr") if self.whole else ("ome-snips", "snips")
        return AssessedRecommender(estimates, main, selection_only, self.covered)


@dataclass(frozen=True)
class Judged:
    """All recommenders of an assessment."""

    recommenders: dict[str, AssessedRecommender]
    comparisons: list[Comparison]
    incomparable: list[tuple[str, str]]
    sensitivity: Sensitivity | None


def judge_all(
    predictions: Mapping[str, PredictionsLike], pairs: LoggedPairs, settings: Settings, progress: Callable[[str], None]
) -> Judged:
    """Judge recommenders and compare every two; what is added up over the grid is added up once for all of it."""
    entrants, recommenders = {}, {}
    parts: dict[bytes, LoggedPairs] = {}
    for name, given in predictions.items():
        progress(f"Judging {name}")
        with _naming(name):
            entrants[name] = _entrant(given, pairs, parts, settings)
            recommenders[name] = entrants[name].judged(settings)
    comparisons, incomparable = [], []
    for first, second in combinations(entrants, 2):
        if entrants[first].problem.pairs is not entrants[second].problem.pairs:
            incomparable.append((first, second))
            continue
        progress(f"Comparing {first} with {second}")
        comparisons.append(_compared(first, second, entrants, settings))
    whole = {name: entrant.problem for name, entrant in entrants.items() if entrant.whole}
    if whole:
        progress("Trying other noise rates and propensities")
    varied = vary(whole, chosen("ome-dr", with_rates=True)[0], settings.noise) if whole else None
    return Judged(recommenders, comparisons, incomparable, varied)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say which recommender an error is about."""
    try:
        yield
    except VerirecError as error:
        raise type(error)(f"{name}: {error}") from None


def _entrant(
    given: PredictionsLike, pairs: LoggedPairs, parts: dict[bytes, LoggedPairs], settings: Settings
) -> _Entrant:
    """Put a recommender together with the pairs that it covers; those that cover the same `parts` can be compared."""
    covered = covered_rows(given, pairs.log)
    if covered is None:
        return _Entrant(settings.problem(given, pairs, ON_ALL), None)
    if not covered.all():
        key = np.packbits(covered).tobytes()
        if key not in parts:
            parts[key] = on_covered(pairs, covered)
        pairs = parts[key]
    return _Entrant(settings.problem(given, pairs, ON_LOGGED), int(covered.sum()))


def _compared(first: str, second: str, entrants: Mapping[str, _Entrant], settings: Settings) -> Comparison:
    one, two = entrants[first], entrants[second]
    whole = one.whole and two.whole
    names = ("naive", "ome-snips", "ome-dr") if whole else ("naive", "ome-snips")
    problems = one.problem, two.problem
    found = judge_difference(*problems, chosen(names, with_rates=True), settings.noise, settings.confidence)
    factor = flip_factor(*problems, settings.noise)
    for problem in problems:
        problem.let_go_of_rows()
    naive, check, corrected = found["naive"], found["ome-snips"], found[names[-1]]
    return Comparison(first, second, naive, corrected, check if whole else None, factor)
