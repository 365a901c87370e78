"""The demo: a world whose truth is known, two recommenders, and what the log makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.assessment.result import Assessment
from verirec.assessment.run import assess
from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import split
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.propensities import GivenPropensity
from verirec.randomness import as_generator
from verirec.simulate import World, world

SIZE: Final = (2_000, 600)
HELD_OUT: Final = 0.2
SURVEY_PER_ITEM: Final = 40
AUDITED: Final = 600
_PRIOR: Final = (1.0, 1.0)
"""Pseudo-counts of dislikes and likes: an item that nobody rated is predicted at one half."""

FROM_LOG: Final = "learnt from the log"
FROM_SURVEY: Final = "learnt from a survey"


@dataclass(frozen=True, eq=False)
class Demo:
    """A finished demo: the world, and the assessment of its held-out ratings with the truth beside it."""

    world: World
    assessment: Assessment

    @property
    def truth(self) -> dict[str, float]:
        """The true inaccuracy of each recommender."""
        return dict(self.assessment.truth)

    @property
    def preferred_by_log(self) -> str:
        """The recommender that looks better in the log as it stands."""
        naive = self.assessment.comparisons[0]
        return naive.first if naive.naive.value < 0 else naive.second

    @property
    def truly_better(self) -> str:
        """The recommender that is better."""
        return min(self.truth, key=lambda name: self.truth[name])


def run_demo(random_state: int = 0) -> Demo:
    """Make the demo's world and judge two recommenders in it.

    Both predict an item's share of likes, the same for every user. One learns it from four fifths of the log, where
    people rate what they like and some labels are wrong. The other learns it from a survey in which
    `SURVEY_PER_ITEM` random users an item say what they truly prefer. Both are judged on the rest, which is
    selective and noisy in the same way as what the first one learnt from: as it stands, and corrected with the
    propensities, which the logging system of this world knows, and with noise rates from `AUDITED` of its pairs that
    were asked about again.

    Examples
    --------
    >>> demo = run_demo()
    >>> demo.preferred_by_log, demo.truly_better, demo.assessment.comparisons[0].established
    ('learnt from the log', 'learnt from a survey', 'learnt from a survey')
    """
    simulated = world(
        *SIZE,
        noise_rates=NoiseRates(rho01=0.2, rho10=0.1),
        observed=0.08,
        selectivity=3.0,
        weak_separability=True,
        random_state=random_state,
    )
    # A stream of its own, so that neither split nor survey is the draw that made the world.
    random = as_generator(random_state).spawn(1)[0]
    train, held_out = split(simulated.log, HELD_OUT, by="random", random_state=random)
    recommenders = {FROM_LOG: _item_shares(train), FROM_SURVEY: _item_shares(_survey(simulated, random))}
    audited = random.choice(len(held_out), AUDITED, replace=False)
    users, items = held_out.users[audited], held_out.items[audited]
    found = assess(
        held_out,
        recommenders,
        audit=AuditSample(users, items, simulated.at(users, items).true_labels),
        propensities=GivenPropensity(simulated.propensity_values).thinned(HELD_OUT),
        truth={name: simulated.true_inaccuracy(predictions) for name, predictions in recommenders.items()},
        random_state=random_state,
    )
    return Demo(simulated, found)


def _item_shares(log: FeedbackLog) -> npt.NDArray[np.float64]:
    """Predict each item's share of likes in a log, for every user."""
    dislikes, likes = _PRIOR
    positives = np.bincount(log.items, weights=log.labels, minlength=log.n_items)
    rows = np.bincount(log.items, minlength=log.n_items)
    return np.tile((positives + likes) / (rows + likes + dislikes), (log.n_users, 1))


def _survey(simulated: World, random: np.random.Generator) -> FeedbackLog:
    """Ask random users about every item, and get the truth."""
    users = np.concatenate([random.choice(SIZE[0], SURVEY_PER_ITEM, replace=False) for _ in range(SIZE[1])])
    items = np.repeat(np.arange(SIZE[1]), SURVEY_PER_ITEM)
    labels = simulated.at(users, items).true_labels
    return FeedbackLog.from_arrays(users, items, labels, n_users=SIZE[0], n_items=SIZE[1])
