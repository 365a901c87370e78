"""verirec evaluate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import verirec as vr
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import RatingsOptions
from verirec.cli.options import AsJson, ModelFolder, methods_module
from verirec.exceptions import UnknownIdError, UnknownIdWarning, warn_caller

app = typer.Typer(add_completion=False)


@app.command("evaluate")
@takes_groups
def evaluate_command(
    model: ModelFolder,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Test ratings: clean, and not used in training.")],
    ratings: RatingsOptions,
    k: Annotated[int, typer.Option("-k", min=1, help="Depth of the ranking metrics.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Evaluate a trained recommender on test ratings, without any correction.

    Example: verirec evaluate model test.csv --positive-from 4 -k 5
    """
    recommender = methods_module().load(model)
    found = vr.metrics.evaluate(recommender.predictions, _on_grid(ratings.read(test), recommender), k=k)
    if as_json:
        typer.echo(json.dumps({name: None if math.isnan(value) else value for name, value in found.items()}, indent=2))
        return
    table = Table()
    table.add_column("Metric")
    table.add_column("Value", justify="right")
    for name, value in found.items():
        table.add_row(name, f"{value:.4f}")
    Console(markup=False, highlight=False).print(table)


def _on_grid(log: vr.FeedbackLog, recommender: Any) -> vr.FeedbackLog:
    """Bring a log onto a model's grid; rows of users or items that it does not know are left out, with a word."""
    users = recommender.user_ids.find(log.user_ids.arrow())[log.users]
    items = recommender.item_ids.find(log.item_ids.arrow())[log.items]
    known = (users >= 0) & (items >= 0)
    if not known.any():
        raise UnknownIdError(f"the model knows none of the {len(log):,} test pairs' users and items")
    if not known.all():
        warn_caller(
            f"{int((~known).sum()):,} of {len(log):,} test rows are of users or items that the model does not know: "
            "left out",
            UnknownIdWarning,
        )
    n_users, n_items = recommender.shape
    shape = {"n_users": n_users, "n_items": n_items, "levels": log.levels}
    shape |= {"user_ids": recommender.user_ids, "item_ids": recommender.item_ids}
    return vr.FeedbackLog.from_arrays(users[known], items[known], log.label_values[known], **shape)
