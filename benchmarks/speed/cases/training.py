"""OME-DR to a goal beside the loop that the field writes, and all methods with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from benchmarks.speed.case import Case, Run, Taken, Target
from benchmarks.speed.material import real_data

LOOP = "plain loop, tuned"


@dataclass(frozen=True)
class Goal:
    """When a contender has arrived, and the loops' best settings (`benchmarks.speed.tune_race` found all of it)."""

    log_loss: float
    auc: float
    plain_loop: tuple[float, int]
    gradient: tuple[float, int]


GOALS = {
    "coat": Goal(0.6193, 0.7297, (0.01, 2_048), (0.03, 2_048)),
    "music": Goal(0.6289, 0.6726, (0.01, 8_192), (0.01, 2_048)),
    "kuairec": Goal(0.6346, 0.6647, (0.003, 2_048), (0.003, 2_048)),
}


def racer(size: str, contender: str) -> Run:
    """Train until the goal is reached: what that took, judging not counted."""
    import torch
    from benchmarks.speed.race import CONTENDERS, Seen, course, problem

    torch.set_num_threads(1)
    given, goal = problem(size), GOALS[size]
    settings = getattr(goal, contender.replace(" ", "_"), (0.01, 2_048))  # sweeps take none

    def there(seen: list[Seen]) -> bool:
        return seen[-1].log_loss <= goal.log_loss and seen[-1].auc >= goal.auc

    def run() -> Taken:
        seen = course(CONTENDERS[contender], given, *settings, stop=there)
        if not there(seen):
            raise RuntimeError(f"{contender} did not get to {goal} on {size}: {seen[-1]}")
        return seen[-1].taken

    return run


def methods(papers: bool) -> Run:
    """Fit the paper's methods, or the catalogue's others, on Coat with what they come with."""
    import torch

    import verirec as vr
    from verirec.studies.table2.paper import PAPER_METHODS

    torch.set_num_threads(1)
    rates = vr.NoiseRates(0.2, 0.1)
    log = real_data("coat").train.with_noise(rates, random_state=0)
    chosen = [method for name, method in vr.methods.catalogue.items() if (name in PAPER_METHODS) == papers]
    return lambda: [method(random_state=0).fit(log, noise_rates=rates) for method in chosen]


def _race(size: str, of: str, times: float, rounds: int) -> Case:
    sides = {"sweeps": "sweep", LOOP: "plain loop"} | ({"our Adam": "gradient"} if size != "kuairec" else {})
    return Case(
        f"training/{size}",
        "OME-DR to the same log loss and AUC",
        of,
        {name: partial(racer, size, contender) for name, contender in sides.items()},
        (Target(1 / times, LOOP),),
        threads=1,
        rounds=rounds,
    )


CASES = [
    _race("coat", "Coat, 6,960 rows", 60, 15),
    _race("music", "15,400 x 1,000, 308,010 rows", 35, 3),
    _race("kuairec", "7,000 x 10,000, 1,046,853 rows", 30, 2),
    Case(
        "training/methods",
        "the paper's 24 methods with their defaults",
        "Coat, 6,960 rows",
        {"all 24": partial(methods, papers=True)},
        (Target(15.0),),
        threads=1,
        rounds=1,
    ),
    Case(
        "training/others",
        "the catalogue's other methods with their defaults",
        "Coat, 6,960 rows",
        {"all others": partial(methods, papers=False)},
        threads=1,
        rounds=1,
    ),
]
