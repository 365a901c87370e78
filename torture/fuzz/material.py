"""What the texts of calls may name: small logs of all shapes, what goes with them, and files."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
import torch

import verirec as vr
from verirec.cli import main as command_line

IDS: dict[str, Callable[[int], Any]] = {
    "none": lambda size: None,
    "numbers": lambda size: [10**12 + 7 * one for one in range(size)],
    "negative": lambda size: [-one for one in range(size)],
    "names": lambda size: [f"u{one}" for one in range(size)],
    "spelt": lambda size: [f"{one:03}" for one in range(size)],
    "unicode": lambda size: [f"é{one}\u202e<script>" for one in range(size)],
    "formulas": lambda size: [f"=1+{one}" for one in range(size)],
    "long": lambda size: ["x" * 3000 + str(one) for one in range(size)],
    "quoted": lambda size: [f'a"b,{one}\n' for one in range(size)],
}


def log_of(n_users: int = 5, n_items: int = 6, rows: int = 15, seed: int = 0, *parts: str, ids: str = "none") -> Any:
    """Make a log; `parts` are what it has besides, and what is odd about it."""
    random = np.random.default_rng(seed)
    rows = min(rows, n_users * n_items)
    if "block" in parts:
        rows = n_users * n_items
    cells = random.permutation(n_users * n_items)[:rows]
    labels = random.integers(0, 2, rows)
    options: dict[str, Any] = {}
    if "ratings" in parts:
        labels, options = (
            np.where(labels, random.integers(3, 6, rows), random.integers(1, 3, rows)),
            {"positive_from": 3},
        )
    if "one class" in parts:
        labels[:] = seed % 2
    if "skewed" in parts:
        cells = np.unique(np.where(random.random(rows) < 0.8, cells % n_items, cells))
        labels = labels[: len(cells)]
    more = {
        "propensities": random.uniform(0.05, 1, len(cells)),
        "weights": random.choice([0.0, 0.5, 1.0, 3.0], len(cells)) + 1e-3,
        "timestamps": random.integers(0, 9, len(cells)),
        "unbiased": random.random(len(cells)) < 0.3,
        "user_features": random.normal(size=(n_users, 2)),
        "item_features": random.integers(0, 2, (n_items, 2)),
    }
    given = options | {name: value for name, value in more.items() if name in parts}
    named = {"user_ids": IDS[ids](n_users), "item_ids": IDS[ids](n_items)}
    positions = cells // n_items, cells % n_items
    return vr.FeedbackLog.from_arrays(*positions, labels, n_users=n_users, n_items=n_items, **named, **given)


def scores_of(log: Any, seed: int = 0, form: str = "dense") -> Any:
    """Make predictions for a log's grid, in one of the forms that are taken."""
    random = np.random.default_rng(seed)
    n_users, n_items = log.shape
    values = random.uniform(0.01, 0.99, log.shape)
    factors = random.normal(size=(n_users, 2)), random.normal(size=(n_items, 2))
    return {
        "dense": lambda: values,
        "single": lambda: values.astype(np.float32),
        "half": lambda: np.full(log.shape, 0.5),
        "ends": lambda: values.round(),
        "near ends": lambda: np.clip(values.round(), 1e-12, 1 - 1e-12),
        "scores": lambda: 10 * values - 3,
        "ties": lambda: values.round(1).clip(0.1, 0.9),
        "factors": lambda: vr.Factors(*factors),
        "identity": lambda: vr.Factors(*factors, link="identity"),
        "tuple": lambda: factors,
        "large factors": lambda: (1e3 * factors[0], factors[1]),
        "function": lambda: lambda users, items: values[users, items],
        "rows": lambda: (log.users, log.items, values[log.users, log.items]),
        "all pairs": lambda: (*(side.ravel() for side in np.indices(log.shape)), values.ravel()),
        "columns": lambda: np.asfortranarray(values),
    }[form]()


def survey_of(log: Any, pairs: int = 12, seed: int = 0, *parts: str) -> Any:
    """Make a survey of random pairs of a log's grid."""
    random = np.random.default_rng(seed)
    n_users, n_items = log.shape
    cells = random.permutation(n_users * n_items)[:pairs]
    more = {
        "probabilities": random.uniform(0.1, 1, len(cells)),
        "clusters": cells // n_items,
        "noisy": True,
        "best": True,
        "frame": np.arange(n_users),
    }
    labels = random.integers(0, 2, len(cells)) if "one class" not in parts else np.ones(len(cells), int)
    return vr.SurveySample(
        cells // n_items, cells % n_items, labels, **{name: more[name] for name in parts if name in more}
    )


