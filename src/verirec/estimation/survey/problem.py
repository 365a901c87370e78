"""One survey, and what it makes of any number of recommenders in one walk over the grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.cell_losses import CellLosses, of_both
from verirec.estimation.inputs import AnyNoise, KnownNoise
from verirec.estimation.intervals import Estimate, EstimateRange
from verirec.estimation.survey.delta import NAME as BY_DELTA
from verirec.estimation.survey.delta import DeltaLine
from verirec.estimation.survey.draws import Draws, check_survey, draws_of, self_selected, target_of, with_audit
from verirec.estimation.survey.inference import Mean, inferred, intercepts, power_of
from verirec.estimation.survey.target import Target
from verirec.exceptions import SurveyError
from verirec.losses import AnyRegion, TransitionMatrix, errors_of
from verirec.nuisance.noise_rates import AuditedRows
from verirec.nuisance.ordinal_model import LevelProbabilities, ReachedProbabilities, fit_labels
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import SAMPLE_STREAM

Array = npt.NDArray[np.float64]


class Losses(Protocol):
    """l(f, 0) and l(f, 1) - l(f, 0) of pairs: of a recommender, or the difference of two."""

    @property
    def parallel(self) -> bool:
        """Whether two threads may ask at once."""
        ...

    def cells(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return both at positions that broadcast together."""
        ...

    def of_rows(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return both for single pairs, or say what is wrong with the predictions."""
        ...


@dataclass(frozen=True, eq=False)
class LossDifference:
    """The losses of one recommender minus those of another: what is true of losses is true of their difference."""

    first: CellLosses
    second: CellLosses

    @property
    def parallel(self) -> bool:
        """Whether both may be asked by two threads at once."""
        return self.first.parallel and self.second.parallel

    def cells(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Subtract."""
        one, two = self.first.cells(users, items), self.second.cells(users, items)
        return one[0] - two[0], one[1] - two[1]

    def of_rows(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Subtract."""
        return of_both(np.subtract, self.first.of_rows(users, items), self.second.of_rows(users, items))


@dataclass(frozen=True, eq=False)
class ScaledDifference(LossDifference):
    """The losses of one recommender minus those of another, each times a factor."""

    factors: tuple[float, float] = (1.0, 1.0)

    def cells(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Subtract."""
        one, two = self.first.cells(users, items), self.second.cells(users, items)
        return self._weighed(one[0], two[0]), self._weighed(one[1], two[1])

    def of_rows(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Subtract."""
        return of_both(self._weighed, self.first.of_rows(users, items), self.second.of_rows(users, items))

    def _weighed(self, one: Array, two: Array) -> Array:
        a, b = self.factors
        return a * one - b * two


class Judged(NamedTuple):
    """Losses on a survey's pairs, and the mean over the target of what the label model expects of them."""

    if_negative: Array
    difference: Array
    expected: float
    expected_variance: float


@dataclass(frozen=True, eq=False)
class SurveyProblem:
    r"""A survey, the log beside it, and the pairs to speak of.

    Parameters
    ----------
    log
        What the label model is fitted to; it sharpens the answer and cannot spoil it.
    target
        The pairs to speak of.
    draws
        The surveyed ones.
    rates
        Of the log's noise, if they are known.
    sample
        Pairs of the target to visit, in place of all; `None` for all that `Grid` allows.
    seed
        Of that sample.
    """

    log: FeedbackLog
    target: Target
    draws: Draws
    rates: KnownNoise | None = None
    sample: int | None = None
    seed: int = 0

    @classmethod
    def of(
        cls,
        survey: SurveySample,
        log: FeedbackLog,
        rates: KnownNoise | None,
        *,
        exclude: Any = None,
        of_all: bool = True,
        audited: AuditedRows | None = None,
        sample: int | None = None,
        seed: int = 0,
    ) -> SurveyProblem:
        """Check a survey against the log's grid, and put both together, with an audit's rows if there is one.

        `of_all` is that of `draws_of`.
        """
        target = target_of(survey, log, exclude)
        draws = draws_of(survey, target, log, rates, of_all=of_all)
        if audited is not None:
            draws = with_audit(draws, audited, target, log)
        return cls(log, target, draws, rates, sample, seed)

    @cached_property
    def label_model(self) -> ReachedProbabilities:
        """P(r* = 1 | logged), by what people logged of their own accord; of levels, P(r* >= c | logged)."""
        own = self_selected(self.log)
        if len(own) == 0:
            raise SurveyError(
                "the log has no rows that people chose themselves, to learn from what they like; the survey alone "
                'needs none: estimators="survey"'
            )
        return fit_labels(own, self.rates)

    @cached_property
    def shift(self) -> float | Array:
        """What the label model's logits have to be moved by to agree with the survey; of levels, those of each."""
        return intercepts(self.label_model.cell_logits(self.draws.users, self.draws.items), self.draws)

    @cached_property
    def expected_labels(self) -> ReachedProbabilities:
        """q, the label model moved to where the survey is."""
        return self.label_model.shifted(self.shift)  # type: ignore[arg-type]

    @cached_property
    def delta_line(self) -> DeltaLine:
        """The logged pairs, weighted by one delta."""
        expected, shift, rates = self.expected_labels, self.shift, self.rates
        assert not isinstance(expected, LevelProbabilities)  # noqa: S101 -- levels are refused where it is asked for
        assert isinstance(shift, float)  # noqa: S101 -- likewise
        assert not isinstance(rates, TransitionMatrix)  # noqa: S101 -- likewise
        return DeltaLine.of(self.log, self.target, self.draws, rates, expected, shift, self.seed)

    def judged(self, losses: Sequence[Losses], *, on_grid: bool = True) -> list[Judged]:
        """Work out the losses of some recommenders, all in one walk over the target (none, if not `on_grid`)."""
        own = [one.of_rows(self.draws.users, self.draws.items) for one in losses]
        nothing = [(0.0, 0.0)] * len(own)
        means = self._expected(losses) if on_grid else nothing
        return [Judged(*pair, *mean) for pair, mean in zip(own, means, strict=True)]

    def _expected(self, losses: Sequence[Losses]) -> list[tuple[float, float]]:
        expected = self.expected_labels  # Alone, as workers would be sent the log with it.

        def parts(users: Positions, items: Positions) -> tuple[Array, Iterator[tuple[Array, Array]]]:
            return expected.cells(users, items), (one.cells(users, items) for one in losses)

        def sums(users: Positions, items: Positions) -> list[float]:
            q, of_each = parts(users, items)
            # A product of two blocks that is only added up need not be made.
            return [
                float(negative.sum(dtype=np.float64)) + float(np.vdot(q, difference))
                for negative, difference in of_each
            ]

        size = self.sample
        if size is None and not self.target.grid.fits:
            size = self.target.grid.sample_cells
        if size is None or size >= len(self.target):
            parallel = all(one.parallel for one in losses)
            return [(float(mean), 0.0) for mean in self.target.means_of_sums(sums, parallel=parallel)]
        q, of_each = parts(*self.target.sample(size, np.random.default_rng([self.seed, SAMPLE_STREAM])))
        values = [errors_of(negative, difference, q) for negative, difference in of_each]
        return [(float(part.mean()), float(part.var(ddof=1)) / len(part)) for part in values]

    def facts(self) -> dict[str, Any]:
        """What to report of the label model."""
        return {"shift": self.shift if isinstance(self.shift, float) else self.shift.tolist()}


def survey_mean(_: SurveyProblem, judged: Judged) -> Mean:
    r"""The survey alone: :math:`\sum v [l_0 + y d]`."""
    return Mean(0.0, judged.if_negative, judged.difference)


def survey_ppi_mean(problem: SurveyProblem, judged: Judged) -> Mean:
    r"""Prediction-powered: :math:`\lambda |T|^{-1} \sum_T t + \sum v (l_0 + y d - \lambda t)`, :math:`t = l_0 + q d`.

    Angelopoulos et al. (2023), "Prediction-powered inference" and "PPI++", with q a model of labels that was fitted to
    the log and moved to the survey's level. Right for any q and any :math:`\lambda`, as the second term takes away what
    is wrong with the first. At :math:`\lambda = 1` it is the mean of t plus that of (y - q) d; the
    :math:`\lambda` of least variance, between 0 and 1, keeps a recommender that knows more than q does from an interval
    wider than the survey's own.
    """
    draws = problem.draws
    liked = problem.expected_labels.cells(draws.users, draws.items)
    predicted = errors_of(judged.if_negative, judged.difference, liked)
    power = power_of(errors_of(judged.if_negative, judged.difference, draws.labels.values), predicted, draws)
    return Mean(
        power * judged.expected,
        judged.if_negative - power * predicted,
        judged.difference,
        liked,
        power**2 * judged.expected_variance,
        # At 0 it is the survey alone.
        fitted=int(power > 0),
        facts={"power": power},
    )


Formula = Callable[[SurveyProblem, Judged], Mean]
ALONE: Final = "survey"
FORMULAS: Final[Mapping[str, Formula]] = {ALONE: survey_mean, "survey-ppi": survey_ppi_mean}


def judge_by_survey(
    problem: SurveyProblem, losses: Sequence[Losses], names: Sequence[str], confidence: float
) -> list[dict[str, Estimate]]:
    """Apply survey estimators to recommenders, or to differences of two: by name, for each of `losses`."""
    # The survey alone needs no label model, which not every log can teach.
    found = problem.judged(losses, on_grid=any(name != ALONE for name in names))

    def at(name: str, one: Losses, judged: Judged) -> Estimate:
        if name == BY_DELTA:
            return _by_delta(problem, one, judged, confidence, problem.facts())
        more = None if name == ALONE else problem.facts()
        return inferred(FORMULAS[name](problem, judged), problem.draws, confidence, more)

    return [{name: at(name, one, judged) for name in names} for one, judged in zip(losses, found, strict=True)]


def _by_delta(
    problem: SurveyProblem, losses: Losses, judged: Judged, confidence: float, more: dict[str, Any]
) -> Estimate:
    line = problem.delta_line
    difference = losses.of_rows(line.log.users, line.log.items)[1]
    ppi = survey_ppi_mean(problem, judged)
    return line.inferred(difference, (judged.expected, judged.expected_variance), ppi, confidence, more)


def survey_results(
    losses: Sequence[Losses],
    names: Sequence[str],
    survey: SurveySample,
    log: FeedbackLog,
    noise: AnyNoise,
    **options: Any,
) -> list[dict[str, Estimate | EstimateRange]]:
    """Apply survey estimators at the noise rates; or, to a noisy survey, all over a region of them.

    Parameters
    ----------
    losses, names
        As in `judge_by_survey`.
    survey, log, noise
        A survey whose labels are true needs no noise rates: a region of them says nothing to it.
    options
        `confidence`, and those of `SurveyProblem.of`.
    """
    check_survey(survey, log)
    if not names:
        return [{} for _ in losses]
    if options.get("audited") is not None and ALONE in names:
        # The survey alone is alone.
        alone = survey_results(losses, [ALONE], survey, log, noise, **(options | {"audited": None}))
        others = [name for name in names if name != ALONE]
        more = survey_results(losses, others, survey, log, noise, **options)
        return [one | two for one, two in zip(alone, more, strict=True)]
    if isinstance(noise, AnyRegion) and BY_DELTA in names:
        # It rests on the log's labels, whose noise the others need not know of; and its weights may peak inside.
        rest = survey_results(losses, [name for name in names if name != BY_DELTA], survey, log, noise, **options)
        ranges = _over_points(losses, [BY_DELTA], survey, log, noise.lattice, **options)
        return [one | ranged for one, ranged in zip(rest, ranges, strict=True)]
    if isinstance(noise, AnyRegion) and survey.noisy:
        return _over_points(losses, names, survey, log, noise.corners, **options)
    return [
        dict(one)
        for one in _at_rates(losses, names, survey, log, None if isinstance(noise, AnyRegion) else noise, **options)
    ]


def _at_rates(
    losses: Sequence[Losses],
    names: Sequence[str],
    survey: SurveySample,
    log: FeedbackLog,
    rates: KnownNoise | None,
    *,
    confidence: float,
    **options: Any,
) -> list[dict[str, Estimate]]:
    return judge_by_survey(SurveyProblem.of(survey, log, rates, **options), losses, names, confidence)


def _over_points(
    losses: Sequence[Losses],
    names: Sequence[str],
    survey: SurveySample,
    log: FeedbackLog,
    points: Sequence[KnownNoise],
    **options: Any,
) -> list[dict[str, Estimate | EstimateRange]]:
    """Apply survey estimators at some noise rates, and take the range."""
    found = [_at_rates(losses, names, survey, log, rates, **options) for rates in points]
    return [
        {name: EstimateRange.over([point[at][name] for point in found]) for name in names} for at in range(len(losses))
    ]
