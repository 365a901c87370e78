"""A real cluster: two nodes, each with a small store; one is lost, one has no verirec.

Lost workers and actors, in training too, are tested on one node in `test_engines` and `test_losses_of_workers`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import verirec

TESTS = Path(__file__).parents[1]
LIMIT = 600
"""Seconds; the jobs take some thirty on two cores, and several times as long beside other work."""
LONG_DYING = 60
"""Seconds after which a process that was killed has ended, or never will."""


def told_by(script, folder, limit=LIMIT):
    """Run jobs as a process group of their own, which is ended with all nodes at a limit; returns what was printed."""
    # Into a file: of a pipe, nodes that outlive the jobs would keep an end, and who reads it would wait for them.
    printed = folder / "printed"
    with printed.open("w") as file:
        jobs = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (Path(verirec.__file__).parents[1], TESTS)))},
            start_new_session=True,
        )
    try:
        jobs.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(jobs.pid, signal.SIGKILL)
        jobs.wait()
        pytest.fail(f"the jobs were not done after {limit} seconds; they printed:\n{printed.read_text()[-2000:]}")
    return printed.read_text()


def runs(process):
    """Whether a process is there and has not ended."""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(") ")[2][0] != "Z"


@pytest.mark.xdist_group("ray")
def test_jobs_on_two_nodes(tmp_path):
    pytest.importorskip("ray")
    printed = told_by(Path(__file__).with_name("cluster_jobs.py"), tmp_path)
    told = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert told.get("overflow") == "the same", printed[-2000:]
    assert told.get("node lost in training") == "the same", printed[-2000:]
    assert told.get("node lost") == "the same", printed[-2000:]
    assert told.get("no package", "").startswith("EngineError: the Ray worker on "), printed[-2000:]
    assert told["no package"].endswith("has no verirec to work with (there is none): install it there")


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for the process in /proc")
def test_jobs_that_hang_are_ended_at_the_limit(tmp_path):
    script = tmp_path / "hangs.py"
    script.write_text(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint(child.pid, flush=True)\nchild.wait()\n"
    )
    with pytest.raises(pytest.fail.Exception, match="not done after 5 seconds; they printed:"):
        told_by(script, tmp_path, limit=5)
    child, until = int((tmp_path / "printed").read_text()), time.monotonic() + LONG_DYING
    # It was sent the signal: a busy system may take a moment to end it.
    while runs(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(child)
