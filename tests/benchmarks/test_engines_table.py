"""The page's table of both engines is what the script writes."""

from __future__ import annotations

from benchmarks.scale.engines import BEGIN, END, PAGE, table, written


def test_the_table_is_what_the_script_writes():
    found = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert found.strip() == table(written()).strip()
