"""Yahoo! R3 (Marlin, Zemel 2009; "Music" in the paper): self-selected and random ratings of 1,000 songs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from verirec.data.datasets.dataset import Dataset, Published, expect_rows, numbered_log
from verirec.data.feedback_log import FeedbackLog
from verirec.data.text_files import read_delimited

SIZE: Final = Published(15_400, 1_000, 365_704)
ROWS: Final = (311_704, 54_000)
FILES: Final = ("ydata-ymusic-rating-study-v1_0-train.txt", "ydata-ymusic-rating-study-v1_0-test.txt")


def read(folder: Path, positive_from: float) -> Dataset:
    """Read the two files: tabs between user, song and rating, ids from 1."""
    train, test = (_log(folder / file, rows, positive_from) for file, rows in zip(FILES, ROWS, strict=True))
    return Dataset("yahoo-r3", train=train, test=test)


def _log(file: Path, rows: int, positive_from: float) -> FeedbackLog:
    table = read_delimited(file, "\t", ("user", "item", "rating"))
    expect_rows(file.name, table.num_rows, rows)
    return numbered_log(table, SIZE, positive_from)
