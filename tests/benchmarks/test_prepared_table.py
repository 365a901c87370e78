"""The page's table of prepared logs is what the script writes."""

from __future__ import annotations

import json

from benchmarks.scale.cost_model import PAGE
from benchmarks.scale.prepared import BEGIN, END, MEASURED, table


def test_the_table_is_what_the_script_writes():
    written = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert written.strip() == table(json.loads(MEASURED.read_text(encoding="utf-8")))
