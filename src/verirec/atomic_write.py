"""Files that are whole or not there: written beside their place first, and then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_LONGEST: Final = 200
"""Bytes of a file's name that its temporary one repeats: file systems end at 255."""


def replace_file(file: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file in one go, of one part or one part after the other; a failure leaves all as it was before.

    A link is followed, so that it stays one, and a file that is there keeps its permissions; a new one has those that
    the umask leaves. What is neither a file nor a link to one, such as a device, is an `OSError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "a.txt"), b"hello")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'hello')]
    """
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        raise OSError(f"{str(file)!r} is not a regular file")
    temporary = place.with_name(temporary_prefix(place.name) + secrets.token_hex(8))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.writelines([content] if isinstance(content, bytes) else content)
            opened.flush()
            os.fsync(opened.fileno())
        if place.exists():
            temporary.chmod(place.stat().st_mode & 0o7777)
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    settle_folder(place.parent)


def replace_together(contents: dict[Path, bytes]) -> None:
    """Write files that speak of one run, each in one go; a failure leaves all of them as they were before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_together({Path(folder, name): name.encode() for name in ("a.txt", "b.txt")})
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['a.txt', 'b.txt']
    """
    # What is no regular file is refused below, and could be read for ever.
    before = {file: file.read_bytes() if file.is_file() else None for file in contents}
    try:
        for file, content in contents.items():
            replace_file(file, content)
    except BaseException:
        for file, earlier in before.items():
            _restore(file, earlier)
        raise


def _restore(file: Path, content: bytes | None) -> None:
    """Bring a file back to what it was, if it changed."""
    if content is None:
        if file.is_file():
            file.unlink()
    elif file.read_bytes() != content:
        replace_file(file, content)


def temporary_prefix(name: str) -> str:
    """Return how the temporary files of a file begin: what a killed process leaves can be told by it.

    Examples
    --------
    >>> temporary_prefix("a.txt")
    '.a.txt-'
    """
    return f".{os.fsdecode(os.fsencode(name)[:_LONGEST])}-"


def settle_files(folder: Path) -> None:
    """Have the files of a folder, and their names, reach the disk: then it can be renamed to what says it is whole."""
    for file in folder.iterdir():
        with file.open("r+b") as opened:
            os.fsync(opened.fileno())
    settle_folder(folder)


def settle_folder(folder: Path) -> None:
    """Have a rename reach the disk, where a folder can be opened for that: the new file is there either way."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
