"""Writing results so that they are whole or not there."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from verirec.atomic_write import replace_file, replace_together
from verirec.exceptions import ParameterError
from verirec.sole_writer import check_writable, named_place


def write_report(folder: str | Path, page: str, summary: dict[str, Any]) -> Path:
    """Write `report.html` and `summary.json` into a folder, made if need be; give the page's path.

    Each is written beside its place first and then renamed, and a failure leaves both as they were before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(folder, "<p>hello</p>", {"truth": None}).name
    'report.html'
    """
    summary_text = json.dumps(summary, indent=2, allow_nan=False) + "\n"
    texts = {"summary.json": summary_text, "report.html": page}
    contents = {name: text.encode(errors="backslashreplace") for name, text in texts.items()}
    return write_together(folder, contents) / "report.html"


def write_together(folder: str | Path, contents: dict[str, bytes]) -> Path:
    """Write files by name into a folder, made if need be, all or none; return the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in write_together(folder, {"b.txt": b"", "a.txt": b""}).iterdir())
    ['a.txt', 'b.txt']
    """
    target = named_place(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        replace_together({target / name: content for name, content in contents.items()})
    except OSError as error:
        raise ParameterError(f"cannot write to {str(target)!r}: {error.strerror or error}") from None
    return target


def check_writable_file(path: str | Path) -> None:
    """Raise `ParameterError` at once where a file could not be written in the end."""
    target = named_place(path)
    if target.is_dir():
        raise ParameterError(f"cannot write {str(target)!r}: it is a folder; name a file")
    if target.exists() and not target.is_file():
        raise ParameterError(f"cannot write {str(target)!r}: it is not a regular file")
    check_writable(target.parent)


FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet takes for the start of a formula."""
ESCAPED_STARTS: Final = (*FORMULA_STARTS, "'")
"""What gets an apostrophe in front, the apostrophe itself too, so that the file can be read back."""


def write_table(path: str | Path, frame: Any) -> None:
    """Write a frame as a CSV file, whole or not at all; text that a spreadsheet would run gets an apostrophe in front.

    Its folder is made if need be.

    Examples
    --------
    >>> import pandas as pd
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder, "a.csv"), pd.DataFrame({"user": ["=1+1", "ann"]}))
    ...     Path(folder, "a.csv").read_text().split()
    ['user', "'=1+1", 'ann']
    """
    write_file(path, table_content(frame))


def table_content(frame: Any) -> bytes:
    """Return what `write_table` writes: names of columns that a spreadsheet would run get their apostrophe too.

    Examples
    --------
    >>> import pandas as pd
    >>> table_content(pd.DataFrame({"=1+1": ["@a"]})).split()
    [b"'=1+1", b"'@a"]
    """
    shown = frame.map(_escaped).rename(columns=_escaped)
    return bytes(shown.to_csv(index=False, quoting=_quoting(shown)).encode())


def _escaped(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(ESCAPED_STARTS) else value


TABLE_ENDINGS: Final = (".csv", ".parquet", ".json")


def table_ending(path: str | Path) -> str:
    """Return the ending that says how a table is written; others are a `ParameterError`."""
    ending = Path(path).suffix.lower()
    if ending not in TABLE_ENDINGS:
        raise ParameterError(f"a table must end in .csv, .parquet or .json; got {Path(path).name!r}")
    return ending


def write_frame(path: str | Path, frame: Any) -> None:
    """Write a frame by its file's ending: .csv, .parquet, or .json (a list with one object a row).

    Examples
    --------
    >>> import pandas as pd
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_frame(Path(folder, "a.json"), pd.DataFrame({"user": ["ann"], "rank": [1]}))
    ...     json.loads(Path(folder, "a.json").read_text())
    [{'user': 'ann', 'rank': 1}]
    """
    ending = table_ending(path)
    if ending == ".csv":
        write_table(path, frame)
    elif ending == ".parquet":
        write_file(path, frame.to_parquet(None, index=False))
    else:
        write_file(path, (json.dumps(rows_of_frame(frame), indent=1, ensure_ascii=False) + "\n").encode())


def rows_of_frame(frame: Any) -> list[dict[str, Any]]:
    """Return a frame's rows as JSON has them, one object a row.

    Examples
    --------
    >>> import pandas as pd
    >>> rows_of_frame(pd.DataFrame({"user": ["ann"], "rank": [1]}))
    [{'user': 'ann', 'rank': 1}]
    """
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.astype(object).to_numpy().tolist()]


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file, whole or not at all; its folder is made if need be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "a.txt"), b"hello")
    ...     Path(folder, "a.txt").read_text()
    'hello'
    """
    with _refusing(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        replace_file(Path(path), content)


def write_files(contents: dict[Path, bytes]) -> None:
    """Write files that belong together, all or none; their folders are made if need be."""
    with _refusing(*contents):
        for file in contents:
            file.parent.mkdir(parents=True, exist_ok=True)
        replace_together(contents)


@contextmanager
def _refusing(*files: str | Path) -> Iterator[None]:
    """Say in one line that files cannot be written."""
    try:
        yield
    except OSError as error:
        named = " and ".join(repr(str(file)) for file in files)
        raise ParameterError(f"cannot write {named}: {error.strerror or error}") from None


def _quoting(frame: Any) -> Any:
    """Quote all text where some has a carriage return: pandas would leave that bare, and it ends a line."""
    returns = frame.map(lambda value: isinstance(value, str) and "\r" in value)
    return csv.QUOTE_NONNUMERIC if returns.to_numpy().any() else csv.QUOTE_MINIMAL
