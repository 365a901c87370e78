"""Verbs that write, each on a log so small that a run takes a blink."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROWS = "user,item,rating\n" + "".join(f"u{row % 9},i{row // 9},{row * 7 % 5 % 2}\n" for row in range(99))
MORE = "user,item,rating\n" + "".join(f"v{row % 5},i{row // 5},{row % 3 % 2}\n" for row in range(40))
SCORES = "user,item,score\n" + "".join(f"u{row % 9},i{row // 9},0.{row % 8 + 1}\n" for row in range(99))


@dataclass(frozen=True)
class Job:
    """A verb that writes.

    Parameters
    ----------
    name
        For the tables.
    words
        The command line; OUT is the place that it writes to.
    other
        Words that, added, make another output: the earlier one, which a run is to replace.
    again
        Words that, added, let it replace an output; `None` where it never does.
    resumes
        Whether it takes `--resume`.
    rest
        A module and its function that does what is left once an output is there that says so; stopped there, a verb
        has left something whole.
    """

    name: str
    words: tuple[str, ...]
    other: tuple[str, ...] = ("--seed", "7")
    again: tuple[str, ...] | None = ()
    resumes: bool = False
    rest: tuple[str, str] | None = None


JOBS = (
    Job("train", ("train", "log.csv", "--method", "mf", "--set", "dim=2", "--set", "epochs=6", "--set", "solver=gradient",
                  "--set", "validation=0", "--out", "OUT"), again=("--force",), resumes=True),
    Job("plan", ("plan", "log.csv", "--predictions", "a=scores.csv", "--budget", "12", "--out", "OUT/plan.csv")),
    Job("recommend", ("recommend", "model", "--all-users", "--out", "OUT/list.csv"), other=("-k", "2")),
    Job("recommend json", ("recommend", "model", "--all-users", "--out", "OUT/list.json"), other=("-k", "2")),
    Job("split", ("split", "log.csv", "--train", "OUT/train.csv", "--test", "OUT/test.parquet")),
    Job("assess", ("assess", "log.csv", "--predictions", "a=scores.csv", "--out", "OUT"), other=("--confidence", ".9"),
        rest=("verirec.assessment.run", "_completed")),
    Job("tune", ("tune", "log.csv", "--method", "mf", "--trials", "2", "--folds", "2", "--set", "dim=1", "--set", "epochs=2", "--set", "validation=0",
                 "--out", "OUT"), again=("--force",), resumes=True),
    Job("prepare", ("prepare", "log.csv", "more.csv", "--out", "OUT/log"), other=(), again=None),
)  # fmt: skip


TRAIN = ["train", "log.csv", "--method", "mf", "--set", "dim=2", "--set", "epochs=2", "--out", "model"]


def write_inputs(home: Path) -> None:
    """Write what the verbs read, but for a model."""
    (home / "log.csv").write_text(ROWS)
    (home / "more.csv").write_text(MORE)
    (home / "scores.csv").write_text(SCORES)


def prepare(home: Path) -> None:
    """Write what the verbs read."""
    write_inputs(home)
    code, said = run_verb(TRAIN, home)
    if code:
        raise RuntimeError(said)


def run_verb(words: list[str], home: Path) -> tuple[int, str]:
    """Run a verb in this process, in a folder; give the exit code and what it said on stderr."""
    from verirec.cli import main as command_line

    os.chdir(home)
    before, sys.argv = sys.argv, ["verirec", *words]
    said = io.StringIO()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            command_line.main()
        return 0, said.getvalue()
    except SystemExit as ended:
        return int(ended.code or 0), said.getvalue()
    finally:
        sys.argv = before


def words_of(job: Job, out: Path, *more: str) -> list[str]:
    """Return the words, with the place to write to."""
    return [word.replace("OUT", str(out)) for word in job.words] + [*more]


def contents(out: Path) -> dict[str, str]:
    """Return what a place holds, by checksums; temporary files and checkpoints are no outputs."""
    return {
        str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(out.rglob("*"))
        if file.is_file() and not any(part.startswith((".", "checkpoint")) for part in file.relative_to(out).parts)
    }


def in_child(work: Callable[[], int], *, started: Callable[[int], None] = lambda process: None) -> int:
    """Do something in a fork of this warm process; give its exit code, negative for a signal."""
    process = os.fork()
    if process == 0:
        code = 70
        try:
            code = work()
        except KeyboardInterrupt:
            code = 130  # Before the verb began, or after its end.
        except BaseException as error:
            os.write(2, f"torture: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    started(process)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
