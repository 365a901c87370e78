"""One run of atheris over the readers: `python -m torture.guided.work SECONDS SEED CORPUS`; needs atheris.

The first byte of an input says which reader gets the rest. What is neither a result nor one of verirec's errors in one line ends
the run, and atheris keeps the input.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["verirec.data"]):
    import verirec as vr
    from verirec.data import files, id_files, prediction_files  # noqa: F401

HOME = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
ROWS = b"user,item,rating\n" + b"".join(b"u%d,i%d,%d\n" % (row % 4, row // 4, row % 2) for row in range(12))


def _file(name: str, content: bytes) -> Path:
    file = HOME / name
    file.write_bytes(content)
    return file


LOG = vr.read_log(_file("log.csv", ROWS))


def _log(name: str, **options: Any) -> Callable[[bytes], Any]:
    return lambda content: vr.read_log(_file(name, content), **options)


def _scores(name: str) -> Callable[[bytes], Any]:
    return lambda content: vr.read_predictions(_file(name, content), LOG)


READERS: tuple[Callable[[bytes], Any], ...] = (
    _log("a.csv"),
    _log("a.tsv"),
    _log("a.inter"),
    _log("a.csv", drop_missing=True, clean_ids=True),
    _log("a.csv", encoding="utf-16"),
    _log("a.parquet"),
    lambda content: vr.read_log(_file("a.csv.gz", gzip.compress(content, 1))),
    _log("a.csv.gz"),
    _scores("s.csv"),
    _scores("s.npy"),
    _scores("s.npz"),
    lambda content: vr.read_log(HOME / "log.csv", user_features=_file("f.csv", content)),
    lambda content: vr.read_log(HOME / "log.csv", all_users=_file("u.txt", content)),
    lambda content: vr.SurveySample.from_file(_file("t.csv", content), LOG),
)


def one_input(content: bytes) -> None:
    """Give bytes to a reader."""
    if not content:
        return
    try:
        READERS[content[0] % len(READERS)](content[1:])
    except vr.exceptions.VerirecError as error:
        if "\n" in str(error) or not str(error):
            raise RuntimeError(f"not one line: {str(error)[:200]!r}") from None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    seconds, seed, corpus = sys.argv[1:4]
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        "-rss_limit_mb=6000",
        "-timeout=60",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}/", corpus], one_input)
    atheris.Fuzz()
