"""KuaiRec (Gao et al. 2022): 1,411 people who were shown 3,327 videos, all of them."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.datasets.dataset import Dataset, Published, expect_rows
from verirec.data.feedback_log import FeedbackLog
from verirec.data.files import read_log
from verirec.data.text_files import read_delimited
from verirec.exceptions import FileFormatError, LabelRuleWarning, warn_caller

SIZE: Final = Published(1_411, 3_327, 4_676_570)
PUBLISHED: Final = "small_matrix.csv"
BLOCK: Final = "kuairec_small_binary_gt2.npz"
SAMPLE: Final = "random.txt"
POSITIVE_FROM: Final = 1.0
"""The paper's rule: watched to the end."""


def read(folder: Path, positive_from: float) -> Dataset:
    """Read the published matrix, or the complete binary block with a sample of its watch ratios.

    `small_matrix.csv` as published: `test` is all of it, a watch ratio of at least `positive_from` being positive.
    The block (`kuairec_small_binary_gt2.npz`, 1 where the ratio is above 2) becomes `complete`, and `random.txt`
    beside it (user, video, watch ratio) becomes `test`. Either way nothing here is self-selected: `train` is `None`,
    and selection is simulated on top, with `verirec.simulate.on_matrix`.
    """
    if (folder / PUBLISHED).is_file():
        log = read_log(
            folder / PUBLISHED, user="user_id", item="video_id", rating="watch_ratio", positive_from=positive_from
        )
        expect_rows(PUBLISHED, len(log), SIZE.ratings)
        return Dataset("kuairec", test=log)
    complete, users, videos = _block(folder / BLOCK)
    if positive_from != POSITIVE_FROM:
        warn_caller(
            f"positive_from={positive_from:g} holds for the ratios of {SAMPLE}; the complete block has labels only, "
            "1 where the watch ratio is above 2, and keeps them",
            LabelRuleWarning,
        )
    sample = folder / SAMPLE
    test = _sample(sample, users, videos, positive_from) if sample.is_file() else None
    return Dataset("kuairec", test=test, complete=complete)


def _block(file: Path) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any]]:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            packed, users, videos = archive["Y"], archive["user_id"], archive["video_id"]
        bits = np.unpackbits(packed, axis=1)[:, : videos.size]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(f"{file.name} is truncated or malformed: {' '.join(str(error).split())}") from None
    for name, ids in (("user_id", users), ("video_id", videos)):
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(np.unique(ids)) < len(ids):
            raise FileFormatError(f"{file.name} must have distinct integers as {name}; got {ids.dtype} of {ids.shape}")
    if bits.shape != (len(users), len(videos)) or packed.shape[1] != -(-len(videos) // 8):
        raise FileFormatError(f"{file.name} must have {len(users)} rows of {len(videos)} bits; got {packed.shape}")
    # Positions follow the sorted ids, here as in every log.
    by_user, by_video = np.argsort(users), np.argsort(videos)
    return bits[np.ix_(by_user, by_video)].astype(np.int8), users[by_user], videos[by_video]


def _sample(file: Path, users: npt.NDArray[Any], videos: npt.NDArray[Any], positive_from: float) -> FeedbackLog:
    return FeedbackLog.from_frame(
        read_delimited(file, ",", ("user", "video", "watch_ratio")),
        user="user",
        item="video",
        rating="watch_ratio",
        positive_from=positive_from,
        all_users=users,
        all_items=videos,
    )
