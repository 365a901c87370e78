"""Finding and loading a data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from verirec.checks import one_of, real_number, truth_value
from verirec.data.datasets.catalogue import CATALOGUE, DatasetInfo
from verirec.data.datasets.dataset import Dataset
from verirec.data.datasets.fetch import fetch_dataset
from verirec.exceptions import DatasetNotFoundError, FileFormatError, ParameterError
from verirec.formatting import short
from verirec.user_cache import cache_folder

HOME_VARIABLE: Final = "VERIREC_DATA"


def data_home_folder(data_home: str | Path | None = None) -> Path:
    """Settle the folder that holds the data sets: the argument, $VERIREC_DATA, or the user's cache."""
    named = data_home if data_home is not None else os.environ.get(HOME_VARIABLE) or cache_folder()
    if named is None:
        raise DatasetNotFoundError(f"no data folder: there is no home folder, and ${HOME_VARIABLE} is not set")
    if not isinstance(named, str | Path):
        raise ParameterError(f"data_home must be a string or a Path; got {short(named)}")
    try:
        return Path(named).expanduser()
    except RuntimeError:
        raise DatasetNotFoundError(f"no data folder {short(str(named), max=300)}: there is no such user") from None


def existing_home(data_home: str | Path | None = None) -> Path:
    """Settle the data folder, and refuse one that somebody named and that is not there."""
    home = data_home_folder(data_home)
    named = data_home is not None or bool(os.environ.get(HOME_VARIABLE))
    try:
        there = home.is_dir()
    except OSError:
        there = False
    if named and not there:
        raise DatasetNotFoundError(f"no data folder {short(str(home), max=300)}")
    return home


def find_dataset(info: DatasetInfo, home: Path) -> Path | None:
    """Return the folder that has a whole form of the data set, or `None`."""
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
        The label rule; by default the field's (`verirec datasets --json` shows it).
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
    home = data_home_folder(data_home) if truth_value("download", download) else existing_home(data_home)
    folder = find_dataset(info, home)
    if folder is None and download:
        folder = fetch_dataset(info, home)
    if folder is None:
        raise DatasetNotFoundError(f"{info.name} is not in {str(home)!r}; {info.how_to_get(home)}")
    try:
        return info.read(folder, rule)
    except OSError as error:
        raise FileFormatError(f"{info.name} cannot be read: {error.strerror or error} ({error.filename})") from None
