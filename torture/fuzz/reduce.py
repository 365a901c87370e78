"""A smaller call with the same defect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torture.fuzz.calls import Call
from torture.fuzz.judge import Outcome, judged

MOST_TRIES = 120
SECONDS = 5.0


def reduced(call: Call, outcome: Outcome) -> Call:
    """Leave out arguments and simplify those that stay, as long as the defect is the same."""
    tries, smaller = MOST_TRIES, True
    while smaller and tries > 0:
        smaller = False
        for candidate in _simpler(call):
            tries -= 1
            if tries <= 0:
                break
            if _same(judged(candidate, SECONDS), outcome):
                call, smaller = candidate, True
                break
    return call


def _same(found: Outcome, wanted: Outcome) -> bool:
    return found.kind == "defect" and sort_of(found.detail) == sort_of(wanted.detail)


def sort_of(detail: str) -> str:
    """Return a defect without its figures: the kind of error and where it came from."""
    return re.sub(r"\d+", "0", detail.split(":")[0] + detail[detail.rfind("(") :])


def _simpler(call: Call) -> Iterator[Call]:
    """Yield calls with an argument less, or with a simpler one."""
    for name in call.arguments:
        yield call.without(name)
    for name, text in call.setting.items():
        for simple in _simpler_texts(text):
            yield call.with_setting(name, simple)
    for name, text in call.arguments.items():
        for simple in _simpler_texts(text):
            yield call.with_argument(name, simple)


def _simpler_texts(text: str) -> Iterator[str]:
    """Yield simpler expressions: the plain log, bytes by halves, numbers that are smaller."""
    if text.startswith("log_of(") and text != "log_of()":
        yield "log_of()"
        for part in re.findall(r", '[a-z_ ]+'|, ids='[a-z]+'", text):
            yield text.replace(part, "", 1)
    for literal in (node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Constant)):
        spelt, raw = ast.get_source_segment(text, literal), literal.value
        if spelt and isinstance(raw, bytes):
            lines = raw.splitlines(keepends=True)
            parts = lines if len(lines) > 2 else [bytes([one]) for one in raw[:40]]
            for place in range(len(parts)):
                yield text.replace(spelt, repr(b"".join(parts[:place] + parts[place + 1 :])), 1)
