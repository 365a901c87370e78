"""Logs and data that several cases need: made once for all processes of a run, then read from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from benchmarks.speed.case import LeftOut
from benchmarks.speed.run import ROOT

if TYPE_CHECKING:
    import numpy as np

    import verirec as vr

FOLDER = "VERIREC_BENCH_FOLDER"
"""The environment's variable for the folder that a run's processes share."""


def file_of(name: str, make: Callable[[Path], object]) -> Path:
    """Return a file of the run's folder, made if it is not there."""
    path = Path(os.environ.get(FOLDER, gettempdir())) / name
    if not path.exists():
        make(path)
    return path


def random_log(n_users: int, n_items: int, rows: int) -> vr.FeedbackLog:
    """Return a log of random pairs and labels."""
    import numpy as np

    import verirec as vr

    random = np.random.default_rng(0)
    keys = np.unique(random.integers(n_users * n_items, size=rows))
    labels = random.integers(2, size=len(keys))
    return vr.FeedbackLog.from_arrays(*np.divmod(keys, n_items), labels, n_users=n_users, n_items=n_items)


def simulated_log(n_users: int, n_items: int, observed: float) -> vr.FeedbackLog:
    """Return the log of a simulated world with labels flipped at (.2, .1)."""
    import numpy as np

    import verirec as vr

    def make(path: Path) -> None:
        rates = vr.NoiseRates(0.2, 0.1)
        log = vr.simulate.world(n_users, n_items, observed=observed, noise_rates=rates, random_state=0).log
        np.savez(path, users=log.users, items=log.items, labels=log.labels)

    with np.load(file_of(f"{n_users}x{n_items}x{observed}.npz", make)) as columns:
        return vr.FeedbackLog.from_arrays(**columns, n_users=n_users, n_items=n_items)


def random_factors(n_users: int, n_items: int, dim: int = 32) -> vr.Factors:
    """Return single-precision factors."""
    import numpy as np

    import verirec as vr

    random = np.random.default_rng(0)
    sides: list[np.ndarray[Any, Any]] = [
        random.normal(0, 0.4, (size, dim)).astype(np.float32) for size in (n_users, n_items)
    ]
    return vr.Factors(*sides)


def real_data(name: str) -> vr.Dataset:
    """Return a real data set, from $VERIREC_DATA or beside the repository."""
    import verirec as vr
    from verirec.exceptions import DatasetNotFoundError

    home = os.environ.get("VERIREC_DATA", ROOT.parent / "shared" / "data")
    try:
        return vr.load_dataset(name, data_home=home)
    except DatasetNotFoundError as error:
        raise LeftOut(f"{name} is not at hand") from error
