"""Small file systems, where they can be mounted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = 4_096


@contextmanager
def small_disk(home: Path, size: int) -> Iterator[str]:
    """Mount a file system of so many bytes as `disk` in a folder; yields why that is not possible, or nothing."""
    place = home / "disk"
    place.mkdir(exist_ok=True)
    refused = _mount(place, f"size={size}")
    try:
        yield refused
    finally:
        if not refused:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def remount(home: Path, size: int) -> None:
    """Make it larger, with all that is on it."""
    refused = _mount(home / "disk", f"remount,size={size}")
    if refused:
        raise OSError(refused)


def _mount(place: Path, options: str) -> str:
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
        )
    except OSError as error:
        return f"no mount: {error.strerror}"
    return (
        "" if done.returncode == 0 else f"mount is not permitted: {done.stderr.decode(errors='replace').strip()[:100]}"
    )
