"""Writing results so that they are whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from verirec.exceptions import ParameterError


def write_report(folder: str | Path, page: str, summary: dict[str, Any]) -> Path:
    """Write `report.html` and `summary.json` into a folder, made if need be; give the page's path.

    Both are written beside their place first and then renamed, so that a failure leaves what was there before.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(folder, "<p>hello</p>", {"truth": None}).name
    'report.html'
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        _replace(target / "summary.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
        _replace(target / "report.html", page)
    except OSError as error:
        raise ParameterError(f"cannot write to {str(target)!r}: {error.strerror or error}") from None
    return target / "report.html"


def _replace(file: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
        # mkstemp makes files for their owner alone; a report is for others too.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
