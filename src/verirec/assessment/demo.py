"""The demo: a world whose truth is known, two recommenders, and what ever more labels in hand make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.assessment.result import Assessment
from verirec.assessment.run import assess
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import split
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample
from verirec.randomness import as_generator
from verirec.simulate import World, world

SIZE: Final = (2_000, 600)
HELD_OUT: Final = 0.2
PANEL_PER_ITEM: Final = 40
AUDITED: Final = 600
SURVEYED: Final = 1_000
_PRIOR: Final = (1.0, 1.0)
"""Pseudo-counts of dislikes and likes: an item that nobody rated is predicted at one half."""

FROM_LOG: Final = "log-trained"
FROM_PANEL: Final = "panel-trained"
STAGES: Final = ("the log alone", "with an audit", "with a survey")


@dataclass(frozen=True, eq=False)
class Demo:
    """A finished demo: the world, and what the log alone, an audit and a survey say of two recommenders in it."""

    world: World
    stages: dict[str, Assessment]

    @property
    def assessment(self) -> Assessment:
        """The one that rests on most labels."""
        return self.stages[STAGES[-1]]

    @property
    def truth(self) -> dict[str, float]:
        """The true inaccuracy of each recommender."""
        return dict(self.assessment.truth)

    @property
    def preferred_by_log(self) -> str:
        """The recommender that looks better in the log as it stands."""
        naive = self.assessment.comparisons[0]
        return naive.first if naive.naive is not None and naive.naive.value < 0 else naive.second

    @property
    def truly_better(self) -> str:
        """The recommender that is better."""
        return min(self.truth, key=lambda name: self.truth[name])


def run_demo(random_state: int = 0) -> Demo:
    """Make the demo's world and judge two recommenders in it, three times.

    In this world taste decides what people rate, and they err where they are undecided: no model of propensities or of
    noise is right. Both recommenders predict an item's share of likes, the same for every user. One learns it from four
    fifths of the log; the other from a panel, of `PANEL_PER_ITEM` random users an item who say what they truly
    prefer. Both are judged on the rest of the log: alone; with the true labels of `AUDITED` of its pairs; and with
    those of `SURVEYED` random pairs.

    Examples
    --------
    >>> demo = run_demo()
    >>> demo.preferred_by_log, demo.truly_better
    ('log-trained', 'panel-trained')
    >>> [stage.comparisons[0].established for stage in demo.stages.values()]
    [None, None, 'panel-trained']
    """
    simulated = world(
        *SIZE,
        noise_rates=NoiseRates(rho01=0.4, rho10=0.3),
        near_threshold=True,
        observed=0.08,
        selectivity=4.0,
        random_state=random_state,
    )
    # A stream of its own, so that neither split nor survey is the draw that made the world.
    random = as_generator(random_state).spawn(1)[0]
    train, held_out = split(simulated.log, HELD_OUT, by="random", random_state=random)
    recommenders = {FROM_LOG: _item_shares(train), FROM_PANEL: _item_shares(_panel(simulated, random))}
    audited = random.choice(len(held_out), AUDITED, replace=False)
    audit = AuditSample(*_asked(simulated, held_out.users[audited], held_out.items[audited]))
    survey = SurveySample(*_asked(simulated, *random.integers(np.array(SIZE)[:, None], size=(2, SURVEYED))))
    truth = {name: simulated.true_inaccuracy(predictions) for name, predictions in recommenders.items()}
    labels: tuple[dict[str, AuditSample | SurveySample], ...] = ({}, {"audit": audit}, {"survey": survey})
    stages = {
        stage: assess(held_out, recommenders, truth=truth, random_state=random_state, **given)  # type: ignore[arg-type]
        for stage, given in zip(STAGES, labels, strict=True)
    }
    return Demo(simulated, stages)


Answers = tuple[Positions, Positions, npt.NDArray[np.int8]]


def _asked(simulated: World, users: Positions, items: Positions) -> Answers:
    """Ask people what they truly prefer."""
    return users, items, simulated.at(users, items).true_labels


def _item_shares(log: FeedbackLog) -> npt.NDArray[np.float64]:
    """Predict each item's share of likes in a log, for every user."""
    dislikes, likes = _PRIOR
    positives = np.bincount(log.items, weights=log.labels, minlength=log.n_items)
    rows = np.bincount(log.items, minlength=log.n_items)
    return np.tile((positives + likes) / (rows + likes + dislikes), (log.n_users, 1))


def _panel(simulated: World, random: np.random.Generator) -> FeedbackLog:
    """Ask random users about every item."""
    users = np.concatenate([random.choice(SIZE[0], PANEL_PER_ITEM, replace=False) for _ in range(SIZE[1])])
    answers = _asked(simulated, users, np.repeat(np.arange(SIZE[1]), PANEL_PER_ITEM))
    return FeedbackLog.from_arrays(*answers, n_users=SIZE[0], n_items=SIZE[1])
