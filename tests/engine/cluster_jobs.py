"""Jobs on a cluster of two nodes of this machine, each with a small store of its own; run as a process of its own.

Prints a line for each job: what came of it. One node is the driver's and stays; of others, whose start takes seconds,
there are as few as will do.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

import verirec as vr
from ray_stores import SIZE, folder_of_stores
from verirec.engine import Ray
from verirec.exceptions import VerirecError, WorkerEndedError
from verirec.training.solvers.sharded.crew import Crew
from verirec.training.solvers.sweep import rows

NODE = {"num_cpus": 1, "object_store_memory": SIZE, "plasma_directory": folder_of_stores(2)}
HEAD = NODE | {
    "include_dashboard": False,
    # A node that has ended is known to have after five of these; one that is slow still has ten seconds for an answer.
    "_system_config": {"health_check_period_ms": 500, "health_check_initial_delay_ms": 0},
}


def overflow(engine):
    """Send a function of more than the store has room for, and get back more than twice that in results."""
    held = np.arange(11_000_000.0)
    parts = range(2_000_000, 12_000_000, 3_000_000)
    found = [one[[0, -1]].tolist() for one in engine.map(lambda part: held[:part] + 1.0, parts, singly=True)]
    return "the same" if found == [[1.0, float(part)] for part in parts] else f"other, {found}"


def lose_a_worker(crew, most=60):
    """Wait until a worker has ended: it outlives its node for a moment, and answers until then."""
    for _ in range(10 * most):
        for host in crew.shards:
            try:
                host.begin(dict.__len__)()
            except WorkerEndedError:
                return
        time.sleep(0.1)


def train(cluster, node):
    """End a node when its workers are asked for the sixth time, in the middle of a sweep."""
    log = vr.simulate.world(130, 60, observed=0.06, random_state=0).log
    rows.ROWS_A_PART, rows._ROWS_AN_ITEM = 40, 0
    method, asked, ask = vr.methods.DRJL(epochs=3, dim=3, solver="sweep", validation=0), [], Crew.ask

    def bits():
        return [value.numpy().tobytes() for model in method.models_.values() for value in model.state_dict().values()]

    def losing(crew, *given):
        asked.append(len(crew.shards))
        if len(asked) == 6:
            cluster.remove_node(node, allow_graceful=False)
            lose_a_worker(crew)
        return ask(crew, *given)

    method.fit(log)
    expected = bits()
    Crew.ask = losing
    method.fit(log, engine=Ray())
    Crew.ask = ask
    return "the same" if bits() == expected and (asked[0], asked[-1]) == (2, 1) else f"other, {asked}"


def slow(part):
    time.sleep(0.2)
    return np.random.default_rng(part).normal(size=200_000)


def lose_a_node(cluster, node):
    """End a node while its parts are under way; the results are large enough to have been on it."""
    found = []
    for number, one in enumerate(Ray().map(slow, range(10), singly=True)):
        found.append(one)
        if number == 1:
            cluster.remove_node(node, allow_graceful=False)
    same = all(np.array_equal(one, slow(part)) for part, one in enumerate(found))
    return "the same" if same and len(found) == 10 else "other"


def without_package(cluster, folder):
    """Work on a node that finds no verirec, while the driver's has something else to do."""
    busy = ray.remote(num_cpus=1)(type("Busy", (), {})).remote()
    ray.get(busy.__ray_ready__.remote())
    package = folder / "verirec"
    shutil.copytree(Path(vr.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("raise ImportError('there is none')\n")
    os.environ["PYTHONPATH"] = str(folder)
    cluster.add_node(**NODE)
    try:
        return str(list(Ray().map(abs, [-1])))
    except VerirecError as error:
        return f"{type(error).__name__}: {error}"


def main(folder):
    cluster = Cluster(initialize_head=True, head_node_args=HEAD)
    try:
        node = cluster.add_node(**NODE)
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        print("overflow:", overflow(Ray()), flush=True)
        print("node lost in training:", train(cluster, node), flush=True)
        print("node lost:", lose_a_node(cluster, cluster.add_node(**NODE)), flush=True)
        print("no package:", without_package(cluster, folder), flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
