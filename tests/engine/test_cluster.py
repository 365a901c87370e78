"""A real cluster: several nodes, each with a small store; one is lost, one has no verirec.

Lost workers and actors, in training too, are tested on one node in `test_engines` and `test_losses_of_workers`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import verirec

LIMIT = 300
"""Seconds; on a busy machine of two cores the jobs took 107."""


def told_by(script, folder, limit=LIMIT):
    """Run jobs as a process group of their own, which is ended with all nodes at a limit; returns what was printed."""
    # Into a file: of a pipe, nodes that outlive the jobs would keep an end, and who reads it would wait for them.
    printed = folder / "printed"
    with printed.open("w") as file:
        jobs = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(Path(verirec.__file__).parents[1])},
            start_new_session=True,
        )
    try:
        jobs.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(jobs.pid, signal.SIGKILL)
        jobs.wait()
        pytest.fail(f"the jobs were not done after {limit} seconds; they printed:\n{printed.read_text()[-2000:]}")
    return printed.read_text()


@pytest.mark.long
@pytest.mark.xdist_group("ray")
def test_jobs_on_several_nodes(tmp_path):
    pytest.importorskip("ray")
    printed = told_by(Path(__file__).with_name("cluster_jobs.py"), tmp_path)
    told = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert told.get("node lost") == "the same", printed[-2000:]
    assert told.get("node lost in training") == "the same", printed[-2000:]
    assert told["overflow"] == "the same"
    assert told["no package"].startswith("EngineError: the Ray worker on ")
    assert told["no package"].endswith("has no verirec to work with (there is none): install it there")
    assert re.fullmatch(
        r"EngineError: the Ray worker on \S+ has verirec \S+ where this process has \S+: install the same there",
        told["other package"],
    )


def test_jobs_that_hang_are_ended_at_the_limit(tmp_path):
    script = tmp_path / "hangs.py"
    script.write_text("import subprocess\nsubprocess.run(['sleep', '600'])\n")
    with pytest.raises(pytest.fail.Exception, match="not done after 1 seconds; they printed:"):
        told_by(script, tmp_path, limit=1)
