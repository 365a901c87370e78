"""A log that comes on standard input."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def at_hand(file: Path) -> Iterator[Path]:
    """Yield a file; for "-", one that holds what comes on standard input, CSV or Parquet, for as long as it is read."""
    if str(file) != "-":
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "standard input.csv")
        with kept.open("wb") as opened:
            shutil.copyfileobj(sys.stdin.buffer, opened)
        with kept.open("rb") as opened:
            is_parquet = opened.read(4) == b"PAR1"
        yield kept.rename(kept.with_suffix(".parquet")) if is_parquet else kept
