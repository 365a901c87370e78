"""Options that several verbs share, and what they are made into.

What describes one thing is a dataclass, declared once; `takes_groups` gives a verb the whole of it. The library is
imported name by name, as `vr.name`: the help of a verb waits for none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

import typer

import verirec as vr
from verirec.checks import one_of
from verirec.exceptions import ParameterError
from verirec.formatting import short

if TYPE_CHECKING:
    from verirec.data.predictions import PredictionsLike

PROPENSITIES: Final = ("logistic", "constant", "popularity", "logged")

of_noise = partial(typer.Option, rich_help_panel="True labels and noise")
of_propensities = partial(typer.Option, rich_help_panel="Propensities")
of_estimates = partial(typer.Option, rich_help_panel="Estimates")


def named_path(given: str | Path) -> Path:
    """Refuse an empty name, which would be the current folder."""
    if not str(given):
        raise typer.BadParameter("it must name a place to write to; got nothing")
    return Path(given)


OutFolder = Annotated[
    Path,
    typer.Option(parser=named_path, metavar="PATH", help="Folder for report.html and summary.json."),
]
OutFile = Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="The CSV file to write.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed for everything that is drawn at random.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that verirec train wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]

_PROCESSES: Final = 2
"""That a study takes, unless it is said."""

PREDICTIONS_HELP: Final = (
    "NAME=FILE, once per recommender: a table of user, item and score, a .npy matrix, .npz factors, or a folder that "
    "verirec train wrote."
)


@dataclass(frozen=True, kw_only=True)
class SurveyOptions:
    """True labels of random pairs."""

    survey: Annotated[
        Path | None,
        of_noise(help="True labels of random pairs, logged or not: a table with user, item and true_label."),
    ] = None

    def read(self, log: vr.FeedbackLog, as_in_log: Mapping[str, Any]) -> vr.SurveySample | None:
        """Read the survey, or take the rows that the log marks as shown at random; see `AskedLogOptions.of_truths`."""
        if self.survey is not None:
            return vr.SurveySample.from_file(self.survey, log, **as_in_log)
        return vr.SurveySample.from_unbiased(log) if log.unbiased is not None else None


@dataclass(frozen=True, kw_only=True)
class PropensityOptions:
    """The propensities, logged or estimated."""

    propensity: Annotated[
        str, of_propensities(help="The model: logistic, constant or popularity; or logged, the log's own.")
    ] = "logistic"
    propensity_column: Annotated[
        str | None, of_propensities(help="The log's column of propensities; implies --propensity logged.")
    ] = None

    def __post_init__(self) -> None:
        one_of("--propensity", self.propensity, PROPENSITIES)

    @property
    def given(self) -> bool:
        """Whether anything was said of them."""
        return self.propensity != "logistic" or self.propensity_column is not None

    def fit(self, log: vr.FeedbackLog) -> vr.Propensities:
        """Take the log's propensities, or fit the model to it."""
        if self.propensity_column is not None or self.propensity == "logged":
            return vr.LoggedPropensity(log)
        models = {
            "logistic": vr.LogisticPropensity,
            "constant": vr.ConstantPropensity,
            "popularity": vr.PopularityPropensity,
        }
        return models[self.propensity]().fit(log)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class RateOptions:
    """Noise rates: both, or none."""

    rho01: Annotated[float | None, of_noise(help="False negative rate, if you know it.")] = None
    rho10: Annotated[float | None, of_noise(help="False positive rate, if you know it.")] = None

    def __post_init__(self) -> None:
        if (self.rho01 is None) != (self.rho10 is None):
            raise ParameterError("--rho01 and --rho10 go together; give both")

    @property
    def rates(self) -> vr.NoiseRates | None:
        """The rates, if they are given."""
        return None if self.rho01 is None or self.rho10 is None else vr.NoiseRates(self.rho01, self.rho10)


