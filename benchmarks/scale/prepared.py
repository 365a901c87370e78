"""The table of work on prepared logs in docs/scale.md, from benchmarks/scale/prepared.json.

    python -m benchmarks.scale.prepared

A record is a line that benchmarks/prepared_logs.py printed, with the revision that it was run at, what was wanted (CPU
seconds and bytes) and, where it did not end, a note.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.cost_model import PAGE, shown_bytes

from verirec.atomic_write import replace_file

MEASURED: Final = Path(__file__).parent / "prepared.json"
BEGIN, END = "<!-- written by benchmarks/scale/prepared.py -->\n", "<!-- end of that -->\n"
WORDS: Final = {
    "polars": "polars: sorted once",
    "prepare": "`prepare_log`",
    "estimate": "`estimate`, one recommender",
    "assess": "`assess`, two recommenders",
}


def table(found: list[dict[str, Any]]) -> str:
    """Return the table of what was measured."""
    lines = [
        "| job | rows | users x items | sampled pairs | CPU | most memory | wanted | revision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        sample = f"{one['sample']:,}" if one["job"] in ("estimate", "assess") else ""
        cells = [
            WORDS[one["job"]],
            f"{one['rows']:,}",
            f"{one['users']:,} x {one['items']:,}",
            sample,
            f"{one['cpu']:,.1f} s" + (f" ({one['note']})" if "note" in one else ""),
            shown_bytes(one["megabytes"] * 2**20),
            one.get("wanted", ""),
            one["revision"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    written = table(json.loads(MEASURED.read_text(encoding="utf-8")))
    replace_file(PAGE, f"{before}{BEGIN}\n{written}\n\n{END}{after}".encode())


if __name__ == "__main__":
    main()
