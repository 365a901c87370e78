"""What to run, as data: worlds to draw, recommenders to judge, and ways to come by noise rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from verirec.checks import one_of, real_number
from verirec.exceptions import ParameterError
from verirec.simulate import LEVEL_PROBABILITIES, level_propensities
from verirec.studies.semi_synthetic.paper import HEADERS

ALIASED_PROPENSITIES: Final = (0.0625, 0.0625, 0.125, 0.25, 0.125)
"""Of levels 1 to 5 behind the printed table: floats compared and overwritten in place gave level 5 that of level 3."""
PAPER_ERROR: Final = 0.5
"""The beta of the given propensities that the printed table goes with.

The text draws beta from U(0, 1). Its mean for all pairs, or a draw for each pair, gives the printed means and spreads;
one draw a run gives far larger spreads.
"""
VARIANTS: Final = ("sound", "printed")
PREFERENCES: Final = ("movielens-100k", "kuairec")
PLAIN: Final = ("naive", "mrdr", "sdr", "tdr", "eib", "ips", "dr")
DENOISED: Final = ("ome", "ome-eib", "ome-ips", "ome-dr")


@dataclass(frozen=True)
class Setting:
    r"""A world in five levels, and the propensities that the estimators are given.

    Parameters
    ----------
    name
        In the results.
    rho01, rho10
        The noise.
    gamma, propensities
        Of levels 1 to 5.
    propensity_error
        beta of the given propensities, :math:`1/\hat p = (1-\beta)/p + \beta/p_e` with :math:`p_e` the share of all
        pairs that is observed (paper, Section 4): 0 gives the true ones.
    """

    name: str
    rho01: float = 0.2
    rho10: float = 0.1
    gamma: tuple[float, ...] = LEVEL_PROBABILITIES
    propensities: tuple[float, ...] = level_propensities()
    propensity_error: float = 0.0


@dataclass(frozen=True)
class Plan:
    """A study: settings, recommenders, estimators, and sources of noise rates (see `rates.SOURCES`).

    Parameters
    ----------
    study
        Its name.
    preferences
        Whose: "movielens-100k" (completed, and true labels drawn) or "kuairec" (people's own).
    settings, matrices
        All are run with each other.
    plain, denoised
        Estimators without noise rates, and those run once a source of them.
    sources
        Of noise rates.
    variant
        "sound": the library's estimators. "printed": the printed table's own arithmetic.

    Examples
    --------
    >>> [setting.name for setting in table1_plan("printed").settings]
    ['printed']
    """

    study: str
    settings: tuple[Setting, ...]
    sources: tuple[str, ...]
    preferences: str = "movielens-100k"
    matrices: tuple[str, ...] = HEADERS
    plain: tuple[str, ...] = PLAIN
    denoised: tuple[str, ...] = DENOISED
    variant: Literal["sound", "printed"] = "sound"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Method and source of noise rates, "none" for those without, of every estimate of a recommender.

        Examples
        --------
        >>> len(table1_plan("printed").rows), len(table1_plan("sound").rows)
        (15, 23)
        """
        return [
            *((method, "none") for method in self.plain),
            *((method, source) for method in self.denoised for source in self.sources),
        ]

    @property
    def cells(self) -> set[tuple[str, str, str, str]]:
        """Setting, method, source of noise rates and recommender of every record of a seed.

        Examples
        --------
        >>> len(table1_plan("printed").cells)
        90
        """
        return {(one.name, *row, matrix) for one in self.settings for row in self.rows for matrix in self.matrices}


def table1_plan(
    variant: str = "sound",
    *,
    preferences: str = "movielens-100k",
    propensity_error: float | None = None,
    aliased: bool = True,
) -> Plan:
    """Plan Table 1: as printed, or sound.

    Parameters
    ----------
    variant
        "sound": propensities as the paper's formula gives them, known to the estimators. "printed": the aliased ones,
        known with the paper's error.
    preferences
        "movielens-100k" or "kuairec".
    propensity_error
        beta; by default 0 for "sound" and .5 for "printed".
    aliased
        False: "printed" with the propensities of the formula, all else as it was; refused for "sound", which has them.
    """
    one_of("variant", variant, VARIANTS)
    one_of("preferences", preferences, PREFERENCES)
    printed = variant == "printed"
    error = PAPER_ERROR if printed else 0.0
    if not (aliased or printed):
        raise ParameterError(
            "aliased=False is for variant printed; got variant sound, whose propensities are those of the formula"
        )
    if propensity_error is not None:
        error = real_number("propensity_error", propensity_error, above=0, below=1, closed=True)
    if printed:
        by_level = ALIASED_PROPENSITIES if aliased else level_propensities()
        setting = Setting(variant, propensities=by_level, propensity_error=error)
        return Plan("table1", (setting,), ("true", "paper"), preferences, variant="printed")
    setting = Setting(variant, propensity_error=error)
    return Plan("table1", (setting,), ("true", "paper", "audit-200", "audit-500"), preferences)


SCALES: Final = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Of all propensities in Figure 1: with the last, the likeliest level is always logged."""


def figure1_plan(preferences: str = "movielens-100k") -> Plan:
    """Plan Figure 1: the study on ROTATE with ever more of the grid observed.

    Examples
    --------
    >>> [setting.propensities[-1] for setting in figure1_plan().settings]
    [0.05, 0.125, 0.25, 0.5, 0.75, 1.0]
    """
    one_of("preferences", preferences, PREFERENCES)
    settings = tuple(
        Setting(f"{scale:g}", propensities=tuple(scale * p for p in level_propensities())) for scale in SCALES
    )
    return Plan(
        "figure1",
        settings,
        ("true", "paper", "audit-200", "audit-500"),
        preferences,
        matrices=("ROTATE",),
        plain=("eib", "ips", "dr"),
        denoised=("ome-eib", "ome-ips", "ome-dr"),
    )


def robustness_plan(propensity_error: float = 0.0) -> Plan:
    """Plan what the paper lacks: OME-DR by source of noise rates, over seven settings.

    Examples
    --------
    >>> len(robustness_plan().settings)
    7
    """
    error = real_number("propensity_error", propensity_error, above=0, below=1, closed=True)
    written = Setting("as written", propensity_error=error)
    settings = (
        replace(written, name="as printed", propensities=ALIASED_PROPENSITIES),
        written,
        replace(written, name="rho (.1, .2)", rho01=0.1, rho10=0.2),
        replace(written, name="rho (.3, .05)", rho01=0.3, rho10=0.05),
        replace(written, name="no noise", rho01=0.0, rho10=0.0),
        replace(written, name="near-separable", gamma=(0.01, 0.255, 0.5, 0.745, 0.99)),
        replace(written, name="narrow", gamma=(0.25, 0.375, 0.5, 0.625, 0.75)),
    )
    sources = ("true", "paper", "quantiles", "tails", "audit-50", "audit-200-direct", "audit-200", "audit-500")
    return Plan("robustness", settings, sources, plain=("dr",), denoised=("ome-dr",))
