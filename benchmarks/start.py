"""How long a user waits before anything is computed: imports, help, the first estimate and the first fit.

Each line is a process of its own, CPU seconds and wall time, the least of several. The first fit is measured with
nothing compiled yet (an empty cache folder), and in a second process. Its overhead is all that comes before a warm fit:
imports and the first fit, less the same fit once more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

WORLD = """
import numpy as np
import verirec as vr
rng = np.random.default_rng(0)
pairs = rng.permutation(290 * 300)[:6960]
log = vr.FeedbackLog.from_arrays(pairs // 300, pairs % 300, rng.integers(0, 2, 6960), n_users=290, n_items=300)
"""
ESTIMATE = f"{WORLD}\nvr.estimate(rng.uniform(.1, .9, (290, 300)), log)"
FIT = (
    """
import json, time
def now(): return time.process_time(), time.perf_counter()
begin = now()
"""
    + WORLD
    + """
def fit(): vr.methods.catalogue[{method!r}](random_state=0).fit(log, **({rates}))
fit()
first = now()
for _ in range(3): fit()
warm = now()
print(json.dumps([first[i] - begin[i] - (warm[i] - first[i]) / 3 for i in (0, 1)]))
"""
)
LINES = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import pandas": ["-c", "import pandas"],
    "import torch": ["-c", "import torch"],
    "import verirec": ["-c", "import verirec"],
    "verirec --help": ["-m", "verirec", "--help"],
    "verirec estimate --help": ["-m", "verirec", "estimate", "--help"],
    "verirec train --help": ["-m", "verirec", "train", "--help"],
    "verirec train --nope": ["-m", "verirec", "train", "--nope"],
    "verirec methods": ["-m", "verirec", "methods"],
    "first estimate": ["-c", ESTIMATE],
}
FITS = {"mf": "{}", "ome-dr": "dict(noise_rates=vr.NoiseRates(.2, .1))"}


def process(arguments: list[str], **more: str) -> tuple[float, float, str]:
    """Run Python; give its CPU seconds, the wall time and its output."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=os.environ | more, capture_output=True, text=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begin
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, done.stdout


def overhead(method: str, folder: str) -> list[float]:
    """Return what a process's first fit takes, CPU and wall, beyond a warm one."""
    code = FIT.replace("{method!r}", repr(method)).replace("{rates}", FITS[method])
    return json.loads(process(["-c", code], VERIREC_CACHE=folder)[2])


def cases(rounds: int = 5, cold: bool = True) -> list[dict[str, object]]:
    """Measure all, interleaved: a dict a case, with the least CPU seconds and wall time of the rounds.

    Parameters
    ----------
    rounds
        How often each is run.
    cold
        Whether to measure fits with nothing compiled too, once each.
    """
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as kept:
        for method in FITS:
            filled = overhead(method, kept)
            if cold:
                found[f"first {method} fit, nothing compiled"] = [filled]
        for _ in range(rounds):
            for name, arguments in LINES.items():
                found.setdefault(name, []).append([*process(arguments)[:2]])
            for method in FITS:
                found.setdefault(f"first {method} fit, second process", []).append(overhead(method, kept))
    return [
        {"case": name, "cpu": min(cpu for cpu, _ in runs), "wall": min(wall for _, wall in runs), "rounds": len(runs)}
        for name, runs in sorted(found.items(), key=lambda one: list(LINES).index(one[0]) if one[0] in LINES else 99)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    measured = cases(given.rounds)
    if given.json:
        print(json.dumps(measured, indent=2))
    else:
        print(f"{'':40} {'CPU s':>7} {'wall s':>7} {'runs':>5}")
        for one in measured:
            print(f"{one['case']:40} {one['cpu']:7.3f} {one['wall']:7.3f} {one['rounds']:5}")
