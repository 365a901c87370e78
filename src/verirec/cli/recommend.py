"""verirec recommend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verirec.cli.options import Delimiter, Item, ModelFolder, PositiveFrom, Rating, User, methods_module, spelt
from verirec.data import read_log
from verirec.exceptions import FileFormatError, ParameterError, UnknownIdError

app = typer.Typer(add_completion=False)


@app.command("recommend")
def recommend_command(
    model: ModelFolder,
    users: Annotated[str | None, typer.Option(help="Ids, parted by commas.")] = None,
    users_file: Annotated[Path | None, typer.Option(help="Text file of ids, one a line.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Items a user.")] = 10,
    exclude: Annotated[Path | None, typer.Option(help="A log whose pairs are left out.")] = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    positive_from: PositiveFrom = None,
    delimiter: Delimiter = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; by default a table is shown.")] = None,
) -> None:
    """Return users their best items.

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
    rated = None
    if exclude is not None:
        columns = {"user": user, "item": item, "rating": rating}
        rated = read_log(
            exclude, **columns, positive_from=positive_from, delimiter=spelt(delimiter), duplicates="first"
        )
    frame = recommender.recommend(ids, k, exclude=rated).to_frame()
    if out is not None:
        from verirec.pages.writing import write_table

        write_table(out, frame)
        typer.echo(f"The list: {out}")
        return
    table = Table()
    for column in frame.columns:
        table.add_column(column, overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    Console(markup=False, highlight=False).print(table)


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