def asked_of(kind: Any, log: Any, pairs: int = 10, seed: int = 0, *, wrong: float = 0.2) -> Any:
    """Make an audit or a re-ask of some of a log's rows; so many answers differ."""
    random = np.random.default_rng(seed)
    rows = random.permutation(len(log))[:pairs]
    labels = np.where(random.random(len(rows)) < wrong, 1 - log.labels[rows], log.labels[rows])
    return kind(log.users[rows], log.items[rows], labels)


def stars_of(n_users: int, n_items: int, rows: int, seed: int, levels: tuple[float, ...]) -> Any:
    """Make a log that keeps its levels."""
    random = np.random.default_rng(seed)
    cells = random.permutation(n_users * n_items)[:rows]
    values = random.choice(levels, len(cells))
    return vr.FeedbackLog.from_arrays(
        cells // n_items, cells % n_items, values, n_users=n_users, n_items=n_items, levels=list(levels)
    )


def band_of(log: Any, wrong: float = 0.2) -> Any:
    """Make a matrix of noise that errs by one level."""
    size = len(log.levels)
    near = np.abs(np.subtract.outer(range(size), range(size))) == 1
    return np.where(near, wrong * near / near.sum(axis=1, keepdims=True), (1 - wrong) * np.eye(size))


def levels_asked(kind: Any, log: Any, pairs: int = 10, seed: int = 0) -> Any:
    """Make an audit of some rows of a log of levels; a fifth of the answers is any level."""
    random = np.random.default_rng(seed)
    rows = random.permutation(len(log))[:pairs]
    drawn = random.integers(0, len(log.levels), len(rows))
    levels = np.where(random.random(len(rows)) < 0.2, drawn, log.labels[rows])
    return kind(log.users[rows], log.items[rows], np.asarray(log.levels)[levels], levels=log.levels)


def levels_surveyed(log: Any, pairs: int = 12, seed: int = 0) -> Any:
    """Make a survey of random pairs, answered by levels."""
    random = np.random.default_rng(seed)
    cells = random.permutation(np.prod(log.shape))[:pairs]
    levels = random.choice(log.levels, len(cells))
    return vr.SurveySample(cells // log.shape[1], cells % log.shape[1], levels, levels=log.levels)


def stars_predicted(log: Any, seed: int = 0, form: str = "stars") -> Any:
    """Make predicted stars, or distributions over levels."""
    random, values = np.random.default_rng(seed), np.asarray(log.levels)
    stars = random.uniform(values.min(), values.max(), log.shape)
    return {
        "stars": lambda: stars,
        "one": lambda: np.full(log.shape, values.mean()),
        "outside": lambda: 3 * stars,
        "factors": lambda: vr.Factors(stars[:, :1], np.ones((log.shape[1], 1)), link="identity"),
        "distribution": lambda: random.dirichlet(np.ones(len(values)), log.shape),
        "rows": lambda: (log.users, log.items, stars[log.users, log.items]),
    }[form]()


@cache
def trained(method: str = "mf", seed: int = 0, model: str = "mf") -> Any:
    """Train a small recommender, once."""
    log = log_of(6, 7, 25, seed, "user_features", ids="names")
    rates = vr.NoiseRates(0.1, 0.1) if method.startswith("ome") else None
    made = vr.methods.catalogue[method](dim=2, epochs=2, model=model, validation=0, random_state=seed)
    return made.fit(log, noise_rates=rates).recommender_


def both(maker: Any, method: str = "fit") -> Callable[..., Any]:
    """Return what makes an object of some of its arguments, and calls a method of it with the others."""
    import inspect

    own = set(inspect.signature(maker).parameters)

    def call(**given: Any) -> Any:
        made = maker(**{name: value for name, value in given.items() if name in own})
        return getattr(made, method)(**{name: value for name, value in given.items() if name not in own})

    return call


class Scorer:
    """A classifier of pairs, as scikit-learn's are."""

    def predict_proba(self, features: Any) -> Any:
        """Predict the same for all."""
        return np.full((len(features), 2), 0.5)


class Broken:
    """An object that lets nobody look at it."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __len__(self) -> int:
        raise TypeError("no length")


class Nested(list[Any]):
    """A list that is in itself."""

    def __init__(self) -> None:
        super().__init__()
        self.append(self)


def spoilt(values: Any, value: Any) -> Any:
    """Put a value into an array."""
    spoilt = np.array(values, dtype=float)
    spoilt.reshape(-1)[:1] = value
    return spoilt


def frozen(values: Any) -> Any:
    """Make an array that cannot be written."""
    found = np.array(values)
    found.setflags(write=False)
    return found


def strided(values: Any) -> Any:
    """Make an array with gaps."""
    found = np.asarray(values)
    return np.repeat(found, 2, axis=0)[::2] if found.ndim else found


FOLDER = pathlib.Path(tempfile.gettempdir())
"""Where files go; `use_folder` names another."""


def use_folder(folder: pathlib.Path) -> None:
    """Have files written there, those with names relative to the current folder too: so deep that ../.. is in it."""
    global FOLDER
    FOLDER = NAMES["FOLDER"] = folder / "files"
    current = folder / "current" / "in" / "here"
    for one in (FOLDER, current):
        one.mkdir(parents=True, exist_ok=True)
    os.chdir(current)


def clear_folder() -> None:
    """Remove what calls have written."""
    for one in (FOLDER, pathlib.Path(), pathlib.Path(".."), pathlib.Path("../..")):
        for entry in one.iterdir():
            if entry.name in ("in", "here") and not entry.is_symlink():
                continue
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def written(name: str, content: bytes) -> pathlib.Path:
    """Write a file, and give its path."""
    file = FOLDER / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def parquet(table: Any, **options: Any) -> bytes:
    """Return a table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.table(table), sink, **options)
    return sink.getvalue()


