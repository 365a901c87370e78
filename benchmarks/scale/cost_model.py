"""What a sweep on many workers costs: a model, fitted at some sizes, checked at another, written into docs/scale.md.

    python -m benchmarks.scale.cost_model            # writes the section from benchmarks/scale/measured.json
    python -m benchmarks.scale.cost_model --measure  # measures anew first: minutes

CPU seconds of a sweep of OME-DR are taken to be sums of what rows, users and items cost,

    shards:  a R + b U + c S M        driver:  d U + e M

for R rows, U users, M items and S shards, with constants of at least 0 that fit the measured ones by least squares of
relative errors. What is sent and kept in memory follows from the sizes of arrays; what is sent is held against counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import jinja2
import numpy as np
from benchmarks.scale.sweeps import SWEEPS
from scipy.optimize import nnls

from verirec.atomic_write import replace_file
from verirec.training.solvers.sweep.rows import part_count

FOLDER: Final = Path(__file__).parent
MEASURED: Final = FOLDER / "measured.json"
PAGE: Final = FOLDER.parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- written by benchmarks/scale/cost_model.py -->\n", "<!-- to here -->\n"
FITTED: Final = ((10_000_000, 100_000, 60_000), (6_000_000, 600_000, 60_000), (6_000_000, 60_000, 240_000))
"""Rows, users and items of what the constants are fitted to: tables of items that no cache holds."""
CHECKED: Final = (30_000_000, 400_000, 120_000)
"""Those of what they are held against."""
LARGE: Final = (10**8, 10**6, 10**5)
"""Those that are measured too."""
DIM: Final = 32
RUNS: Final = 3
"""Of each size: the least CPU time of a sweep counts."""
FOLLOWED: Final = ((10**8, 10**6, 10**5), (10**9, 10**7, 3 * 10**5), (10**10, 10**8, 10**6))
WORKERS: Final = (2, 10, 100)
BANDWIDTH: Final = 1e9
"""Bytes a second that the driver sends or receives: 10 Gbit/s, less what protocols take."""
FLOAT: Final = 4
ROW_AT_WORKER: Final = 4 + 1 + 4 + FLOAT
"""Bytes of a row that a worker keeps: item, label, weight, and between two rounds a curvature."""
MODELS: Final = 2


@dataclass(frozen=True)
class Size:
    """The size of a job."""

    rows: int
    users: int
    items: int
    workers: int

    @property
    def width(self) -> int:
        """Numbers of a user or an item: factors, a constant and a 1."""
        return DIM + 2

    @property
    def shards(self) -> int:
        return part_count(self.rows, self.items)

    @property
    def hosts(self) -> int:
        return min(self.workers, self.shards)

    @property
    def partial_sums(self) -> int:
        """Sums of items that are sent: of each worker's shards, those that do not belong together in a tree."""
        shares = np.array_split(np.arange(self.shards), self.hosts)
        return sum(_left(own.tolist(), self.shards) for own in shares)

    @property
    def sent(self) -> int:
        """Bytes that the driver sends in a sweep: items of f twice and of g once to each worker, and directions."""
        return self.hosts * self.items * (3 * self.width + self.width - 1) * FLOAT

    @property
    def received(self) -> int:
        """Bytes that it receives: users of f and g, the gradient of items on the grid, and three sums of items."""
        numbers = MODELS * self.users * (self.width - 1) + self.items * (self.width - 1)
        return (numbers + self.partial_sums * self.items * (2 * self.width + 1)) * FLOAT

    @property
    def at_worker(self) -> int:
        """Bytes of memory at a worker: its rows and users, all items, and sums on their way."""
        own = self.rows * ROW_AT_WORKER + MODELS * self.users * self.width * FLOAT
        sums = int(np.ceil(np.log2(max(self.shards, 2)))) + 2
        return own // self.hosts + (MODELS + sums) * self.items * self.width * FLOAT

    @property
    def at_driver(self) -> int:
        """Bytes of memory at the driver: both models, users on their way, and sums.

        The rest is on disk where the log is prepared: rows, weights, and models as they were when the sweep began.
        """
        return ((MODELS + 1) * self.users + (2 * MODELS + 2) * self.items) * self.width * FLOAT


