"""Messages of the library, as the command line says them."""

from __future__ import annotations

import pytest

from verirec.cli.messages import in_options

OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in ("user", "positive_from", "duplicates", "clip", "delimiter", "all_users", "interval", "timestamp")
} | {
    "answer_columns": "--answer-columns",
    "score_column": "--score-column",
    "propensity": "--propensity",
    "propensity_column": "--propensity-column",
}

MESSAGES = [
    ("name it: user=...; the columns are: a, b", "name it: --user ...; the columns are: a, b"),
    ("needs a rule such as positive_from=4; it goes", "needs a rule such as --positive-from 4; it goes"),
    ("positive_from=3.5 makes all labels 1", "--positive-from 3.5 makes all labels 1"),
    ("counts: duplicates='first', 'last' or", "counts: --duplicates first, 'last' or"),
    ("; clip=1e-6 would keep them inside", "; --clip 1e-6 would keep them inside"),
    ("separated otherwise, give delimiter=...", "separated otherwise, give --delimiter ..."),
    ("the log with all_users=... and all_items=...", "the log with --all-users ... and all_items"),
    ("take interval='delta'", "take --interval delta"),
    (
        "duplicates='latest' needs timestamps; name their column: timestamp=...",
        "--duplicates latest needs timestamps; name their column: --timestamp ...",
    ),
    ("cannot tell the score; name it: score=...", "cannot tell the score; name it: --score-column ..."),
    ("name one with propensity=...", "name one with --propensity-column ..."),
    ("name it: true_label=...; the columns", "rename it: true_label; the columns"),
    (
        "5 levels: log.binary(positive_from=...), or positive_from=... in place of it, makes it binary",
        "5 levels: --positive-from ... in place of it, makes it binary",
    ),
    ("fit it with propensities=...", "fit it with propensities"),
    (
        "a.csv: unclear; name them: user=..., item=..., true_label=...; the columns",
        "a.csv: unclear; name them: --answer-columns USER,ITEM,ANSWER; the columns",
    ),
    ("n_users=5 ids", "n_users=5 ids"),
    ("--predictions must be NAME=FILE; got 'user=x'", "--predictions must be NAME=FILE; got 'user=x'"),
    ("no file 'a/user=1/clip=2.csv'", "no file 'a/user=1/clip=2.csv'"),
    ("an end: clip=0.5.", "an end: --clip 0.5."),
    ("", ""),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES, ids=[message[:30] for message, _ in MESSAGES])
def test_hints_are_those_of_the_command_line(message, expected):
    assert in_options(message, OPTIONS) == expected
