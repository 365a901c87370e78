"""Options that several verbs share, and what they are made into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from verirec.data import FeedbackLog, read_log, read_predictions
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.propensities import (
    ConstantPropensity,
    LoggedPropensity,
    LogisticPropensity,
    PopularityPropensity,
    Propensities,
)

PROPENSITIES: Final = ("logistic", "constant", "popularity", "logged")


def named_path(given: str | Path) -> Path:
    """Refuse an empty name, which would be the current folder."""
    if not str(given):
        raise typer.BadParameter("it must name a place to write to; got nothing")
    return Path(given)


LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="The log: .csv, .tsv, .parquet or .inter.")]
User = Annotated[str | None, typer.Option(help="The log's column of users.")]
Item = Annotated[str | None, typer.Option(help="The log's column of items.")]
Rating = Annotated[str | None, typer.Option(help="The log's column of ratings or labels.")]
PositiveFrom = Annotated[float | None, typer.Option(help="Ratings of at least this are positive.")]
Timestamp = Annotated[str | None, typer.Option(help="The log's column of times.")]
Duplicates = Annotated[str, typer.Option(help="Of a pair's rows: error, first, last, latest or highest.")]
Delimiter = Annotated[
    str | None,
    typer.Option(help="One character that parts the log's fields, where its ending says otherwise; \\\\t is a tab."),
]
AllUsers = Annotated[
    Path | None, typer.Option(help="Text file of all user ids, one a line, where they are more than the log shows.")
]
AllItems = Annotated[
    Path | None, typer.Option(help="Text file of all item ids, one a line, where they are more than the log shows.")
]
Propensity = Annotated[str, typer.Option(help=f"One of {', '.join(PROPENSITIES)}.")]
PropensityColumn = Annotated[
    str | None, typer.Option(help="The log's column of propensities; means --propensity logged.")
]
ScoreColumn = Annotated[str | None, typer.Option(help="The predictions' column of scores.")]
Rho01 = Annotated[float | None, typer.Option(help="False negative rate, if you know it.")]
Rho10 = Annotated[float | None, typer.Option(help="False positive rate, if you know it.")]
AuditFile = Annotated[Path | None, typer.Option(help="Audited pairs with their true labels: user, item, true_label.")]
Loss = Annotated[str, typer.Option(help="log, squared or absolute.")]
Confidence = Annotated[float, typer.Option(help="Of the intervals.")]
Clip = Annotated[float | None, typer.Option(help="Keep predictions this far from 0 and 1.")]
Sample = Annotated[int | None, typer.Option(help="Visit so many unobserved pairs in place of all.")]
OutFolder = Annotated[
    Path,
    typer.Option(parser=named_path, metavar="PATH", help="Folder for report.html and summary.json."),
]
OutFile = Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="The CSV file to write.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn at random.")]

ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that verirec train wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]

PREDICTIONS_HELP: Final = (
    "NAME=FILE, once a recommender: a table with user, item and score; .npy, a matrix; .npz, factors; or the folder "
    "that verirec train wrote."
)


def methods_module() -> Any:
    """Import what needs torch, or say what to install."""
    import verirec

    return verirec.methods


def read_recommender(
    path: Path, log: FeedbackLog, score: str | None, columns: Mapping[str, str | None]
) -> PredictionsLike:
    """Read predictions from a file, or from the folder of a trained model."""
    if path.is_dir():
        return methods_module().load(path).predictions_for(log)
    return read_predictions(path, log, score=score, log_columns=columns)


def load_log(
    path: Path,
    *,
    user: str | None,
    item: str | None,
    rating: str | None,
    positive_from: float | None,
    timestamp: str | None,
    duplicates: str,
    delimiter: str | None,
    all_users: Path | None,
    all_items: Path | None,
    propensity: str | None = None,
) -> FeedbackLog:
    """Read the log by the options that every verb on a log has; a delimiter may be spelt as shells let one write it."""
    return read_log(
        path,
        user=user,
        item=item,
        rating=rating,
        positive_from=positive_from,
        timestamp=timestamp,
        duplicates=duplicates,  # type: ignore[arg-type]
        delimiter=spelt(delimiter),
        all_users=all_users,
        all_items=all_items,
        propensity=propensity,
    )


def spelt(delimiter: str | None) -> str | None:
    """Take a tab as shells let one write it."""
    return "\t" if delimiter == "\\t" else delimiter


def named_files(given: list[str]) -> dict[str, Path]:
    """Take NAME=FILE apart."""
    files: dict[str, Path] = {}
    for one in given:
        name, parted, file = one.encode("utf-8", "replace").decode().partition("=")
        if not parted or not name or not file:
            raise ParameterError(f"--predictions must be NAME=FILE; got {one!r}")
        if name in files:
            raise ParameterError(f"--predictions names {name!r} twice")
        files[name] = Path(file)
    return files


def fitted_propensities(name: str, log: FeedbackLog) -> Propensities:
    """Fit the propensities that an option names."""
    if name == "logged":
        return LoggedPropensity(log)
    models = {"logistic": LogisticPropensity, "constant": ConstantPropensity, "popularity": PopularityPropensity}
    return models[name]().fit(log)  # type: ignore[no-any-return]


def given_rates(rho01: float | None, rho10: float | None) -> NoiseRates | None:
    """Take both rates, or none."""
    if (rho01 is None) != (rho10 is None):
        raise ParameterError("--rho01 and --rho10 go together; give both")
    return None if rho01 is None or rho10 is None else NoiseRates(rho01, rho10)


def read_audit(path: Path | None, log: FeedbackLog, columns: Mapping[str, str | None]) -> AuditSample | None:
    """Read an audit file, if there is one; `columns` are the log's, which it may have too."""
    return None if path is None else AuditSample.from_file(path, log, log_columns=columns)
