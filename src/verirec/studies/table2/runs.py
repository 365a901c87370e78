"""Running a study: each task is tuned and then run with every seed, tasks in several processes, all of it resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verirec.checks import whole_number
from verirec.engine.base import MOST_WORKERS
from verirec.engine.choice import EngineLike
from verirec.engine.revision import revision
from verirec.studies.processes import in_processes
from verirec.studies.store import STORE, Row, Store, in_turns, key_of
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.plans import Study, Task
from verirec.studies.table2.problems import Problem
from verirec.studies.table2.single import USERS, run_once
from verirec.studies.table2.spaces import BASELINE_FORM, FORMS, space_of
from verirec.studies.table2.tuning import best_of, next_setting, score_of

TUNING_SEED: Final = 0
"""Settings are tried on one seed's flips, and the chosen ones run on all."""
_MEASURED: Final = ("validation", "test", "random", "held_out", "estimates")


@dataclass(frozen=True)
class Results:
    """All runs of a study.

    Parameters
    ----------
    study
        What was asked for.
    trials
        Of each task, in order.
    chosen
        Of each task and what settings are chosen by: its runs, seed by seed.
    """

    study: Study
    trials: dict[Task, list[Row]]
    chosen: dict[tuple[Task, str], list[Row]]


def run_study(
    problem: Problem,
    study: Study,
    folder: str | Path,
    *,
    workers: int = 2,
    engine: EngineLike = "processes",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Results:
    """Run what is missing of a study, and give all of it.

    Runs are kept in `folder/store`. Each task is worked on by one process at a time, its trials one after the other;
    tasks are shared among `workers` processes, and among as many calls of this on the same folder as there are.
    Results do not depend on how many.

    Parameters
    ----------
    progress
        Told how many runs are done, of at most how many: settings that are chosen twice are run once.
    """
    whole_number("workers", workers, max=MOST_WORKERS)
    store = Store(Path(folder) / STORE, is_run)
    tasks = list(study.tasks(has_features=problem.has_features))
    total = sum(_at_most(study, problem, task) for task in tasks)

    def tell(done: int = 0) -> None:
        progress(min(_count(store, _facts(problem, study), set(tasks)), total), total)

    tell()
    open_tasks = [task for task in tasks if not _finished(problem, study, task, store.rows())]
    if open_tasks:
        in_processes(
            _work,
            (problem, study, store.folder.resolve()),
            in_turns(open_tasks),
            workers,
            tell,
            engine=engine,
            kept="finished runs are kept",
        )
    rows = store.rows()
    progress(total, total)
    return Results(
        study,
        {task: _trials(problem, study, task, rows)[0] for task in tasks},
        {(task, choice): runs for task in tasks for choice, runs in _chosen(problem, study, task, rows).items()},
    )


def _at_most(study: Study, problem: Problem, task: Task) -> int:
    trials = study.trials if _space(study, problem, task) else 1
    return trials + len(study.choices if trials > 1 else "1") * (study.seeds - 1)


def _count(store: Store, facts: dict[str, Any], tasks: set[Task]) -> int:
    return sum(row["study"] == facts and Task(row["method"], row["form"]) in tasks for row in store.rows().values())


def _work(shared: tuple[Problem, Study, Path], task: Task, wait: bool) -> None:
    """Do a task in a worker process, unless somebody else is at it; with `wait`, as soon as nobody is."""
    import torch

    torch.set_num_threads(1)
    problem, study, folder = shared
    store = Store(folder, is_run)
    with store.claim(claim_of(problem, study, task), wait=wait) as held:
        if not held:
            return
        rows = store.rows()
        for trial, key, setting, seed in _missing(problem, study, task, rows):
            found = run_once(problem, study, task, setting, seed)
            array = found.pop(USERS, None)
            row = {
                "key": key,
                "study": _facts(problem, study),
                "method": task.method,
                "form": task.form,
                "trial": trial,
                "setting": setting,
                "seed": seed,
                "revision": revision(),
                **found,
            }
            store.append(row, array)
            rows[key] = row


def claim_of(problem: Problem, study: Study, task: Task) -> str:
    """Name what a process holds while it works on a task."""
    return key_of(**_facts(problem, study), task=list(task))


def _missing(
    problem: Problem, study: Study, task: Task, rows: dict[str, Row]
) -> Iterator[tuple[int | None, str, dict[str, Any], int]]:
    """Say what to run next, again and again; `rows` has what was run meanwhile."""
    while True:
        trials, setting = _trials(problem, study, task, rows)
        if setting is None:
            break
        yield len(trials), _key(problem, study, task, setting, TUNING_SEED), setting, TUNING_SEED
    for choice in study.choices:
        chosen = best_of(choice, trials)
        for seed in range(study.seeds):
            key = _key(problem, study, task, chosen["setting"], seed)
            if key not in rows:
                yield None, key, chosen["setting"], seed


def _trials(
    problem: Problem, study: Study, task: Task, rows: dict[str, Row]
) -> tuple[list[Row], dict[str, Any] | None]:
    """Return a task's trials so far, and the setting of the next; `None` if there are enough."""
    space, facts = _space(study, problem, task), _facts(problem, study)
    # Settings follow from those before them, so a trial that is there need not be thought up again.
    there = {
        row["trial"]: row
        for row in rows.values()
        if row["trial"] is not None and (row["method"], row["form"]) == task and row["study"] == facts
    }
    trials: list[Row] = []
    while len(trials) < (study.trials if space else 1):
        found = there.get(len(trials))
        if found is None:
            # Under `honest`, several criteria are compared on the same trials: none of them leads the search.
            leads = study.protocol != "honest"
            past = [(row["setting"], score_of(study.choices[0], row) if leads else 0.0) for row in trials]
            setting = next_setting(space, task, past, at_random=not leads)
            # The same setting may have come up before.
            found = rows.get(_key(problem, study, task, setting, TUNING_SEED))
            if found is None:
                return trials, setting
        trials.append(found)
    return trials, None


def _chosen(problem: Problem, study: Study, task: Task, rows: dict[str, Row]) -> dict[str, list[Row]]:
    trials, _ = _trials(problem, study, task, rows)
    found = {}
    for choice in study.choices:
        setting = best_of(choice, trials)["setting"]
        found[choice] = [rows[_key(problem, study, task, setting, seed)] for seed in range(study.seeds)]
    return found


def _finished(problem: Problem, study: Study, task: Task, rows: dict[str, Row]) -> bool:
    return next(_missing(problem, study, task, rows), None) is None


def _space(study: Study, problem: Problem, task: Task) -> Any:
    names = problem.weights.names
    return space_of(task.method, task.form, small=problem.small, propensities=names, kind=study.space)


def _facts(problem: Problem, study: Study) -> dict[str, Any]:
    """Return what a run depends on besides task, setting and seed."""
    return {
        "checksum": problem.checksum,
        "dataset": study.dataset,
        "protocol": study.protocol,
        "noise": [study.rho01, study.rho10],
        "rates": study.rates,
        "space": [study.space, _spaces_digest(problem, study)],
    }


def _spaces_digest(problem: Problem, study: Study) -> str:
    """Name all spaces of a study: trials of another space are those of another study."""
    every = [Task("constants", BASELINE_FORM), *(Task(method, form) for method in PAPER_METHODS for form in FORMS)]
    return key_of(spaces=sorted(f"{task} {_space(study, problem, task)}" for task in every))


def _key(problem: Problem, study: Study, task: Task, setting: dict[str, Any], seed: int) -> str:
    return key_of(**_facts(problem, study), task=list(task), setting=setting, seed=seed)


def is_run(row: Row) -> bool:
    """Tell whether a line of the store is a whole run of such a study."""
    kinds = {"study": dict, "method": str, "form": str, "setting": dict, "seed": int}
    whole = all(isinstance(row.get(name), kind) for name, kind in kinds.items()) and "trial" in row
    parts = [row[name] for name in _MEASURED if name in row]
    figures = [value for part in parts if isinstance(part, dict) for value in part.values()]
    return whole and all(isinstance(part, dict) for part in parts) and all(isinstance(one, float) for one in figures)
