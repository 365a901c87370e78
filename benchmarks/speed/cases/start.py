"""What a user waits for before anything is done: the command, the import, and the first fit of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

from benchmarks.speed.case import Case, Run, Taken, Target

_TWO_FITS = """
import json, time
import numpy as np
import verirec as vr
random = np.random.default_rng(0)
cells = random.choice(300 * 300, 7_000, replace=False)
log = vr.FeedbackLog.from_arrays(*np.divmod(cells, 300), random.integers(2, size=7_000), n_users=300, n_items=300)
taken = []
for _ in range(2):
    wall, cpu = time.perf_counter(), time.process_time()
    vr.methods.OMEDR(dim=8, penalty_factors=200, solver="sweep").fit(log, noise_rates=vr.NoiseRates(0.2, 0.1))
    taken.append((time.perf_counter() - wall, time.process_time() - cpu))
print(json.dumps([first - second for first, second in zip(*taken)]))
"""


def started(*arguments: str) -> Run:
    """Start a Python with these arguments, and wait for its end."""
    command = [sys.executable, "-W", "ignore", *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def first_fit() -> Run:
    """Fit twice in a process of its own: what the first took beyond the second, imports of what trains included."""

    def run() -> Taken:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _TWO_FITS], check=True, capture_output=True, text=True
        )
        return Taken(*json.loads(done.stdout))

    return run


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
    Case(
        "start/first-fit",
        "the first fit of a process, beyond the second",
        "OME-DR by sweeps, 300 x 300, 7,000 rows",
        {"first fit": first_fit},
        (Target(1.5),),
    ),
]
