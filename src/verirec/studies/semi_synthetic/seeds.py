"""The semi-synthetic study (paper, Section 4): one seed, from a drawn world to a record for every cell of the table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.grid import Grid
from verirec.estimation.catalogue import chosen
from verirec.estimation.inference import judge
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.setup import make_problem
from verirec.exceptions import VerirecWarning
from verirec.losses import NoiseRates, get_loss
from verirec.nuisance.propensities import GivenPropensity
from verirec.simulate import World, prediction_matrices
from verirec.studies.semi_synthetic.plans import Plan, Setting
from verirec.studies.semi_synthetic.populations import Population
from verirec.studies.semi_synthetic.printed import PrintedRows, printed_estimates
from verirec.studies.semi_synthetic.rates import FittedRates

Array = npt.NDArray[np.float64]

CONFIDENCE: Final = 0.95


class Record(NamedTuple):
    """One estimate of one seed, beside the truth; an interval where the estimator has one, rates where it uses some."""

    setting: str
    observed: float
    method: str
    rho: str
    matrix: str
    truth: float
    estimate: float
    low: float | None
    high: float | None
    rho01: float | None
    rho10: float | None

    @property
    def relative_error(self) -> float:
        """RE, |estimate - truth| / truth (paper, Section 4)."""
        return abs(self.estimate - self.truth) / self.truth

    @property
    def covers(self) -> bool | None:
        """Whether the interval has the truth in it."""
        return None if self.low is None or self.high is None else self.low <= self.truth <= self.high


def run_seed(plan: Plan, population: Population, seed: int) -> list[Record]:
    """Run all settings of a plan with one seed: the same seed, the same records.

    Examples
    --------
    >>> from verirec.studies.semi_synthetic.plans import table1_plan
    >>> levels = np.random.default_rng(0).choice(5, (60, 80), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1
    >>> len(run_seed(table1_plan("printed"), Population(levels), seed=0))
    90
    """
    with warnings.catch_warnings():
        # Small audits, extreme weights, anchors' assumptions: what the studies are about.
        warnings.simplefilter("ignore", VerirecWarning)
        return [record for setting in plan.settings for record in _run_setting(plan, setting, population, seed)]


def _run_setting(plan: Plan, setting: Setting, population: Population, seed: int) -> Iterator[Record]:
    world = population.draw(setting, np.random.default_rng([seed, 0]))
    given = given_propensities(setting, world)
    fitted = FittedRates(world, given, seed)
    rates = {source: fitted.of(source) for source in plan.sources}
    matrices = prediction_matrices(population.levels, random_state=np.random.default_rng([seed, 1]))
    matrices = {name: matrices[name] for name in plan.matrices}
    truths = true_inaccuracies(world, matrices)
    estimates = _printed if plan.variant == "printed" else _sound
    for name in plan.matrices:
        predictions = matrices.pop(name)
        for (method, source), (value, interval) in estimates(plan, world, predictions, given, rates).items():
            used = rates.get(source)
            low, high = interval or (None, None)
            yield Record(
                setting.name,
                world.log.density,
                method,
                source,
                name,
                truths[name],
                value,
                low,
                high,
                None if used is None else used.rho01,
                None if used is None else used.rho10,
            )


def true_inaccuracies(world: World, matrices: Mapping[str, Array]) -> dict[str, float]:
    """Return the true inaccuracy of each recommender: what `World.true_inaccuracy` does, in one walk for all."""
    totals = dict.fromkeys(matrices, 0.0)
    loss = get_loss("log")
    for users, items in Grid(world.log.shape).blocks():
        truth = world.opinions.true_labels(users[:, None], items[None, :])
        for name, predictions in matrices.items():
            totals[name] += float(loss.of(predictions[np.ix_(users, items)], truth).sum())
    return {name: total / world.log.n_cells for name, total in totals.items()}


def given_propensities(setting: Setting, world: World) -> GivenPropensity:
    r"""Return the propensities that estimators work with, :math:`1/\hat p = (1-\beta)/p + \beta/p_e`."""
    p, beta = np.array((np.nan, *setting.propensities)), setting.propensity_error
    by_level = 1 / ((1 - beta) / p + beta / world.log.density)
    return GivenPropensity(by_level[world.levels])


Judged = dict[tuple[str, str], tuple[float, tuple[float, float] | None]]


def _sound(
    plan: Plan, world: World, predictions: Array, given: GivenPropensity, rates: Mapping[str, NoiseRates]
) -> Judged:
    # One study, so one walk over the grid, for all estimators at all rates.
    plain, denoised = (chosen(names, with_rates=True) for names in (plan.plain, plan.denoised))
    study = make_problem(predictions, LoggedPairs(world.log, given), [*plain, *denoised])
    found: dict[tuple[str, str], Any] = {}
    for source, used in {"none": None, **rates}.items():
        judged = judge(study, denoised if used else plain, used, CONFIDENCE)
        found |= {(name, source): one for name, one in judged.items()}
    return {row: (one.value, one.interval) for row, one in found.items()}


def _printed(
    plan: Plan, world: World, predictions: Array, given: GivenPropensity, rates: Mapping[str, NoiseRates]
) -> Judged:
    log = world.log
    if_positive, if_negative = -np.log(predictions), -np.log1p(-predictions)
    at = log.users, log.items
    rows = PrintedRows(
        predictions[at],
        if_positive[at],
        if_negative[at],
        log.labels.astype(np.float64),
        1 / given.at(*at),
        float(if_positive.sum()),
        float(if_negative.sum()),
        given.inverse_total,
        log.n_cells,
    )
    return {row: (value, None) for row, value in printed_estimates(rows, rates).items()}
