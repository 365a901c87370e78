"""Which pairs to ask people about: logged ones, random ones, and how many of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import real_number, truth_value, whole_number
from verirec.estimation.inputs import has_clicks_alone, judgeable
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.planning.drawing import draw, draw_one_each, inclusion_probabilities
from verirec.estimation.planning.label_plan import LabelPlan
from verirec.estimation.planning.likes import ExpectedLikes, expect_likes
from verirec.estimation.planning.logged_pairs import LoggedDesign, design_logged
from verirec.estimation.planning.questions import MeanLosses, Question, Recommenders, pose
from verirec.estimation.planning.random_pairs import RandomDesign, candidates_for, design_random
from verirec.estimation.planning.splitting import Prices, Split
from verirec.estimation.survey.target import Target
from verirec.exceptions import ParameterError, UnreachableError
from verirec.nuisance.noise_rates.design import check_guess, design_audit
from verirec.randomness import RandomState, as_generator, same_state
from verirec.resuming import kept, long_job

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.engine.choice import EngineLike

if TYPE_CHECKING:
    from verirec.data.cells import Positions
    from verirec.losses import LossLike, NoiseRates
    from verirec.nuisance.surveys import SurveySample

Array = npt.NDArray[np.float64]

_WIDEST: Final = 1e100
"""Half-widths beyond it, which any survey reaches, have no square."""


@long_job
def plan_labels(
    log: FeedbackLog,
    recommenders: Recommenders | None = None,
    *,
    budget: int | None = None,
    half_width: float | None = None,
    purpose: str = "level",
    confidence: float = 0.95,
    pilot: SurveySample | None = None,
    exclude: Any = None,
    propensities: Any = None,
    guess: NoiseRates | None = None,
    loss: LossLike = "log",
    clip: float | None = None,
    one_per_user: bool = False,
    random_state: RandomState = 0,
    engine: EngineLike = None,
    checkpoint: str | Path | None = None,
) -> LabelPlan:
    r"""Plan which pairs to ask people about, so that the fewest true labels tell most.

    Random pairs settle an answer whatever decides what people log; logged pairs do so only where it is known how
    likely pairs are to be logged, and otherwise tell how noisy the log is. Each random pair is drawn with a probability
    in proportion to :math:`|d| \sqrt{q (1 - q)}`, d being what its label changes and q how likely it is to be liked;
    n of them give a half-width of :math:`1.96 \sqrt{n^{-1}\, \overline{d^2 q (1 - q) / h}}`. A plan is never worse
    than a simple random choice: where unequal probabilities gain nothing, all are the same.

    Parameters
    ----------
    log
        With rows of both classes; or of clicks alone, if there are recommenders: then pairs are random ones.
    recommenders
        Predictions by name, in a list, or of one recommender. Without any, the plan is one of logged pairs that tell
        the noise rates.
    budget, half_width
        How many pairs, or how wide the widest interval may be to either side: one of the two.
    purpose
        "level": each recommender's true inaccuracy. "difference": that of each two. "ndcg@k" or "precision@k", such as
        "ndcg@10": which of each two ranks better or, of a single one, how well it ranks. Only pairs at the top of a
        ranking matter for that; for a difference those in the one and not in the other most.
    confidence
        Of the intervals.
    pilot
        An earlier survey, which says how much less than logged pairs others are liked. Without one the plan is enough
        whichever that is, within what public data sets show (0 to 3 in logits).
    exclude
        Pairs that do not count, such as those trained on: a log, or (users, items).
    propensities
        As in `estimate`. Only those that are declared known let logged pairs settle anything.
    guess
        Of the noise rates; by default what the log allows (`identified_region`), up to .3.
    loss, clip
        As in `estimate`.
    one_per_user
        Whether to ask nobody about more than one random pair. Not where logged pairs are asked about too.
    random_state
        Of whatever is drawn.
    engine, checkpoint
        As in `estimate`.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> mine, theirs = 0.2 + 0.6 * world.preferences, np.full((200, 300), 0.4)
    >>> plan = plan_labels(world.log, {"mine": mine, "theirs": theirs}, half_width=0.03, purpose="difference")
    >>> len(plan) < plan.simple, plan.half_width <= 0.03
    (True, True)
    >>> plan_labels(world.log, half_width=0.05).purpose
    'noise rates'
    """
    level = checked_confidence(confidence)
    if (budget is None) == (half_width is None):
        raise ParameterError("give budget=... or half_width=...: one of the two")
    pairs = None if budget is None else whole_number("budget", budget, min=10)
    most = 0.5 if recommenders is None else np.inf
    width = None if half_width is None else real_number("half_width", half_width, above=0, below=most)
    clicks = has_clicks_alone(log)
    check_guess(guess)
    singly = truth_value("one_per_user", one_per_user)
    if recommenders is None:
        judgeable(log)
        options = {"guess": guess, "propensities": propensities, "random_state": random_state}
        return _for_rates(log, pairs, width, level, options)
    seed = same_state(random_state)
    target = Target.of(log.shape, None if pilot is None else getattr(pilot, "frame", None), exclude)
    question = pose(purpose, recommenders, log, target, loss, clip)
    likes = expect_likes(log, pilot, target)
    logged = None
    if isinstance(question, MeanLosses) and not clicks:
        logged = design_logged(log, propensities, question, likes, guess, random_state=seed)
    if singly and logged is not None:
        raise ParameterError(
            "one_per_user is for random pairs: with propensities that are known, logged ones count too"
        )
    return _Draft(log, question, likes, logged, level, seed, singly).settle(purpose, pairs, width)


@dataclass(frozen=True, eq=False)
class _Draft:
    """A plan for recommenders, before it is known how many pairs it takes."""

    log: FeedbackLog
    question: Question
    likes: ExpectedLikes
    logged: LoggedDesign | None
    confidence: float
    seed: int
    one_per_user: bool = False

    def settle(self, purpose: str, budget: int | None, half_width: float | None) -> LabelPlan:
        """Choose how many pairs of each kind, and which."""
        reach = float(ndtri((1 + self.confidence) / 2))
        design = self._design(budget)
        prices = Prices(design.variances, self.logged, len(self.log))
        split = (
            prices.split(int(budget or 0))
            if half_width is None
            else prices.reach(min(half_width / reach, _WIDEST) ** 2)
        )
        _refuse_more_than_all(split, design, half_width)
        if candidates_for(split.random) > candidates_for(budget or 0):
            design = self._design(split.random, more="more ")
        simple = int(np.ceil(design.uniform.max() / split.variances.max()))
        users, items, probabilities, logged = self._pairs(design, split)
        return LabelPlan(
            self.log,
            users,
            items,
            logged,
            probabilities,
            purpose,
            dict(zip(self.question.names, (reach * np.sqrt(split.variances)).tolist(), strict=True)),
            self.confidence,
            None if simple > design.candidates.total else max(simple, len(users)),
            self._assumes(split),
        )

    def _design(self, count: int | None, more: str = "") -> RandomDesign:
        """Work out how likely pairs are to be asked about, where so many are drawn."""
        drawn = partial(design_random, self.question, self.likes, as_generator(self.seed), count=count)
        return kept(f"{more}random pairs", drawn)

    def _assumes(self, split: Split) -> str:
        if self.logged is None or not split.logged:
            return self.likes.assumes
        rates = f"if the noise rates are about {self.logged.rates.rho01:.2f} and {self.logged.rates.rho10:.2f}"
        return f"{rates}, and {self.likes.assumes}" if split.random else rates

    def _pairs(self, design: RandomDesign, split: Split) -> tuple[Positions, Positions, Array, npt.NDArray[np.bool_]]:
        """Draw the pairs of both kinds, and mix them: users, items, probabilities, and which are logged."""
        random = as_generator(self.seed)
        found, count = design.candidates, min(split.random, len(design.candidates.users))
        if self.one_per_user:
            asked = len(np.unique(found.users))
            if count > asked:
                raise UnreachableError(f"{count:,} pairs, one of each user, are more than the {asked:,} users to ask")
            drawn, own = draw_one_each(design.sizes, found.users, count, random)
        else:
            chances = inclusion_probabilities(design.sizes, count)
            drawn = draw(chances, count, random)
            own = chances[drawn]
        parts = [(found.users[drawn], found.items[drawn], found.share * own)]
        if self.logged is not None and split.logged:
            of_row = self.logged.probabilities(split.logged)
            rows = draw(of_row, split.logged, random)
            parts.append((self.log.users[rows], self.log.items[rows], of_row[rows]))
        order = random.permutation(sum(len(part[0]) for part in parts))
        users, items, probabilities = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
        return users, items, probabilities, order >= count


def _refuse_more_than_all(split: Split, design: RandomDesign, half_width: float | None) -> None:
    total = design.candidates.total
    if split.random > total:
        there_are = f"more than the {total:,} that there are to ask about"
        if half_width is None:
            raise UnreachableError(f"{split.random:,} random pairs are {there_are}; give a smaller budget")
        raise UnreachableError(
            f"a half_width of {half_width:g} takes {split.random:,} random pairs, {there_are}; give a larger one"
        )


def _for_rates(
    log: FeedbackLog,
    budget: int | None,
    half_width: float | None,
    confidence: float,
    options: dict[str, Any],
) -> LabelPlan:
    """Plan an audit: logged pairs that tell the noise rates."""
    asked = {"budget": budget, "half_width": half_width, "confidence": confidence} | options
    design = kept("logged pairs", lambda: design_audit(log, **asked))
    most01, most10 = (max(getattr(one, rate) for one in design.guesses) for rate in ("rho01", "rho10"))
    at_most = "about" if len(design.guesses) == 1 else "at most"
    return LabelPlan(
        log,
        log.users[design.rows],
        log.items[design.rows],
        np.ones(len(design.rows), bool),
        design.probabilities,
        "noise rates",
        dict(zip(("rho01", "rho10"), design.half_widths, strict=True)),
        confidence,
        design.simple,
        f"if they are {at_most} {most01:.2f} and {most10:.2f}",
    )
