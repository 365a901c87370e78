"""How long the ten best items of many users take: ours, the matrix product alone, and implicit's `recommend`.

    .venv/bin/python benchmarks/recommend.py [--implicit PYTHON] [--threads 1]

PYTHON is one that has implicit (pip install implicit, in an environment of its own). Factors of 64, float32. All are
interleaved, each in a process of its own, on as many threads; the least of the rounds, wall and CPU seconds. The matrix
product works in the same blocks as ours and finds nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

K, DIM = 10, 64
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def ours(users: np.ndarray, items: np.ndarray, constants: bool = False) -> Callable[[], np.ndarray]:
    import torch

    from verirec.models import FactorModel
    from verirec.training.recommendations import top_items

    torch.set_num_threads(THREADS)
    model = FactorModel(len(users), len(items), DIM, constants=constants, random=torch.Generator())
    with torch.no_grad():
        model.user_factors.copy_(torch.as_tensor(users))
        model.item_factors.copy_(torch.as_tensor(items))
    return lambda: top_items(model, np.arange(len(users)), len(items), K, None)[0]


def with_constants(users: np.ndarray, items: np.ndarray) -> Callable[[], np.ndarray]:
    return ours(users, items, constants=True)


def product(users: np.ndarray, items: np.ndarray) -> Callable[[], np.ndarray]:
    import torch

    from verirec.training.recommendations import _BLOCK

    torch.set_num_threads(THREADS)
    u, v, height = torch.as_tensor(users), torch.as_tensor(items), max(1, _BLOCK // len(items))

    def run() -> np.ndarray:
        for part in u.split(height):
            block = part @ v.T
        return block[:, :K].numpy()

    return run


def implicit(users: np.ndarray, items: np.ndarray) -> Callable[[], np.ndarray]:
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    model = AlternatingLeastSquares(factors=DIM, num_threads=THREADS)
    model.user_factors, model.item_factors = users, items
    nothing = csr_matrix((len(users), len(items)), dtype=np.float32)
    everyone = np.arange(len(users))
    return lambda: model.recommend(everyone, nothing, N=K, filter_already_liked_items=False)[0]


CONTENDERS = {
    "verirec": ours,
    "verirec, with constants": with_constants,
    "the product alone": product,
    "implicit": implicit,
}


def work(name: str, folder: Path) -> None:
    """Run when told to, and say how long it took."""
    run = CONTENDERS[name](np.load(folder / "users.npy"), np.load(folder / "items.npy"))
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        found = run()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
        np.save(folder / f"{name}.npy", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--implicit", help="a Python that has implicit")
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work[0], Path(options.work[1]))
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for side, size in (("users", options.users), ("items", options.items)):
            np.save(Path(folder) / f"{side}.npy", random.standard_normal((size, DIM), dtype=np.float32))
        # implicit has threads of its own, and wants a BLAS without.
        threads = {"OMP_NUM_THREADS": str(options.threads), "OPENBLAS_NUM_THREADS": "1"}
        workers = {
            name: subprocess.Popen(
                [options.implicit if name == "implicit" else sys.executable, __file__, "--work", name, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | threads,
            )
            for name in CONTENDERS
            if name != "implicit" or options.implicit
        }
        times: dict[str, list[tuple[float, ...]]] = {name: [] for name in workers}
        for _ in range(options.rounds + 1):  # the first one warms up
            for name, worker in workers.items():
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdin.write("\n")
                worker.stdin.flush()
                times[name].append(tuple(map(float, worker.stdout.readline().split())))
        for worker in workers.values():
            worker.communicate()
        if "implicit" in workers:
            same = [np.load(Path(folder) / f"{name}.npy") for name in ("verirec", "implicit")]
            print(f"the same items in {(same[0] == same[1]).mean():.5%} of places\n")
    print("| | wall s | CPU s |\n|---|---|---|")
    for name, taken in times.items():
        wall, cpu = (min(column) for column in zip(*taken[1:], strict=True))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")
    return None


if __name__ == "__main__":
    main()
