"""How long a sweep takes beside one of implicit's ALS (conjugate gradients) on the same log, interleaved.

    .venv/bin/python benchmarks/implicit.py --implicit PYTHON [--rows 312k 3.1M 31M] [--sweeps 3] [--out FOLDER]

PYTHON is one that has implicit (pip install implicit, in an environment of its own). 32 factors, one thread; see
`benchmarks/scaling.py` for the logs. implicit's ALS solves another problem: it takes all that is not in the log for a
weak no. A sweep improves all users and all items once, in both; ours has two models to improve, predictions and
imputations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

# A script's own folder comes first on the path, and this file is called as the library is.
_HERE = str(Path(__file__).parent)


def work_implicit(size: str, file: str) -> None:
    """Train by implicit, a sweep when told to."""
    import numpy as np

    from scaling import DIM, SHAPES, Stopwatch

    sys.path = [place for place in sys.path if place not in ("", _HERE)]
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    with np.load(file) as table:
        ones = np.ones(len(table["users"]), np.float32)
        ratings = csr_matrix((ones, (table["users"], table["items"])), shape=SHAPES[size][:2])
    model = AlternatingLeastSquares(factors=DIM, num_threads=1, iterations=10_000, use_cg=True, random_state=0)
    watch = Stopwatch()
    model.fit(ratings, show_progress=False, callback=lambda *facts: watch.lap())


def main() -> None:
    from scaling import METHODS, SHAPES, Worker, make, report

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--implicit", help="a Python that has implicit")
    parser.add_argument("--rows", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for implicit.csv and implicit.png")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work_implicit(*options.work)
        return
    if options.implicit is None:
        parser.error("--implicit PYTHON is needed")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in options.rows:
            file = make(size, Path(folder))
            ours = Path(_HERE) / "scaling.py"
            workers = {name: Worker(sys.executable, str(ours), name, size, str(file)) for name in METHODS}
            workers["implicit ALS"] = Worker(options.implicit, __file__, size, str(file))
            for _ in range(options.sweeps + 1):
                for worker in workers.values():
                    worker.sweep()
            found = {name: worker.best() for name, worker in workers.items()}
            theirs = found["implicit ALS"]["cpu"]
            rows += [
                {"rows": size, "solver": name} | one | {"to_implicit": one["cpu"] / theirs}
                for name, one in found.items()
            ]
            file.unlink()
    report(rows, "solver", options.out, "implicit")


if __name__ == "__main__":
    main()
