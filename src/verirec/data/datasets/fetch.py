"""Downloads with checksums, for the data sets that anyone may fetch."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path

from verirec.data.datasets.catalogue import DatasetInfo, Download
from verirec.exceptions import DownloadError


def fetch_dataset(info: DatasetInfo, home: Path) -> Path:
    """Download a data set's archive, check it, and unpack the files that are read; give their folder.

    Nothing is left behind on failure: the folder appears when it is whole.
    """
    if info.download is None:
        raise DownloadError(f"{info.name} cannot be fetched for you; {info.how_to_get(home)}")
    target = home / info.download.folder
    made = [folder for folder in (target, home, *home.parents) if not folder.exists()]
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".fetching-") as work:
            archive = _retrieve(info.download, Path(work))
            unpacked = _unpack(archive, info.forms[0], Path(work))
            target.mkdir(exist_ok=True)
            for file in unpacked:
                shutil.move(file, target / file.name)
    except BaseException as error:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise DownloadError(f"cannot write to {str(home)!r}: {error.strerror or error}") from None
        raise
    return target


def _retrieve(download: Download, work: Path) -> Path:
    import pooch  # Takes long to import, with all that speaks to a network.

    url, checksum = download.url, download.checksum
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        return Path(pooch.retrieve(url, known_hash=checksum, path=work, fname="archive.zip"))
    except ValueError as error:
        if "hash" in str(error):
            raise DownloadError(f"the checksum of {url} does not match {checksum}; nothing was kept") from None
        raise DownloadError(f"cannot download {url}: {error}") from None
    except Exception as error:  # requests has a class for each way in which a network can fail
        raise DownloadError(f"cannot download {url} ({type(error).__name__}); download and unpack it by hand") from None


def _unpack(archive: Path, files: tuple[str, ...], work: Path) -> list[Path]:
    unpacked = []
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {Path(member).name: member for member in opened.namelist()}
            for file in files:
                if file not in members:
                    raise DownloadError(f"the archive has no {file}; nothing was kept")
                with opened.open(members[file]) as source, (work / file).open("wb") as copy:
                    shutil.copyfileobj(source, copy)
                unpacked.append(work / file)
    except (zipfile.BadZipFile, zlib.error):
        raise DownloadError("the archive is not a readable zip; nothing was kept") from None
    return unpacked
