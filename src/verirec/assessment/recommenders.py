"""Recommenders of an assessment: each judged on the pairs that its predictions cover, and every two compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from verirec.assessment.evidence import Evidence
from verirec.assessment.findings import AssessedRecommender, Basis, Comparison, RankingComparison
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation import Estimates
from verirec.estimation.calibration import are_probabilities
from verirec.estimation.catalogue import chosen
from verirec.estimation.coverage import covered_rows, on_covered
from verirec.estimation.cross_calibration import CrossFittedScores
from verirec.estimation.inference import judge, judge_difference
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.sensitivity import Sensitivity, flip_factor, vary
from verirec.estimation.survey.problem import LossDifference, Losses
from verirec.exceptions import PredictionError, UncomparedWarning, naming, warn_caller
from verirec.resuming import kept, within

ON_LOGGED: Final = ("naive", "snips", "ome", "ome-snips")
"""Estimators for predictions of the logged pairs only."""
MOST_RANKED: Final = 12
"""Comparisons of two rankings that are made: each walks over both."""
ON_ALL: Final = ("naive", "snips", "dr", "ome", "ome-snips", "ome-dr")
"""Estimators for predictions of all pairs."""


@dataclass(frozen=True, eq=False)
class _Entrant:
    """A recommender's predictions, with the rows they cover if they are not for all pairs."""

    given: PredictionsLike
    problem: EstimationProblem
    covered: int | None

    @property
    def whole(self) -> bool:
        return self.covered is None

    def judged_by_log(self, evidence: Evidence) -> dict[str, Any]:
        if evidence.clicks:
            return {}
        names = (*ON_ALL, *evidence.audited) if self.whole else ON_LOGGED
        selected = chosen(names, with_rates=True, with_audit=evidence.audited != ())
        return dict(judge(self.problem, selected, evidence.noise, evidence.confidence))


@dataclass(frozen=True)
class Judged:
    """All recommenders of an assessment."""

    recommenders: dict[str, AssessedRecommender]
    comparisons: list[Comparison]
    incomparable: list[tuple[str, str]]
    ranking_comparisons: tuple[RankingComparison, ...]
    problems: dict[str, EstimationProblem]
    """Of those that were judged on all pairs."""

    def sensitivity(self, evidence: Evidence, progress: Callable[[str], None]) -> Sensitivity | None:
        """Try other noise rates and propensities on recommenders that were judged on all pairs, if there are any."""
        if not self.problems:
            return None
        progress("Trying other noise rates and propensities")
        with within("other noise rates and propensities"):
            return vary(self.problems, chosen("ome-dr", with_rates=True)[0], evidence.noise)


def judge_all(
    predictions: Mapping[str, PredictionsLike], evidence: Evidence, progress: Callable[[str], None]
) -> Judged:
    """Judge recommenders and compare every two; what is added up over the grid is added up once for all of it."""
    entrants: dict[str, _Entrant] = {}
    recommenders: dict[str, AssessedRecommender] = {}
    parts: dict[bytes, LoggedPairs] = {}
    by_log: dict[str, dict[str, Any]] = {}
    for name, given in predictions.items():
        progress(f"Judging {name}")
        with naming(name):
            if not _has_losses(given, evidence):
                recommenders[name] = AssessedRecommender(
                    None,
                    "",
                    "",
                    "",
                    kept(f"ranking of {name}", partial(evidence.ranking, given)),
                    lists=as_predictions(given, *evidence.pairs.log.shape).ranks_only,
                )
                continue
            entrants[name] = _entrant(given, parts, evidence)
            by_log[name] = kept(f"judging {name}", partial(entrants[name].judged_by_log, evidence))
    firmest = _Firmest.of(entrants, evidence, progress)
    for name, entrant in entrants.items():
        recommenders[name] = _assessed(name, entrant, by_log[name], firmest, evidence)
    comparisons, incomparable = [], []
    for first, second in combinations(entrants, 2):
        if entrants[first].problem.pairs is not entrants[second].problem.pairs:
            incomparable.append((first, second))
            continue
        progress(f"Comparing {first} with {second}")
        compared = partial(_compared, first, second, entrants, firmest, evidence)
        comparisons.append(kept(f"comparing {(first, second)}", compared))
    whole = {name: entrant.problem for name, entrant in entrants.items() if entrant.whole and not evidence.clicks}
    ordered = {name: recommenders[name] for name in predictions}
    return Judged(ordered, comparisons, incomparable, _rankings_compared(predictions, ordered, evidence), whole)


