"""Workers, nodes or the driver are lost in the middle of training: the result has the bits of an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sharded_fits import LOGS, RATES, SOME, fitted, model_bits

import verirec as vr
from verirec.engine import Processes, Ray
from verirec.exceptions import WorkerEndedError
from verirec.training.solvers.sharded import solver as sharded_solver
from verirec.training.solvers.sharded.crew import Crew

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.xdist_group("ray"),
]
LOG = LOGS[130, 60]


@pytest.fixture(scope="module")
def two_processes():
    with Processes(2) as engine:
        yield engine


def losing(monkeypatch, rounds, hosts=1):
    """End workers when all are asked for the n-th time; returns what counts the times."""
    counted, together = [], Crew._together

    def ending(crew, work):
        counted.append(work[0][1].__name__ not in ("load", "label", "place_users"))
        if counted[-1] and sum(counted) in rounds:
            for host in list(crew.shards)[:hosts]:
                host.begin(lambda state: os._exit(9))
        return together(crew, work)

    monkeypatch.setattr(Crew, "_together", ending)
    return counted


# A sweep of OME-DR asks four times: users, items on the grid, users of g, items of g. One of IPS asks three times.
@pytest.mark.parametrize(("name", "number"), [("ome-dr", 7), ("ips", 5)])
def test_a_worker_that_is_lost_in_mid_sweep_changes_no_bit(name, number, two_processes, monkeypatch, small_shards):
    expected = fitted(name, LOG, None)
    counted = losing(monkeypatch, {number})
    assert fitted(name, LOG, two_processes) == expected
    assert sum(counted) > number


def test_all_workers_lost_at_once_are_started_again(two_processes, monkeypatch, small_shards):
    expected = fitted("ome-dr", LOG, None)
    losing(monkeypatch, {6}, hosts=2)
    assert fitted("ome-dr", LOG, two_processes) == expected


def test_workers_that_are_lost_each_time_are_given_up(monkeypatch, small_shards):
    monkeypatch.setattr(sharded_solver, "_ATTEMPTS", 2)
    losing(monkeypatch, range(1_000), hosts=2)
    with Processes(1) as engine, pytest.raises(WorkerEndedError, match=r"^a worker was ended.*use fewer workers$"):
        fitted("ips", LOG, engine, validation=0)


def test_an_actor_that_is_lost_changes_no_bit(small_cluster, monkeypatch, small_shards):
    expected = fitted("ome-dr", LOG, None, validation=0)
    losing(monkeypatch, {7})
    with Ray() as engine:
        assert fitted("ome-dr", LOG, engine, validation=0) == expected


DRIVER = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from sharded_fits import LOGS, RATES, SOME
import verirec as vr
from verirec.training.solvers.sweep import rows

def killed(epoch, epochs, error):
    if epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    rows.ROWS_A_PART, rows._ROWS_AN_ITEM = 40, 0
    method = vr.methods.OMEDR(**SOME)
    method.fit(LOGS[130, 60], noise_rates=RATES, checkpoint=sys.argv[1], progress=killed, engine="processes")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_a_killed_driver_is_gone_on_from_after_its_last_sweep(tmp_path, two_processes, small_shards):
    file, told = tmp_path / "checkpoint", []
    script = [sys.executable, "-c", DRIVER, str(file), str(Path(__file__).parent)]
    source = str(Path(vr.__file__).parents[1])
    run = subprocess.run(script, env={**os.environ, "PYTHONPATH": source}, timeout=240, check=False)
    assert run.returncode == -signal.SIGKILL
    method = vr.methods.OMEDR(**SOME)
    given = {"checkpoint": file, "resume": True, "progress": lambda epoch, *_: told.append(epoch)}
    method.fit(LOG, noise_rates=RATES, engine=two_processes, **given)
    assert told[0] == 4
    assert (model_bits(method), method.report_.history) == fitted("ome-dr", LOG, None)
