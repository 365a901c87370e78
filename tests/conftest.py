"""What the tests share: the real data where it is at hand, small logs, and engines."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from pathlib import Path

import hypothesis
import pytest

import verirec
from ray_stores import SIZE, folder_of_stores
from verirec import FeedbackLog, scratch
from verirec.data import parts
from verirec.data.datasets import CATALOGUE, find_dataset
from verirec.engine import Processes, Ray, Serial

hypothesis.settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("default")

_SHORT = 1 << 13
"""Rows of a short part."""
REPOSITORY = Path(__file__).parents[1]
REAL_DATA = Path(os.environ.get("VERIREC_DATA", REPOSITORY.parent / "shared" / "data"))


@pytest.fixture
def real_data():
    """Give the folder of a data set's real files, or skip with a reason."""

    def home(name: str) -> Path:
        if find_dataset(CATALOGUE[name], REAL_DATA) is None:
            pytest.skip(f"{name} is not at hand: its files are not in $VERIREC_DATA or beside the repository")
        return REAL_DATA

    return home


@pytest.fixture
def small_log() -> FeedbackLog:
    """Three users, four items, six ratings, everything optional included."""
    return FeedbackLog.from_arrays(
        users=[0, 0, 1, 1, 2, 2],
        items=[0, 1, 1, 2, 0, 3],
        labels=[5, 1, 4, 2, 3, 1],
        n_users=3,
        n_items=4,
        positive_from=3,
        timestamps=[10, 20, 30, 40, 50, 60],
        propensities=[0.5, 0.1, 0.5, 0.2, 0.9, 1.0],
        weights=[1, 2, 1, 1, 0.5, 1],
        unbiased=[True, False, False, True, False, False],
        user_features=[[1, 0], [0, 1], [1, 1]],
    )


@pytest.fixture
def limited(monkeypatch):
    """Have long arrays kept on disk, and two threads work: each has parts of its own in memory."""
    monkeypatch.setattr(scratch._KEEPER, "memory", 1 << 20)
    monkeypatch.setattr("verirec.data.threads.usable_cores", lambda: 2)


@pytest.fixture
def in_small_parts(limited, monkeypatch):
    """Have all parts of rows be short, and so samples of rows to learn from: what is longer than that is as a log."""
    for module in pkgutil.walk_packages(verirec.__path__, "verirec."):
        if module.name.startswith(("verirec.data.p", "verirec.estimation", "verirec.nuisance", "verirec.losses")):
            importlib.import_module(module.name)
    for function in (parts.parts_of, parts.over_parts, parts.each_part):
        monkeypatch.setitem(function.__kwdefaults__, "size", _SHORT)
    lengths = {
        "SHORT",
        "_PART",
        "_SHORT",
        "_TOTALLED",
        "_GLANCE",
        "MOST_ROWS",
        "GRID_SAMPLE",
        "WORTH_SENDING",
        "_SENT",
        "_GATHERED",
    }
    for name, module in list(sys.modules.items()):
        if name.startswith("verirec."):
            for length in lengths & vars(module).keys():
                monkeypatch.setattr(module, length, min(_SHORT, getattr(module, length)))


@pytest.fixture(scope="session")
def small_cluster():
    """Start Ray on this machine with two cores and a small store."""
    ray = pytest.importorskip("ray")
    store = {"object_store_memory": SIZE, "_plasma_directory": folder_of_stores(1)}
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, **store)
    yield ray
    ray.shutdown()


@pytest.fixture(params=["serial", "processes-1", "processes-2", "ray"])
def engine(request):
    """Give each engine, with some numbers of workers."""
    if request.param == "serial":
        made = Serial()
    elif request.param == "ray":
        request.getfixturevalue("small_cluster")
        made = Ray()
    else:
        made = Processes(int(request.param[-1]))
    with made:
        yield made
