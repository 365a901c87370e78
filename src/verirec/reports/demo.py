"""The demo: a world whose truth is known, two recommenders, and what the log makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimators import Estimate, naive_estimate
from verirec.losses import NoiseRates
from verirec.randomness import as_generator
from verirec.reports.page import render
from verirec.reports.plots import estimates_plot
from verirec.simulate import World, world

SIZE: Final = (400, 600)
SURVEY_PER_ITEM: Final = 40
_PRIOR: Final = (1.0, 1.0)
"""Pseudo-counts of dislikes and likes: an item that nobody rated is predicted at one half."""

FROM_LOG: Final = "learnt from the log"
FROM_SURVEY: Final = "learnt from a survey"


@dataclass(frozen=True, eq=False)
class Demo:
    """A finished demo: the world, and for each recommender the truth and the naive estimate."""

    world: World
    truth: dict[str, float]
    naive: dict[str, Estimate]

    @property
    def preferred_by_log(self) -> str:
        """The recommender that looks better in the log."""
        return min(self.naive, key=lambda name: self.naive[name].value)

    @property
    def truly_better(self) -> str:
        """The recommender that is better."""
        return min(self.truth, key=lambda name: self.truth[name])

    def summary(self) -> dict[str, Any]:
        """Give the machine-readable result."""
        rates, log = self.world.noise_rates, self.world.log
        return {
            "truth": self.truth,
            "noise_rates": {"rho01": rates.rho01, "rho10": rates.rho10, "source": "true"},
            "propensity": {
                "source": "true",
                "mean": float(self.world.propensities.mean()),
                "least": float(self.world.propensities.min()),
                "most": float(self.world.propensities.max()),
                "rows": len(log),
                "observed_share": log.density,
            },
            "recommenders": {
                name: {"naive": {"value": estimate.value, "low": estimate.interval[0], "high": estimate.interval[1]}}
                for name, estimate in self.naive.items()
            },
        }

    def page(self) -> str:
        """Give the self-contained HTML page."""
        return render(
            "demo.html",
            demo=self,
            liked_in_log=float(self.world.log.labels.mean()),
            liked_in_truth=float(self.world.true_labels.mean()),
            plot=estimates_plot(self.naive, self.truth),
            survey=SURVEY_PER_ITEM,
        )


def run_demo(random_state: int = 0) -> Demo:
    """Make the demo's world and judge two recommenders in it.

    Both predict an item's share of likes, the same for every user. One learns it from the log, where people rate what
    they like and some labels are wrong. The other learns it from a survey that asks `SURVEY_PER_ITEM` random users an
    item what they truly prefer. The log is thus the first one's home ground.

    Examples
    --------
    >>> demo = run_demo()
    >>> demo.preferred_by_log, demo.truly_better
    ('learnt from the log', 'learnt from a survey')
    """
    simulated = world(
        *SIZE,
        noise_rates=NoiseRates(rho01=0.2, rho10=0.1),
        observed=0.08,
        selectivity=3.0,
        weak_separability=True,
        random_state=random_state,
    )
    recommenders = {
        FROM_LOG: _item_shares(simulated.log),
        FROM_SURVEY: _item_shares(_survey(simulated, random_state)),
    }
    return Demo(
        simulated,
        truth={name: simulated.true_inaccuracy(predictions) for name, predictions in recommenders.items()},
        naive={name: naive_estimate(predictions, simulated.log) for name, predictions in recommenders.items()},
    )


def _item_shares(log: FeedbackLog) -> npt.NDArray[np.float64]:
    """Predict each item's share of likes in a log, for every user."""
    dislikes, likes = _PRIOR
    positives = np.bincount(log.items, weights=log.labels, minlength=log.n_items)
    rows = np.bincount(log.items, minlength=log.n_items)
    return np.tile((positives + likes) / (rows + likes + dislikes), (log.n_users, 1))


def _survey(simulated: World, random_state: int) -> FeedbackLog:
    """Ask random users about every item, and get the truth."""
    # A stream of its own, so that the survey is not the draw that made the world.
    random = as_generator(random_state).spawn(1)[0]
    users = np.concatenate([random.choice(SIZE[0], SURVEY_PER_ITEM, replace=False) for _ in range(SIZE[1])])
    items = np.repeat(np.arange(SIZE[1]), SURVEY_PER_ITEM)
    labels = simulated.at(users, items).true_labels
    return FeedbackLog.from_arrays(users, items, labels, n_users=SIZE[0], n_items=SIZE[1])
