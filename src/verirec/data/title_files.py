"""Titles of items, for people who are asked about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from verirec.data.feedback_log import FeedbackLog
from verirec.data.ids import find_spelt
from verirec.data.roles import Roles
from verirec.exceptions import FileFormatError


@dataclass(frozen=True)
class TitleRoles(Roles):
    """Columns of a table of titles."""

    usual_names = {  # noqa: RUF012
        "item": Roles.usual_names["item"],
        "rating": frozenset(["title", "titles", "name", "itemname", "itemtitle", "movietitle", "description"]),
    }
    rating_word = "title"
    takes_delimiter = False


def read_titles(file: str | Path, log: FeedbackLog) -> list[str]:
    """Read the titles of a log's items from a CSV file with columns item and title; items without one have "".

    Examples
    --------
    >>> import tempfile
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "titles.csv").write_text("item,title\\n1,Alien\\n")
    ...     read_titles(Path(folder, "titles.csv"), log)
    ['', 'Alien']
    """
    path = Path(file)
    try:
        with pyarrow.csv.open_csv(path) as opened:
            names = opened.schema.names
        text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        table = pyarrow.csv.read_csv(path, convert_options=text)
    except (OSError, pa.ArrowInvalid) as error:
        raise FileFormatError(f"{path.name} is no readable file of titles: {' '.join(str(error).split())}") from None
    settled = TitleRoles().settle(table.column_names)
    ids = table[str(settled.item)].combine_chunks()
    whole = pa.types.is_integer(log.item_ids.arrow().type)
    found = find_spelt(log.item_ids, ids, path.name) if whole else log.item_ids.find(ids, name=path.name)
    titles = [""] * log.n_items
    for position, title in zip(found.tolist(), table[str(settled.rating)].to_pylist(), strict=True):
        if position >= 0:
            titles[position] = title or ""
    return titles
