"""How much memory some work has at once."""

from __future__ import annotations

import tracemalloc


def held(work):
    """Return the most bytes that some work had at once, its own long arrays on disk not counted."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
