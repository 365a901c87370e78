"""What to run, as data: a study is a data set, a protocol, methods in forms, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from verirec.checks import one_of, whole_number
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.spaces import BASELINE_FORM, BASELINES, BY_LOG, BY_LOG_FORM, FORMS, SPACES

DATASETS: Final = ("coat", "yahoo-r3", "kuairec")
PROTOCOLS: Final = ("unbiased-validation", "honest")
RATES: Final = ("true", "audit")
OURS: Final = ("ome-eib", "ome-ips", "ome-dr")
"""The paper's own methods; all others are its baselines."""
CHOICES: Final = {
    "unbiased-validation": ("validation",),
    "honest": ("naive",),
}
"""What the settings that are run with every seed are chosen by, in each protocol."""
QUICK_METHODS: Final = ("mf", "ips", "ome-dr")
MOST_TRIALS: Final = 10_000
MOST_SEEDS: Final = 1_000


class Task(NamedTuple):
    """A method in a form: what is tuned, and then run with every seed."""

    method: str
    form: str


@dataclass(frozen=True)
class Study:
    """A study: all its tasks have the same number of trials, and then the same seeds.

    Parameters
    ----------
    dataset
        "coat", "yahoo-r3" or "kuairec".
    protocol
        "unbiased-validation": settings are chosen on a slice of the random ratings, taken out of the test set; the
        field's habit. "honest": on held-out rows of the noisy, self-selected log.
    methods
        Names of the paper's.
    forms
        Of `FORMS`; "features" is left out where the data has none.
    by_log
        Of `BY_LOG`. Those with a survey are left out under "honest", where all random ratings are tested on.
    trials, seeds
        Settings tried for each task; seeds of flips and of training, 0, 1, ...
    rho01, rho10
        What training labels are flipped with.
    rates
        Whose noise rates methods get: "true" ones, or those of an audit of logged pairs.
    space
        Where settings are looked for: see `space_of`.

    Examples
    --------
    >>> [len(list(Study(methods=("mf", "ome-dr")).tasks(has_features=have))) for have in (True, False)]
    [18, 16]
    """

    dataset: str = "coat"
    protocol: str = "unbiased-validation"
    methods: tuple[str, ...] = PAPER_METHODS
    forms: tuple[str, ...] = FORMS
    by_log: tuple[str, ...] = BY_LOG
    trials: int = 20
    seeds: int = 10
    rho01: float = 0.2
    rho10: float = 0.1
    rates: str = "true"
    space: str = "fast"

    def __post_init__(self) -> None:
        one_of("dataset", self.dataset, DATASETS)
        one_of("protocol", self.protocol, PROTOCOLS)
        one_of("rates", self.rates, RATES)
        one_of("space", self.space, SPACES)
        for name in self.methods:
            one_of("method", name, PAPER_METHODS)
        for name in self.forms:
            one_of("form", name, FORMS)
        for name in self.by_log:
            one_of("by_log", name, BY_LOG)
        if not self.forms or not self.methods:
            raise ParameterError("a study must have at least one method and one form; got none")
        if any(len(set(names)) < len(names) for names in (self.methods, self.forms, self.by_log)):
            raise ParameterError("methods and forms must each be named once")
        whole_number("trials", self.trials, max=MOST_TRIALS)
        whole_number("seeds", self.seeds, max=MOST_SEEDS)
        _ = self.noise_rates

    @property
    def noise_rates(self) -> NoiseRates:
        """What labels are flipped with."""
        return NoiseRates(self.rho01, self.rho10)

    @property
    def choices(self) -> tuple[str, ...]:
        """What settings are chosen by."""
        return CHOICES[self.protocol]

    def tasks(self, *, has_features: bool) -> Iterator[Task]:
        """Return baselines, what goes by the log alone, then each method in each form."""
        yield from (Task(name, BASELINE_FORM) for name in BASELINES)
        surveyed = self.protocol != "honest"
        yield from (Task(name, BY_LOG_FORM) for name in self.by_log if surveyed or not name.endswith("-survey"))
        forms = [form for form in self.forms if has_features or form != "features"]
        yield from (Task(name, form) for name in self.methods for form in forms)


def named_methods(text: str | None) -> tuple[str, ...]:
    """Read methods from words with commas between; `None` for all.

    Examples
    --------
    >>> named_methods("mf, ome-dr")
    ('mf', 'ome-dr')
    """
    if text is None:
        return PAPER_METHODS
    names: Sequence[str] = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError("methods must name some of the catalogue; got none")
    return tuple(one_of("method", name, PAPER_METHODS) for name in names)