def _rankings_compared(
    predictions: Mapping[str, PredictionsLike], judged: Mapping[str, AssessedRecommender], evidence: Evidence
) -> tuple[RankingComparison, ...]:
    """Compare rankings that a survey tells, or that known propensities tell where there are no losses to compare."""
    metric = f"ndcg@{evidence.depth}"
    asked = evidence.survey if evidence.best is None else evidence.best
    if asked is None and evidence.basis == "range":
        return ()
    told = [
        name
        for name, one in judged.items()
        if one.ranking is not None
        and (one.ranking[metric].diagnostics.get("source") == "survey" if asked is not None else one.estimates is None)
    ]
    left = math.comb(len(told), 2) - MOST_RANKED
    if left > 0:
        warn_caller(
            f"the rankings of {MOST_RANKED} pairs of recommenders are compared, the first by the order they were given "
            f"in, and those of {left:,} more are not: compare_rankings compares two",
            UncomparedWarning,
        )
    found = []
    for first, second in list(combinations(told, 2))[:MOST_RANKED]:
        ranked = partial(evidence.ranking, _scores(predictions[first]), _scores(predictions[second]))
        estimates = kept(f"rankings of {(first, second)}", ranked)
        if estimates is not None and metric in estimates:
            basis: Basis = evidence.basis if asked is None else "survey"
            lacking = "" if asked is None else evidence.lacking if asked is evidence.survey else asked.lacking
            found.append(RankingComparison(first, second, estimates, metric, basis, lacking))
    return tuple(found)


def _scores(given: PredictionsLike) -> PredictionsLike:
    """Return what ranks: a surveyed pair has a curve of its own, and would stand elsewhere by it than by its score."""
    return given.scores if isinstance(given, CrossFittedScores) else given


def _has_losses(given: PredictionsLike, evidence: Evidence) -> bool:
    """Tell whether predictions are probabilities, or the loss takes any scores; a clip makes no probabilities."""
    takes_any = evidence.loss != "log" and evidence.clip is None
    return takes_any or are_probabilities(given, evidence.pairs.log)


def _entrant(given: PredictionsLike, parts: dict[bytes, LoggedPairs], evidence: Evidence) -> _Entrant:
    """Put a recommender together with the pairs that it covers; those that cover the same `parts` can be compared."""
    pairs = evidence.judging
    covered = covered_rows(given, pairs.log)
    if covered is not None and evidence.clicks:
        raise PredictionError(
            "predictions of all pairs are needed: clicks alone judge none, and the survey is of others"
        )
    if covered is None:
        return _Entrant(given, evidence.problem(given, pairs, ON_ALL), None)
    if not covered.all():
        key = np.packbits(covered).tobytes()
        if key not in parts:
            parts[key] = on_covered(pairs, covered)
        pairs = parts[key]
    return _Entrant(given, evidence.problem(given, pairs, ON_LOGGED), int(covered.sum()))


@dataclass(frozen=True)
class _Firmest:
    """What a survey, or the range, says of recommenders for all pairs and of every two: from one walk over the grid."""

    levels: dict[str, dict[str, Any]]
    differences: dict[tuple[str, str], dict[str, Any]]

    @classmethod
    def of(cls, entrants: Mapping[str, _Entrant], evidence: Evidence, progress: Callable[[str], None]) -> _Firmest:
        whole = {name: entrant.problem.losses for name, entrant in entrants.items() if entrant.whole}
        every_two = list(combinations(whole, 2))
        losses: list[Losses] = [*whole.values(), *(LossDifference(whole[a], whole[b]) for a, b in every_two)]
        if losses:
            progress("Adding up over all pairs")
        found = kept("all pairs", partial(evidence.by_labels, losses)) if losses else []
        return cls(dict(zip(whole, found, strict=False)), dict(zip(every_two, found[len(whole) :], strict=True)))


def _assessed(
    name: str, entrant: _Entrant, by_log: dict[str, Any], firmest: _Firmest, evidence: Evidence
) -> AssessedRecommender:
    corrected, selection_only = ("ome-dr", "dr") if entrant.whole else ("ome-snips", "snips")
    estimates = by_log | firmest.levels.get(name, {})
    headline = evidence.headline if entrant.whole else corrected
    of = f"the {entrant.problem.losses.loss.name} loss"
    ranked = partial(evidence.ranking, _scores(entrant.given))
    ranking = kept(f"ranking of {name}", ranked) if entrant.whole else None
    return AssessedRecommender(Estimates(estimates, of), headline, corrected, selection_only, ranking, entrant.covered)


def _compared(
    first: str, second: str, entrants: Mapping[str, _Entrant], firmest: _Firmest, evidence: Evidence
) -> Comparison:
    one, two = entrants[first], entrants[second]
    if evidence.clicks:
        deciding = firmest.differences[first, second][evidence.headline]
        return Comparison(first, second, deciding, evidence.basis, None, None, lacking=evidence.lacking)
    whole = one.whole and two.whole
    names = ("naive", "ome-snips", "ome-dr", *evidence.audited) if whole else ("naive", "ome-snips")
    problems = one.problem, two.problem
    selected = chosen(names, with_rates=True, with_audit=evidence.audited != ())
    found = dict(judge_difference(*problems, selected, evidence.noise, evidence.confidence))
    factor = flip_factor(*problems, evidence.noise)
    for problem in problems:
        problem.let_go_of_rows()
    found |= firmest.differences.get((first, second), {})
    corrected = found["ome-dr" if whole else "ome-snips"]
    basis: Basis | None = evidence.basis
    if not whole:
        # Of some pairs there is no range, and a survey of others says nothing.
        basis = "known propensities" if evidence.pairs.propensities.known else None
    return Comparison(
        first,
        second,
        found[evidence.headline] if whole else corrected,
        basis,
        found["naive"],
        corrected,
        found["ome-snips"] if whole else None,
        factor,
        evidence.lacking if whole else "",
    )