@dataclass(frozen=True, kw_only=True)
class NoiseOptions(RateOptions):
    """What is known of the noise: its rates, true labels, or second answers."""

    choice: ClassVar = "--rho01 and --rho10, or --audit, or --reask: one of the three"
    audit: Annotated[
        Path | None, of_noise(help="True labels of logged pairs: a table with user, item and true_label.")
    ] = None
    reask: Annotated[
        Path | None,
        of_noise(help="Second answers of the same people to logged pairs: a table with user, item and answer."),
    ] = None

    def __post_init__(self) -> None:
        if (self.rho01 is not None or self.rho10 is not None) + self.others > 1:
            raise ParameterError(f"give {self.choice}")
        super().__post_init__()

    @property
    def others(self) -> int:
        """How many sources of noise rates other than the rates themselves are given."""
        return (self.audit is not None) + (self.reask is not None)

    def read_audit(self, log: vr.FeedbackLog, as_in_log: Mapping[str, Any]) -> vr.AuditSample | None:
        """Read the audit, if there is one; see `AskedLogOptions.of_truths`."""
        return None if self.audit is None else vr.AuditSample.from_file(self.audit, log, **as_in_log)

    def known_rates(
        self, log: vr.FeedbackLog, as_in_log: Mapping[str, Any], propensities: vr.Propensities
    ) -> vr.NoiseRates | None:
        """Take the rates that are given, or find them out by second answers, if there are any."""
        from verirec.nuisance.noise_rates import rates_from_reask

        if self.reask is None:
            return self.rates
        named = {role: as_in_log.get(role) for role in ("user", "item", "log_columns")}
        answers = vr.ReaskSample.from_file(self.reask, log, answer=as_in_log.get("true_label"), **named)
        return rates_from_reask(log, answers, propensities)


@dataclass(frozen=True, kw_only=True)
class ErrorOptions:
    """Who errs."""

    rates_by: Annotated[
        str | None,
        of_noise(
            metavar="score|propensity|COLUMN",
            help="Who errs, from --audit: along a score, by propensity, or by a column of --user-features or "
            "--item-features; audited-dr is the more precise for it.",
        ),
    ] = None

    def found(
        self, log: vr.FeedbackLog, audit: vr.AuditSample | None, propensities: vr.Propensities
    ) -> vr.GroupErrors | vr.ErrorCurve | None:
        """Find out who errs, if it was asked for."""
        if self.rates_by is None:
            return None
        if audit is None:
            raise ParameterError("--rates-by needs the true labels of an audit: give --audit FILE")
        by_propensity = propensities if self.rates_by == "propensity" else None
        return vr.who_errs(log, audit=audit, by=self.rates_by, propensities=by_propensity)


