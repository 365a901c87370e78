"""Finding and loading a data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pooch

from verirec.checks import one_of, real_number
from verirec.data.datasets.catalogue import CATALOGUE, DatasetInfo
from verirec.data.datasets.dataset import Dataset
from verirec.data.datasets.fetch import fetch_dataset
from verirec.exceptions import DatasetNotFoundError

HOME_VARIABLE: Final = "VERIREC_DATA"


def data_home_folder(data_home: str | Path | None = None) -> Path:
    """Settle the folder that holds the data sets: the argument, $VERIREC_DATA, or the user's cache."""
    if data_home is not None:
        return Path(data_home).expanduser()
    named = os.environ.get(HOME_VARIABLE)
    return Path(named).expanduser() if named else Path(pooch.os_cache("verirec"))


def find_dataset(info: DatasetInfo, home: Path) -> Path | None:
    """Give the folder that has a whole form of the data set, or `None`."""
    for folder in (*(home / name for name in info.folders), home):
        if any(all((folder / file).is_file() for file in form) for form in info.forms):
            return folder
    return None


def load_dataset(
    name: str, *, data_home: str | Path | None = None, positive_from: float | None = None, download: bool = False
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name
        coat, yahoo-r3, kuairec, movielens-100k or movielens-1m.
    data_home
        The folder that holds them, each in a folder of its own or directly; by default $VERIREC_DATA, or the user's
        cache.
    positive_from
        The label rule; by default the field's (`verirec datasets` shows it).
    download
        Fetch it if it is not there and its makers let anyone do so.

    Examples
    --------
    >>> load_dataset("coat", data_home="nowhere")
    Traceback (most recent call last):
    verirec.exceptions.DatasetNotFoundError: no data folder 'nowhere'
    """
    info = CATALOGUE[one_of("name", name, CATALOGUE)]
    rule = info.positive_from if positive_from is None else real_number("positive_from", positive_from)
    home = data_home_folder(data_home)
    if data_home is not None and not download and not home.is_dir():
        raise DatasetNotFoundError(f"no data folder {str(home)!r}")
    folder = find_dataset(info, home)
    if folder is None and download:
        folder = fetch_dataset(info, home)
    if folder is None:
        raise DatasetNotFoundError(_how_to_get(info, home))
    return info.read(folder, rule)


def _how_to_get(info: DatasetInfo, home: Path) -> str:
    files = " or ".join(" and ".join(form) for form in info.forms)
    missing = f"{info.name} is not in {str(home)!r}: no {files} there or in its folder {info.folders[0]}/"
    if info.download is not None:
        return f"{missing}; fetch it: verirec datasets fetch {info.name}"
    return f"{missing}; {info.source}, then put the files into {str(home / info.folders[0])!r}"