def _left(own: list[int], count: int) -> int:
    """Count the sums that are left of some shards."""
    found = 0
    while own and count > 1:
        have = set(own)
        found += sum(1 for one in own if one ^ 1 < count and one ^ 1 not in have)
        own = sorted({one // 2 for one in own if one ^ 1 >= count or one ^ 1 in have})
        count = -(-count // 2)
    return found + len(own)


@dataclass(frozen=True)
class Costs:
    """Constants: nanoseconds of CPU time."""

    row: float
    user: float
    item_of_shard: float
    user_here: float
    item_here: float

    @classmethod
    def fitted(cls, found: list[dict[str, Any]]) -> Costs:
        shards = [[one["rows"], one["users"], one["items"] * one["shards"]] for one in found]
        here = [[one["users"], one["items"]] for one in found]
        return cls(
            *_least_squares(shards, [one["shard_seconds"] for one in found]),
            *_least_squares(here, [one["driver"] for one in found]),
        )

    def shard_seconds(self, size: Size) -> float:
        """CPU seconds of all shards in a sweep."""
        own = self.row * size.rows + self.user * size.users + self.item_of_shard * size.shards * size.items
        return own * 1e-9

    def driver_seconds(self, size: Size) -> float:
        """CPU seconds of the driver in a sweep."""
        return (self.user_here * size.users + self.item_here * size.items) * 1e-9

    def sweep(self, size: Size) -> float:
        """Seconds of a sweep, with a core for each worker, messages one after the other."""
        return self.shard_seconds(size) / size.hosts + self.driver_seconds(size) + messages(size)


def messages(size: Size) -> float:
    """Seconds that messages take in a sweep."""
    return (size.sent + size.received) / BANDWIDTH


def crossing(costs: Costs, size: Size) -> int | None:
    """Return from how many workers on messages take longer than the shards; `None` if they never do."""
    sizes = (replace(size, workers=workers) for workers in range(1, size.shards + 1))
    return next((one.workers for one in sizes if messages(one) > costs.shard_seconds(one) / one.hosts), None)


def _least_squares(terms: list[list[float]], seconds: list[float]) -> Iterator[float]:
    matrix, target = np.array(terms, dtype=float), np.array(seconds)
    scale = matrix.max(0)
    found, _ = nnls(matrix / scale / target[:, None], np.ones(len(target)))
    yield from (1e9 * found / scale).tolist()


def size_of(one: dict[str, Any]) -> Size:
    return Size(one["rows"], one["users"], one["items"], one["workers"])


def measure() -> list[dict[str, Any]]:
    found = []
    for rows, users, items in (*FITTED, CHECKED, LARGE):
        runs = [_alone(rows=rows, users=users, items=items, dim=DIM) for _ in range(RUNS)]
        found.append(min(runs, key=lambda one: one["shard_seconds"] + one["driver"]))
    return found


def _alone(**size: int) -> dict[str, Any]:
    """Measure in a process of its own, whose memory is then that of one job."""
    options = (text for name, value in size.items() for text in (f"--{name}", str(value)))
    run = subprocess.run([sys.executable, "-m", "benchmarks.scale.sweeps", *options], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def section(found: list[dict[str, Any]]) -> str:
    """Return the section of the page."""
    *fitted, checked = found[: len(FITTED) + 1]
    costs = Costs.fitted(fitted)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"size": shown_bytes, "time": shown_time, "count": lambda value: f"{value:,}"}
    template = environment.from_string((FOLDER / "costs.md.jinja").read_text(encoding="utf-8"))
    sizes = [Size(*job, workers) for job in FOLLOWED for workers in WORKERS]
    return template.render(
        costs=costs,
        fitted=[(SimpleNamespace(**one), size_of(one)) for one in fitted],
        checked=SimpleNamespace(**checked),
        size=size_of(checked),
        large=[(SimpleNamespace(**one), size_of(one)) for one in found[len(FITTED) + 1 :]],
        sizes=sizes,
        ends=[Size(*job, WORKERS[-1]) for job in FOLLOWED],
        crossing=crossing,
        messages=messages,
        row_at_worker=ROW_AT_WORKER,
        dim=DIM,
        runs=RUNS,
        sweeps=SWEEPS - 1,
        largest=max(one["rows"] for one in found),
        off=lambda told, seen, digits=0: f"{100 * (told / seen - 1):+.{digits}f}%",
        bandwidth=BANDWIDTH,
        flops=flops_of_row(),
    )


def flops_of_row() -> int:
    """Count multiplications and additions of a row in a sweep: passes over its item's or user's numbers, two each.

    Three logits (g before f is improved, f and g after), sums of f's users and items, slopes and curvature of g's users
    and items, and the cells of the grid, about one for each row and side, three products each.
    """
    return 2 * (DIM + 2) * (3 + 2 + 2 * 2 + 2 * 3)


def shown_bytes(value: float) -> str:
    """Show bytes.

    Examples
    --------
    >>> [shown_bytes(one) for one in (136, 13_600_000, 4.2e9, 1.3e11)]
    ['136 B', '13.6 MB', '4.2 GB', '130 GB']
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"


def shown_time(seconds: float) -> str:
    """Show seconds, minutes or hours.

    Examples
    --------
    >>> [shown_time(one) for one in (0.31, 24.2, 400, 9_000)]
    ['0.31 s', '24 s', '6.7 min', '2.5 h']
    """
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 99 else f"{seconds:.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 7_200 else f"{seconds / 3_600:.2g} h"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure anew first")
    if parser.parse_args().measure:
        replace_file(MEASURED, (json.dumps(measure(), indent=1) + "\n").encode())
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    written = section(json.loads(MEASURED.read_text(encoding="utf-8")))
    replace_file(PAGE, f"{before}{BEGIN}\n{written.strip()}\n\n{END}{after}".encode())


if __name__ == "__main__":
    main()
