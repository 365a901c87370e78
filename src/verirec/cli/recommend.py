"""verirec recommend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.groups import takes_groups
from verirec.cli.options import ModelFolder, RatingsOptions, methods_module
from verirec.exceptions import FileFormatError, ParameterError, UnknownIdError
from verirec.pages.writing import write_table

app = typer.Typer(add_completion=False)


@app.command("recommend")
@takes_groups
def recommend_command(
    model: ModelFolder,
    ratings: RatingsOptions,
    users: Annotated[str | None, typer.Option(help="Comma-separated user ids.")] = None,
    users_file: Annotated[Path | None, typer.Option(help="Text file of user ids, one per line.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Items per user.")] = 10,
    exclude: Annotated[Path | None, typer.Option(help="A log whose pairs are left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; by default a table is shown.")] = None,
) -> None:
    """Recommend items to users.

    Example: verirec recommend model --users ann,bob -k 5 --exclude ratings.csv
    """
    recommender = methods_module().load(model)
    if (users is None) == (users_file is None):
        raise ParameterError("give --users or --users-file: one of the two")
    texts = users.split(",") if users is not None else _lines(users_file)
    ids: list[Any] = [text.strip() for text in texts if text.strip()]
    if not ids:
        raise ParameterError("no user was named")
    if recommender.user_ids.ids([0]).dtype.kind in "iu":
        ids = [_whole(text) for text in ids]
    rated = None if exclude is None else ratings.read(exclude, duplicates="first")
    frame = recommender.recommend(ids, k, exclude=rated).to_frame()
    if out is None:
        Console(markup=False, highlight=False).print(_table(frame))
    else:
        write_table(out, frame)
        typer.echo(f"The list: {out}")


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
        raise UnknownIdError(f"the model's users are whole numbers; got {text!r}") from None
