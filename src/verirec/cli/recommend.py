"""verirec recommend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.groups import takes_groups
from verirec.cli.log_options import RatingsOptions
from verirec.cli.options import AsJson, ModelFolder, methods_module
from verirec.exceptions import FileFormatError, ParameterError, UnknownIdError
from verirec.formatting import short
from verirec.pages.writing import check_writable_file, rows_of_frame, table_ending, write_frame

app = typer.Typer(add_completion=False)


@app.command("recommend")
@takes_groups
def recommend_command(
    model: ModelFolder,
    ratings: RatingsOptions,
    users: Annotated[str | None, typer.Option(help="Comma-separated user ids.")] = None,
    users_file: Annotated[Path | None, typer.Option(help="Text file of user ids, one per line.")] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="All users that the model knows.")] = False,
    fold_in: Annotated[
        Path | None,
        typer.Option(help="Ratings of new users, a file like the log: lists for these users, without training again."),
    ] = None,
    user_features: Annotated[
        Path | None, typer.Option(help="Features of the users of --fold-in, as those of training.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Items per user.")] = 10,
    exclude: Annotated[
        Path | None, typer.Option(help="A log whose pairs are left out: a file, or a folder of verirec prepare.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write: .csv, .parquet or .json; by default a table is shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend items to users.

    Example: verirec recommend model --users ann,bob -k 5 --exclude ratings.csv
    """
    if out is not None and as_json:
        raise ParameterError("--json prints the lists, --out writes them: give one of the two")
    if out is not None:
        table_ending(out)
        check_writable_file(out)
    recommender = methods_module().load(model)
    named = (users is not None) + (users_file is not None) + all_users
    if named > 1 or (named == 0 and fold_in is None):
        raise ParameterError("give --users, --users-file, --all-users or --fold-in")
    if user_features is not None and fold_in is None:
        raise ParameterError("--user-features are those of the users of --fold-in, which is not given")
    rated = None if exclude is None else ratings.pairs(exclude)
    if fold_in is not None:
        new = ratings.read(fold_in, user_features=user_features)
        recommender, rated = recommender.fold_in(new), new if rated is None else rated
    ids = recommender.user_ids.ids() if not named or all_users else _asked(users, users_file, recommender)
    frame = recommender.recommend(ids, k, exclude=rated).to_frame()
    if as_json:
        typer.echo(json.dumps(rows_of_frame(frame), indent=1, ensure_ascii=False))
    elif out is None:
        Console(markup=False, highlight=False).print(_table(frame))
    else:
        write_frame(out, frame)
        typer.echo(f"The list: {out}")


def _asked(users: str | None, users_file: Path | None, recommender: Any) -> list[Any]:
    """Return the ids that were named."""
    texts = users.split(",") if users is not None else _lines(users_file)
    ids: list[Any] = [text.strip() for text in texts if text.strip()]
    if not ids:
        raise ParameterError("no user was named")
    return [_whole(text) for text in ids] if recommender.user_ids.ids([0]).dtype.kind in "iu" else ids


def _table(frame: Any) -> Table:
    table = Table()
    for column in frame.columns:
        table.add_column(column, overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    return table


def _lines(file: Path | None) -> list[str]:
    try:
        return [] if file is None else file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} is not UTF-8 text") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UnknownIdError(f"the model's users are whole numbers; got {short(text)}") from None