def npy(array: Any) -> bytes:
    """Return an array as a .npy file."""
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


def npz(**arrays: Any) -> bytes:
    """Return arrays as a .npz file."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def hurt(content: bytes, seed: int) -> bytes:
    """Flip bytes, cut, repeat or shift a part of a file."""
    random = np.random.default_rng(seed)
    found = bytearray(content)
    for _ in range(random.integers(1, 4)):
        start, end = sorted(random.integers(0, len(found) + 1, 2))
        kind = random.integers(5)
        if kind == 0 and found:
            found[random.integers(len(found))] = random.integers(256)
        elif kind == 1:
            del found[start : min(end, start + 8)]
        elif kind == 2:
            found[start:start] = found[start : min(end, start + 30)]
        elif kind == 3:
            found[start:start] = bytes(random.integers(0, 256, 3, dtype=np.uint8))
        elif random.random() < 0.3:
            del found[start:]
    return bytes(found)


def folder_of(model: Any, facts: dict[str, Any] | None = None, hurt_by: int | None = None, drop: str = "") -> Any:
    """Save a model, change what its files say, checksums included, and give the folder."""
    from verirec.training.checkpoints import read_tensors, write_tensors

    folder = FOLDER / "model"
    shutil.rmtree(folder, ignore_errors=True)
    model.save(folder)
    if facts is not None:
        tensors, wrapped = read_tensors(folder / "model.safetensors")
        text = json.dumps(json.loads(wrapped["facts"]) | facts, indent=1)
        tensors.pop(drop, None)
        write_tensors(folder / "model.safetensors", tensors, {"kind": "model", "facts": text})
        (folder / "model.json").write_text(text)
    if hurt_by is not None:
        file = folder / ("model.safetensors" if hurt_by % 2 else "model.json")
        file.write_bytes(hurt(file.read_bytes(), hurt_by))
    return folder


class ForeignLine(Exception):
    """The command said something that is not its own: lines on stderr, a wrong exit code, or text for JSON."""


def verb(name: str) -> Callable[..., Any]:
    """Return what runs a verb in this process; arguments are options, those that begin with an underscore come first."""

    def run(**options: Any) -> Any:
        words = [str(value) for key, value in options.items() if key.startswith("_") and value is not None]
        for key, value in options.items():
            option = "-k" if key == "k" else f"--{key.replace('_', '-')}"
            if not key.startswith("_") and value is True:
                words.append(option)
            elif not key.startswith("_") and value is not None and value is not False:
                words += [
                    word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))
                ]
        return run_command([name, *words])

    return run


def run_command(words: list[str]) -> str:
    """Run a command line in this process; a refusal in one line is raised as the error that it is."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with patch.object(sys, "argv", ["verirec", *words]), streams[0], streams[1]:
        try:
            command_line.main()
        except SystemExit as ended:
            code = ended.code or 0
    lines = err.getvalue().splitlines()
    foreign = [line for line in lines if not line.startswith("verirec: ") or "Warning:" in line]
    if code not in (0, 2) or foreign:
        raise ForeignLine(f"exit code {code}, stderr {foreign[:3]}")
    if code == 2:
        raise vr.exceptions.ParameterError(lines[-1] if lines else "")
    if "--json" in words:
        json.loads(out.getvalue(), parse_constant=lambda text: _refuse(text))
    return out.getvalue()


def _refuse(text: str) -> None:
    raise ForeignLine(f"{text} is no JSON")


NAMES: dict[str, Any] = {
    **{name: value for name, value in globals().items() if not name.startswith("_")},
    "nan": float("nan"),
    "inf": float("inf"),
}
"""All that a call's text may use."""
_USED = (Decimal, Fraction, datetime, gzip, pd, pl, scipy.sparse, torch)
