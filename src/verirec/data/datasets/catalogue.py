"""Which data sets there are, what they hold, and how one gets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from verirec.data.datasets import coat, kuairec, movielens, yahoo_r3
from verirec.data.datasets.dataset import Dataset, Published


@dataclass(frozen=True)
class Download:
    """An archive that its makers let anyone fetch: where it is, its checksum, and the folder it unpacks to."""

    url: str
    checksum: str
    folder: str


@dataclass(frozen=True)
class DatasetInfo:
    """A data set's entry.

    Parameters
    ----------
    name, title
        What to call it.
    size
        Users, items, and self-selected plus random ratings.
    forms
        The sets of files that can be read, the first that is complete being taken.
    folders
        Where to look for them below the data folder, besides the data folder itself.
    source
        Where to get or to ask for it.
    positive_from
        The label rule of the field: ratings (or watch ratios) of at least this are positive.
    read
        Reads a folder.
    download
        `None` if the makers do not let anyone fetch it, or publish no archive with a known checksum.
    """

    name: str
    title: str
    size: Published
    forms: tuple[tuple[str, ...], ...]
    folders: tuple[str, ...]
    source: str
    positive_from: float
    read: Callable[[Path, float], Dataset]
    download: Download | None = None

    def how_to_get(self, home: Path) -> str:
        """Say how to get the files, and where to put them."""
        by_hand = f"put {' and '.join(self.forms[0])} into {str(home / self.folders[0])!r}"
        if self.download is not None:
            return f"fetch it (verirec datasets fetch {self.name} --data {home}), or {by_hand}; its page: {self.source}"
        return f"{self.source}, then {by_hand}"


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"

CATALOGUE: Final[dict[str, DatasetInfo]] = {
    info.name: info
    for info in (
        DatasetInfo(
            "coat",
            "ratings of coats, self-selected and random",
            coat.SIZE,
            (("train.ascii", "test.ascii"),),
            ("coat",),
            "download it from its makers: https://www.cs.cornell.edu/~schnabts/mnar/",
            3,
            coat.read,
        ),
        DatasetInfo(
            "yahoo-r3",
            "ratings of songs, self-selected and random",
            yahoo_r3.SIZE,
            (yahoo_r3.FILES,),
            ("yahoo-r3", "yahoo_r3", "ydata-ymusic-rating-study-v1_0"),
            "ask Yahoo Webscope for R3 (a signed agreement): https://webscope.sandbox.yahoo.com",
            3,
            yahoo_r3.read,
        ),
        DatasetInfo(
            "kuairec",
            "watch ratios of videos, every pair of a block",
            kuairec.SIZE,
            ((kuairec.PUBLISHED,), (kuairec.BLOCK,)),
            ("kuairec", "kuairec/data", "KuaiRec", "KuaiRec/data", "KuaiRec 2.0/data"),
            "download it from its makers: https://kuairec.com",
            kuairec.POSITIVE_FROM,
            kuairec.read,
        ),
        DatasetInfo(
            "movielens-100k",
            "ratings of films, self-selected",
            movielens.SIZE_100K,
            (("u.data",),),
            ("ml-100k", "movielens-100k"),
            "https://grouplens.org/datasets/movielens/100k/",
            3,
            movielens.read_100k,
            Download(f"{_GROUPLENS}/ml-100k.zip", "md5:0e33842e24a9c977be4e0107933c0723", "ml-100k"),
        ),
        DatasetInfo(
            "movielens-1m",
            "ratings of films, self-selected",
            movielens.SIZE_1M,
            (("ratings.dat",),),
            ("ml-1m", "movielens-1m"),
            "https://grouplens.org/datasets/movielens/1m/",
            3,
            movielens.read_1m,
            Download(f"{_GROUPLENS}/ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906", "ml-1m"),
        ),
    )
}
