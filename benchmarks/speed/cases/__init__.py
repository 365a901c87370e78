"""All cases, a module a group. None of these modules imports what it times before a contender is prepared."""

from __future__ import annotations

from benchmarks.speed.case import Case
from benchmarks.speed.cases import (
    estimates,
    growth,
    metrics,
    planning,
    reading,
    start,
    sweeps,
    top_lists,
    training,
)

CASES: dict[str, Case] = {
    case.name: case
    for module in (start, reading, metrics, planning, estimates, sweeps, training, top_lists, growth)
    for case in module.CASES
}
GROUPS = list(dict.fromkeys(case.group for case in CASES.values()))