@dataclass(frozen=True, kw_only=True)
class _IntervalOptions:
    """What an estimate and an assessment have in common."""

    confidence: Annotated[float, of_estimates(help="Confidence level of the intervals.")] = 0.95
    clip: Annotated[
        float | None,
        of_estimates(
            help="Keep predictions at least this far from 0 and 1, or from the ends of the scale of --levels."
        ),
    ] = None
    sample: Annotated[
        int | None, of_estimates(help="Visit this many random unobserved pairs instead of all of them.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(_IntervalOptions):
    """How an estimate is made, by the names that `verirec.estimate` has."""

    loss: Annotated[
        str,
        of_estimates(
            help="Loss: log, squared, absolute, rmse or mae. With --levels, log and rps judge distributions over the "
            "levels (a .npy file of users x items x levels), and the others predicted stars."
        ),
    ] = "log"


@dataclass(frozen=True, kw_only=True)
class AssessOptions(_IntervalOptions):
    """How an assessment judges, by the names that `verirec.assess` has."""

    loss: Annotated[
        str | None,
        of_estimates(
            help="Loss: log (by default), squared or absolute. With --levels, rmse (by default), mae, squared or "
            "absolute of predicted stars, log or rps of distributions (a .npy file of users x items x levels)."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EngineOptions(AbstractContextManager["EngineOptions"]):
    """Where the work runs, for as long as the verb does."""

    engine: Annotated[
        str,
        typer.Option(
            rich_help_panel="Where the work runs",
            help="serial, processes, ray, or ray:HOST:PORT; results are the same.",
        ),
    ] = "serial"
    workers: Annotated[
        int | None,
        typer.Option(rich_help_panel="Where the work runs", help="How many; by default one a core, or all of Ray's."),
    ] = None

    @cached_property
    def _entered(self) -> ExitStack:
        return ExitStack()

    def __enter__(self) -> Self:
        from verirec.engine import running_on

        self._entered.enter_context(running_on(self.engine, self.workers))
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()


@dataclass(frozen=True, kw_only=True)
class StudyEngineOptions(EngineOptions):
    """Where the runs of a study work."""

    engine: Annotated[
        str,
        typer.Option(
            rich_help_panel="Where the work runs",
            help="processes, serial, ray, or ray:HOST:PORT, whose machines share the folder of results; they are the "
            "same.",
        ),
    ] = "processes"
    workers: Annotated[
        int | None,
        typer.Option(
            rich_help_panel="Where the work runs",
            help=f"How many, at most 256; by default {_PROCESSES} processes, or all of Ray's.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.engine == "processes" and self.workers is None:
            object.__setattr__(self, "workers", _PROCESSES)


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How files of scores are read."""

    score_column: Annotated[str | None, of_estimates(help="The column of scores in --predictions files.")] = None
    missing_predictions: Annotated[
        str,
        of_estimates(
            metavar="error|mean",
            help="Users and items of the log that a --predictions file lacks: factors must be of all, and a table is "
            "judged on the pairs that it has; or mean, to score them as its mean user or item.",
        ),
    ] = "error"

    def __post_init__(self) -> None:
        one_of("--missing-predictions", self.missing_predictions, ("error", "mean"))

    def read(self, path: Path, log: vr.FeedbackLog, columns: Mapping[str, str | None]) -> PredictionsLike:
        """Read a recommender from a file, or from the folder of a trained model; `columns` are the log's."""
        if path.is_dir():
            return methods_module().load(path).predictions_for(log)
        return vr.read_predictions(
            path,
            log,
            score=self.score_column,
            missing=self.missing_predictions,  # type: ignore[arg-type]
            log_columns=columns,
        )


@dataclass(frozen=True, kw_only=True)
class RankingOptions:
    """Scores that are not probabilities, and how they rank."""

    k: Annotated[int, of_estimates("-k", "--k", min=1, help="Depth of the ranking metrics.")] = 5
    gamma: Annotated[
        float,
        of_estimates(help="Of clicks alone: items are shown in proportion to this power of their clicks; -1 or more."),
    ] = 0.0
    ranking_only: Annotated[
        bool, of_estimates("--ranking-only", help="No losses: scores may be any numbers, of which the order counts.")
    ] = False
    calibrate: Annotated[
        str | None,
        of_estimates(
            help="platt or isotonic: make probabilities of scores that are none: by the survey, then of all "
            "recommenders; or else by a fifth of the log's rows, and judge their losses on the others."
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.calibrate is not None:
            from verirec.estimation.calibration import METHODS

            one_of("--calibrate", self.calibrate, METHODS)
            if self.ranking_only:
                raise ParameterError("--calibrate is for losses; --ranking-only has none: give one of the two")


def methods_module() -> Any:
    """Import what needs torch, or say what to install."""
    return vr.methods


def named_files(given: list[str] | None, option: str = "--predictions", form: str = "NAME=FILE") -> dict[str, Path]:
    """Take NAME=FILE apart."""
    files: dict[str, Path] = {}
    for one in given or []:
        name, equals, file = one.encode("utf-8", "replace").decode().partition("=")
        if not equals or not name or not file:
            raise ParameterError(f"{option} must be {form}; got {short(one)}")
        if name in files:
            raise ParameterError(f"{option} names {name!r} twice")
        files[name] = Path(file)
    return files
