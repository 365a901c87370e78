"""Yahoo! R3 (Marlin, Zemel 2009; "Music" in the paper): self-selected and random ratings of 1,000 songs."""

from __future__ import annotations

from pathlib import Path

from verirec.data.datasets.dataset import Dataset, expect_rows, numbered_log
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import read_delimited

FILES = ("ydata-ymusic-rating-study-v1_0-train.txt", "ydata-ymusic-rating-study-v1_0-test.txt")


def read(folder: Path, positive_from: float) -> Dataset:
    """Read the two files: tabs between user, song and rating, ids from 1."""
    train, test = (
        _log(folder / file, rows, positive_from) for file, rows in zip(FILES, (311_704, 54_000), strict=True)
    )
    return Dataset("yahoo-r3", train=train, test=test)


def _log(file: Path, rows: int, positive_from: float) -> FeedbackLog:
    table = read_delimited(file, "\t", ("user", "item", "rating"))
    expect_rows(file.name, table.num_rows, rows)
    return numbered_log(table, 15_400, 1_000, positive_from)
