"""Runs every snippet of the README and of docs/: Python blocks as they stand, `verirec` commands in shell blocks."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import SkipTest
from unittest.mock import patch

# A shell lets background jobs ignore Ctrl-C, and so would what the tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Workers share the cores, so each has one thread for linear algebra: two would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import numpy as np
import pandas as pd
import pytest
from sybil import Example, Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import verirec as vr
from verirec.cli.main import main


class VerirecCommands(CodeBlockParser):
    """A shell block holds `verirec` commands, one a line, each of which must succeed."""

    def evaluate(self, example: Example) -> None:
        for line in example.parsed.splitlines():
            if command := shlex.split(line, comments=True):
                assert command[0] == "verirec", f"a shell block runs verirec and nothing else, not {line!r}"
                if "DATA" in command:
                    raise SkipTest("DATA is a folder of real data, on which it takes minutes: tests/cli has small ones")
                run(command)


def run(command: list[str]) -> None:
    """Run it in this process: tests/cli shows that this is what users get."""
    shown = warnings.catch_warnings(action="default")
    with patch.object(sys, "argv", command), shown, pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, command


PEOPLE = np.array(["ann", "bob", *(f"user{user}" for user in range(2, 800))])


@cache
def world(n_users: int) -> vr.simulate.World:
    """Return the small world that the files of the pages come from."""
    return vr.simulate.world(n_users, 200, observed=0.3, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)


def write_files(audit: str | None = None, n_users: int = 150) -> None:
    """Write the files that the pages speak of: ratings, two recommenders' scores, and an audit if it is named."""
    log, rng = world(n_users).log, np.random.default_rng(0)
    stars = rng.integers(1, 4, len(log)) + 2 * log.labels.astype(int)
    ratings = pd.DataFrame({"user": PEOPLE[log.users], "item": log.items, "rating": stars})
    parts = np.array_split(rng.permutation(len(ratings)), 3)
    for name, rows in zip(("ratings", "heldout", "test"), parts, strict=True):
        ratings.iloc[rows].to_csv(f"{name}.csv", index=False)
    users, items = np.divmod(np.arange(n_users * 200), 200)
    scores = pd.DataFrame(
        {"user": PEOPLE[users], "item": items, "score": np.ravel(0.1 + 0.8 * world(n_users).preferences)}
    )
    scores.to_csv("scores.csv", index=False)
    scores.to_parquet("a.parquet", index=False)
    for file in ("theirs.npz", "b.npz"):
        np.savez(file, user_factors=rng.normal(size=(n_users, 4)), item_factors=rng.normal(size=(200, 4)))
    if audit is not None:
        ratings.iloc[np.concatenate([rows[:200] for rows in parts])][["user", "item"]].to_csv(audit, index=False)
        fill_in(audit, n_users)


def fill_in(file: str, n_users: int) -> None:
    """Fill in an audit's list with what people of that world truly prefer."""
    audit = pd.read_csv(file)
    users = [int(np.flatnonzero(user == PEOPLE)[0]) for user in audit["user"]]
    audit["true_label"] = world(n_users).at(users, audit["item"].to_numpy()).true_labels
    audit.to_csv(file, index=False)


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    namespace |= {"before": Path.cwd(), "folder": tempfile.TemporaryDirectory(), "ran": set()}
    namespace |= {"write_files": write_files, "fill_in": fill_in}
    os.chdir(namespace["folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["before"])
    namespace["folder"].cleanup()
    namespace.clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run what another worker ran of a page's earlier blocks, which this one may build on."""
    if isinstance(item, SybilItem):
        ran = item.example.namespace["ran"]
        for example in item.example.document:
            if example.start < item.example.start and example.start not in ran:
                with suppress(SkipTest):
                    example.evaluate()
            ran.add(example.start)
            if example.start == item.example.start:
                break


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), VerirecCommands("sh"), SkipParser()],
    patterns=["README.md", "docs/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
).pytest()
