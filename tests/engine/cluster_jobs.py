"""Jobs on a cluster of several nodes of this machine, each with a small store of its own; run as a process of its own.

Prints a line for each job: what came of it.
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
from verirec.engine import Ray
from verirec.exceptions import VerirecError, WorkerEndedError
from verirec.training.solvers.sharded.crew import Crew
from verirec.training.solvers.sweep import rows

STORE = 80 << 20


def slow(part):
    time.sleep(0.4)
    return np.random.default_rng(part).normal(size=200_000)


def lose_a_node(cluster, node, engine):
    """End a node while its parts are under way; the results are large enough to have been on it."""
    expected = [slow(part) for part in range(10)]
    found = []
    for number, one in enumerate(engine.map(slow, range(10))):
        found.append(one)
        if number == 1:
            cluster.remove_node(node, allow_graceful=False)
    same = all(np.array_equal(one, two) for one, two in zip(found, expected, strict=True))
    return "the same" if same and len(found) == 10 else "other"


def wait_for_a_loss(crew, most=60):
    """Wait until a worker has ended: it outlives its node for a moment, and answers until then."""
    for _ in range(10 * most):
        for host in crew.shards:
            try:
                host.begin(dict.__len__)()
            except WorkerEndedError:
                return
        time.sleep(0.1)


def train(cluster, node, engine):
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
            wait_for_a_loss(crew)
        return ask(crew, *given)

    method.fit(log)
    expected = bits()
    Crew.ask = losing
    method.fit(log, engine=engine)
    Crew.ask = ask
    return "the same" if bits() == expected and (asked[0], asked[-1]) == (2, 1) else f"other, {asked}"


def overflow(engine):
    """Send a function of more than the store has room for, and get back more than that."""
    held = np.arange(15_000_000.0)
    found = [float(one.sum()) for one in engine.map(lambda part: held[: part * 2_500_000] + 1.0, range(1, 6))]
    return "the same" if found == [float((held[: part * 2_500_000] + 1.0).sum()) for part in range(1, 6)] else "other"


def with_package(cluster, folder, line):
    """Work on a node whose verirec is this one, but for a line more."""
    shutil.copytree(Path(vr.__file__).parent, folder / "verirec")
    with (folder / "verirec" / "__init__.py").open("a") as file:
        file.write(f"\n{line}\n")
    os.environ["PYTHONPATH"] = str(folder)
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    told = refused(Ray())
    cluster.remove_node(node, allow_graceful=False)
    return told


def refused(engine):
    try:
        return str(list(engine.map(abs, [-1])))
    except VerirecError as error:
        return f"{type(error).__name__}: {error}"


def main(folder):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE})
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2)]
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        print("node lost:", lose_a_node(cluster, nodes[0], Ray()), flush=True)
        nodes[0] = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        print("node lost in training:", train(cluster, nodes[0], Ray()), flush=True)
        print("overflow:", overflow(Ray()), flush=True)
        cluster.remove_node(nodes[1], allow_graceful=False)
        print("no package:", with_package(cluster, folder / "none", "raise ImportError('there is none')"), flush=True)
        print("other package:", with_package(cluster, folder / "other", "# other"), flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
