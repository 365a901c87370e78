"""A real cluster: several nodes, each with a small store; one is lost, one has no verirec."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import verirec


@pytest.mark.xdist_group("ray")
def test_jobs_on_several_nodes(tmp_path):
    pytest.importorskip("ray")
    source = str(Path(verirec.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("cluster_jobs.py")), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        timeout=480,
        check=False,
    )
    told = dict(line.split(": ", 1) for line in run.stdout.splitlines() if ": " in line)
    assert told.get("node lost") == "the same", run.stdout + run.stderr[-2000:]
    assert told.get("node lost in training") == "the same", run.stdout + run.stderr[-2000:]
    assert told["overflow"] == "the same"
    assert told["no package"].startswith("EngineError: the Ray worker on ")
    assert told["no package"].endswith("has no verirec to work with (there is none): install it there")
