"""A process that runs the contenders of a case when it is told to: `python -m benchmarks.speed.work CASE`.

It reads names of contenders from its input, a line each, and answers each by a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from benchmarks.speed.case import Case, LeftOut, Run, Taken
from benchmarks.speed.cases import CASES
from benchmarks.speed.watch import Memory, Others, Watch


class Work:
    """The contenders of a case, prepared when they are first asked for."""

    def __init__(self, case: Case) -> None:
        self.case, self.prepared = case, dict[str, Run]()

    def round(self, name: str) -> dict[str, object]:
        """Run a contender once: what it took, or why it cannot be run."""
        try:
            run = self.prepared.get(name) or self.case.contenders[name]()
        except LeftOut as reason:
            return {"left_out": str(reason)}
        except ImportError as error:
            return {"left_out": f"{error.name} is not installed"}
        self.prepared[name] = run
        return measured(run)


def measured(run: Run) -> dict[str, object]:
    """Run it, and say what it took."""
    memory, others, watch = Memory(), Others(), Watch()
    result = run()
    taken = result if isinstance(result, Taken) else watch.taken()
    return {**taken._asdict(), "extra_gb": memory.extra(), "others": others.share()}


def serve(case: Case, ask: Callable[[], str], answer: Callable[[str], object]) -> None:
    """Answer until there are no more questions."""
    work = Work(case)
    while name := ask().strip():
        answer(json.dumps(work.round(name)) + "\n")


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer

    def tell(line: str) -> None:
        answers.write(line)
        answers.flush()

    serve(CASES[sys.argv[1]], sys.stdin.readline, tell)
