"""Runs the speed benchmark: `python -m benchmarks.speed`.

Cases that are run take the place of those of the same name in the file, so that groups can be run one after the other.
To measure another revision by the same cases, put its `src` first on PYTHONPATH. implicit is left out where it is not
installed, and so are the real data sets where they are not in $VERIREC_DATA or beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.case import Case
from benchmarks.speed.cases import CASES, GROUPS
from benchmarks.speed.compare import changes, table
from benchmarks.speed.material import FOLDER
from benchmarks.speed.results import Result, Results, result_of, revision
from benchmarks.speed.run import ROOT, Found, run_case
from benchmarks.speed.watch import Watch


def chosen(only: list[str] | None, large: bool) -> list[Case]:
    """Return the cases that are asked for: of these groups or names, the large ones if they are wanted or named."""
    return [
        case
        for case in CASES.values()
        if only is None or case.group in only or case.name in only
        if large or not case.large or case.name in (only or ())
    ]


def results_in(path: Path) -> Results:
    """Return what the file has, if it is of this machine, or nothing yet."""
    here = Results.here()
    if path.exists():
        there = Results.load(path)
        if (there.machine, there.versions) == (here.machine, here.versions):
            return there
        print(f"{path} is of another machine or of other versions: begun anew")
    return here


def line(one: Result, wall: float) -> str:
    """Say what a case found, in a line."""
    figures = ", ".join(f"{name} {one.least(name, 'cpu'):.3g} ({one.least(name, 'wall'):.3g})" for name in one.rounds)
    missing = "".join(f"; without {name}: {reason}" for name, reason in one.left_out.items())
    busy = f"; others used {one.busy:.0%} of the machine" if one.rounds and one.busy >= 0.1 else ""
    return f"{one.name} [{wall:.0f} s]: {figures}{missing}{busy}"


def run_all(cases: list[Case], results: Results, out: Path) -> bool:
    """Run cases and save each at once; tells whether all went well."""
    well, at = True, revision()
    for case in cases:
        watch = Watch()
        try:
            found = run_case(case)
        except RuntimeError as error:
            well, found = False, Found(left_out={"": f"failed: {error}"})
        result = result_of(case, found, at)
        results.add(result)
        results.save(out)
        print(line(result, watch.taken().wall), flush=True)
    return well


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", metavar="CASE", choices=[*GROUPS, *CASES], help="groups, or names of cases"
    )
    parser.add_argument("--large", action="store_true", help="those that take minutes or gigabytes too")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "speed" / "bench.json")
    parser.add_argument("--against", type=Path, help="JSON of another revision to compare with")
    parser.add_argument("--list", action="store_true", help="list all cases, and run none")
    options = parser.parse_args()
    cases = chosen(options.only, options.large)
    if options.list:
        print("\n".join(f"{one.name:<28}{one.title}, {one.size}" for one in cases))
        return
    print("CPU seconds (wall seconds), the least of the rounds")
    results = results_in(options.out)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault(FOLDER, folder)
        well = run_all(cases, results, options.out)
    if options.against:
        print(table(changes(Results.load(options.against), results)))
    sys.exit(not well)


if __name__ == "__main__":
    main()
