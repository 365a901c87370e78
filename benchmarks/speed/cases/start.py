"""What a user waits for before anything is done: the command, the import, and the first fit of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.case import Case, Run, Taken, Target
from benchmarks.speed.material import file_of

_FITS = """
import json, time
def now(): return time.perf_counter(), time.process_time()
begin = now()
import numpy as np
import verirec as vr
random = np.random.default_rng(0)
users, items = np.divmod(random.choice(290 * 300, 6_960, replace=False), 300)
log = vr.FeedbackLog.from_arrays(users, items, random.integers(2, size=6_960), n_users=290, n_items=300)
def fit(): METHOD.fit(log, noise_rates=vr.NoiseRates(0.2, 0.1))
fit()
first = now()
fit()
print(json.dumps([2 * middle - start - end for start, middle, end in zip(begin, first, now())]))
"""


def installed() -> dict[str, str]:
    """Return an environment that keeps compiled modules, as an installed package does, in a folder of its own."""
    kept = file_of("bytecode", Path.mkdir)
    shown = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return shown | {"PYTHONPYCACHEPREFIX": str(kept)}


def started(*arguments: str) -> Run:
    """Start a Python with these arguments, and wait for its end; once before, so that its modules are compiled."""
    command = [sys.executable, "-W", "ignore", *arguments]

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env=installed())

    run()
    return run


def first_fit(method: str, compiled: bool) -> Run:
    """Import and fit twice in a process of its own: what comes before the second, beyond what that takes."""
    kept = TemporaryDirectory()

    def run(folder: str) -> Taken:
        environment = installed() | {"VERIREC_CACHE": folder, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-W", "ignore", "-c", _FITS.replace("METHOD", f"vr.methods.{method}()")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return Taken(*json.loads(done.stdout))

    def run_anew() -> Taken:
        with TemporaryDirectory() as empty:
            return run(empty)

    run(kept.name)
    if not compiled:
        return run_anew
    return lambda: run(kept.name)


_SIZE = "290 x 300, 6,960 rows"
_TRAINS = partial(started, "-c", "import torch, numba")
PANDAS = partial(started, "-c", "import numpy, pandas")
CASES = [
    Case(
        "start/help",
        "`verirec --help`",
        "a process",
        {
            "verirec --help": partial(started, "-m", "verirec", "--help"),
            "import numpy, pandas": PANDAS,
            "python, nothing imported": partial(started, "-c", "pass"),
        },
        (Target(0.6),),
        rounds=5,
    ),
    Case(
        "start/verb-help",
        "`verirec estimate --help`",
        "a process",
        {
            "verirec estimate --help": partial(started, "-m", "verirec", "estimate", "--help"),
            "import numpy, pandas": PANDAS,
        },
    ),
    Case(
        "start/import",
        "`import verirec`",
        "a process",
        {"import verirec": partial(started, "-c", "import verirec"), "import numpy, pandas": PANDAS},
        (Target(0.5),),
        rounds=5,
    ),
    Case(
        "start/estimate",
        "import, and a log of six rows estimated",
        "a process",
        {
            "a first estimate": partial(
                started,
                "-c",
                "import numpy as np, verirec as vr\n"
                "u, i, y = [0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 0, 2], [1, 0, 1, 0, 1, 0]\n"
                "vr.estimate(np.full((3, 3), 0.5), vr.FeedbackLog.from_arrays(u, i, y, n_users=3, n_items=3))",
            ),
            "import numpy, pandas": PANDAS,
        },
    ),
    *(
        Case(
            f"start/fit-{name}",
            f"imports and all that a process's first fit of {name.upper()} takes beyond its second",
            _SIZE,
            {"first fit": partial(first_fit, method, compiled=True), "import torch, numba": _TRAINS},
            (Target(1.5),),
        )
        for name, method in (("mf", "MF"), ("ome-dr", "OMEDR"))
    ),
    Case(
        "start/compile",
        "the same of MF, nothing compiled yet",
        _SIZE,
        {"first fit of all": partial(first_fit, "MF", compiled=False)},
        rounds=1,
    ),
]
