"""Files that are whole or not there: written beside their place first, and then renamed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file in one go; a failure leaves what was there before, and nothing beside it.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "a.txt"), b"hello")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'hello')]
    """
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        # mkstemp makes files for their owner alone; results are for others too.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
