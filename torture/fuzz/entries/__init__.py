"""All entries, a module a part of the package."""

from __future__ import annotations

from torture.fuzz.calls import Entry
from torture.fuzz.entries import estimates, figures, files, logs, noise, stars, training, verbs

ENTRIES: list[Entry] = [
    one for module in (logs, files, estimates, noise, training, figures, stars, verbs) for one in module.ENTRIES
]
