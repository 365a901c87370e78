"""Ids from a text file."""

from __future__ import annotations

from pathlib import Path

from verirec.exceptions import EmptyLogError, FileFormatError
from verirec.formatting import short


def read_id_file(file: Path) -> list[str]:
    """Read a UTF-8 text file with one id a line; empty lines do not count.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "users.txt").write_text("ann\\n007\\n")
    ...     read_id_file(Path(folder, "users.txt"))
    ['ann', '007']
    """
    if not file.is_file():
        raise FileFormatError(f"no file {short(str(file), max=300)}")
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file.name} is not a readable text file: {' '.join(str(error).split())}") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise EmptyLogError(f"{file.name} is empty: it must have at least one id")
    return ids
