"""Which code this is."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path


@functools.cache
def revision() -> str:
    """Return the code's revision: the version, and a digest of the package's own files."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    # The package itself is above this layer, and there whenever this is.
    return f"{sys.modules['verirec'].__version__}+{digest.hexdigest()[:10]}"
