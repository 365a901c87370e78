"""What `verirec estimate` says of the difference of two rankings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from verirec.cli.judging import Judge, Judged
from verirec.data import PredictionsLike
from verirec.estimation import EstimateRange, Estimates, compare_rankings
from verirec.exceptions import SurveyError, VerirecWarning
from verirec.losses import TransitionMatrix, TransitionRegion
from verirec.resuming import kept


def rankings_compared(
    judge: Judge, given: Mapping[str, PredictionsLike], results: Mapping[str, Judged]
) -> Estimates | None:
    """Compare the rankings of two recommenders; nothing of more, of clicks, or where the survey has too few pairs."""
    ranked = [name for name, one in results.items() if one.ranking is not None]
    if len(given) != 2 or len(ranked) != 2 or judge.clicks:
        return None
    assert not isinstance(judge.rates, TransitionMatrix | TransitionRegion)  # noqa: S101 -- those are of levels
    with warnings.catch_warnings():
        # What there is to warn of was said of each.
        warnings.simplefilter("ignore", VerirecWarning)
        try:
            compared = partial(
                compare_rankings,
                *(given[name] for name in ranked),  # type: ignore[misc]
                judge.pairs.log,
                propensities=judge.pairs.propensities,
                noise_rates=judge.rates,
                audit=judge.audit,
                survey=judge.survey,
                exclude=judge.exclude,
                k=judge.ranking.k,
                confidence=judge.options["confidence"],
            )
            return kept("difference in ranking", compared)
        except SurveyError:
            return None


def as_figures(
    judge: Judge, given: Mapping[str, PredictionsLike], results: Mapping[str, Judged]
) -> dict[str, dict[str, Any]]:
    """Return the difference as JSON has it; empty if there is none."""
    found = rankings_compared(judge, given, results)
    return {"ranking_difference": {} if found is None else {name: one.to_dict() for name, one in found.items()}}


def show_difference(judge: Judge, given: Mapping[str, PredictionsLike], results: Mapping[str, Judged]) -> None:
    """Print the difference of two rankings, and a verdict where it rests on a survey or on known propensities."""
    found = rankings_compared(judge, given, results)
    if found is None:
        return
    console, (first, second) = Console(markup=False, highlight=False), results
    known = judge.pairs.propensities.known
    told = {name: one for name, one in found.items() if not name.startswith("dcg")}
    console.print(f"Difference in ranking, {first} minus {second}: above 0, {first} ranks better", soft_wrap=True)
    table = Table("Metric", "Difference [interval]")
    for name, one in told.items():
        value = "" if isinstance(one, EstimateRange) else f"{one.value:+.4f} "
        table.add_row(name, f"{value}[{one.interval[0]:+.4f}, {one.interval[1]:+.4f}]")
    console.print(table)
    deciding = next((name for name in told if name.startswith("ndcg")), None)
    if deciding is None:
        return
    low, high = told[deciding].interval
    by_survey = _source(told[deciding]) == "survey"
    better = first if low > 0 else second if high < 0 else None
    metric = deciding.upper()
    if not (by_survey or known):
        console.print(
            "This rests on the log, and so do the figures of each: they hold if selection depends on user and item "
            f"only, which no log shows. True labels of pairs among their best tell: verirec plan ... --purpose "
            f"{deciding} --budget 400 --out ask.csv, and then --survey ask.csv.",
            soft_wrap=True,
        )
        return
    lacking = judge.survey.lacking if by_survey and judge.survey is not None else ""
    if better is None or lacking:
        why = f": {lacking}" if lacking else ""
        console.print(f"By {metric}, which of the two ranks better is not established{why}.", soft_wrap=True)
        return
    by = "the survey" if by_survey else "propensities that are known"
    console.print(f"{better} ranks better by {metric}: established by {by}.", soft_wrap=True)


def _source(one: Any) -> str:
    return str((one.lowest if isinstance(one, EstimateRange) else one).diagnostics["source"])
