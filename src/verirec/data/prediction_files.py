"""Predictions from files: tables of pairs by id, dense matrices, factors."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, path_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.ids import IdMap
from verirec.data.limits import current_limits
from verirec.data.missing_scores import MISSING, fill_missing, rows_or_mean, told_of_lacking
from verirec.data.pair_files import read_scores, warn_of_left_out
from verirec.data.predictions import Factors, PredictionsLike
from verirec.data.roles import ScoreRoles
from verirec.exceptions import (
    ColdStartWarning,
    FileFormatError,
    FileLimitError,
    MemoryBudgetError,
    UnknownIdError,
    warn_caller,
)
from verirec.formatting import short

_PARTS: Final = {
    "user_factors",
    "item_factors",
    "user_constants",
    "item_constants",
    "constant",
    "link",
    "user_ids",
    "item_ids",
}


def read_predictions(
    path: str | Path,
    log: FeedbackLog,
    *,
    user: str | None = None,
    item: str | None = None,
    score: str | None = None,
    missing: Literal["error", "mean"] = "error",
    log_columns: Mapping[str, str | None] | None = None,
) -> PredictionsLike:
    """Read a recommender's predictions for the grid of a log.

    Users and items that the log does not have are left out, with a warning: read the log with `all_users` or
    `all_items` if they are to count.

    Parameters
    ----------
    path
        By its ending: .csv, .tsv, .inter or .parquet, a table with user, item and score by the log's own ids; .npy, a
        dense matrix by position; .npz, factors: arrays user_factors and item_factors and, if you have them,
        user_constants, item_constants, constant and link ("logistic" or "identity"; see `Factors` for none), by
        position or in the order of user_ids and item_ids.
    log
        Whose users and items they are for.
    user, item, score
        The table's columns; left out, `log_columns` and the usual names are tried.
    missing
        What to do about users and items of the log that the file lacks. "error": factors must be of all of them; a
        table may be of some pairs, and is then judged on these. "mean": factors are those of the mean user or item, and
        a pair that a table has no score of gets the mean of its item, or of all; a warning counts them.
    log_columns
        The log's own columns, "user" and "item": taken where the table has columns of these names.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "scores.csv")
    >>> _ = file.write_text("user,item,score\\n0,0,0.9\\n1,1,0.2\\n")
    >>> [part.tolist() for part in read_predictions(file, log)]
    [[0, 1], [0, 1], [0.9, 0.2]]
    >>> folder.cleanup()
    """
    file = path_of("path", path)
    checked_log(log, levels=True)
    one_of("missing", missing, MISSING)
    if file.suffix.lower() in (".npy", ".npz"):
        return _read_arrays(file, log, missing)
    found = read_scores(file, ScoreRoles(user, item, score), log, log_columns)
    return fill_missing(found, log, file.name) if missing == "mean" and isinstance(found, tuple) else found


def _read_arrays(file: Path, log: FeedbackLog, missing: str) -> PredictionsLike:
    if not file.is_file():
        raise FileFormatError(f"no file {short(str(file), max=300)}")
    try:
        # Opened here, so that it is closed whatever is wrong with it.
        with file.open("rb") as opened:
            _check_archive(file)
            loaded = np.load(opened, allow_pickle=False)
            parts = {} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (FileLimitError, MemoryBudgetError):
        raise
    except ValueError as error:
        hint = " (save ids as text: ids.astype(str))" if "allow_pickle" in str(error) else ""
        raise FileFormatError(f"{file.name} is not a readable {file.suffix[1:]} file of numbers{hint}") from None
    except (
        OSError,
        EOFError,
        MemoryError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
        tokenize.TokenError,
        SyntaxError,
    ):
        raise FileFormatError(f"{file.name} is not a readable {file.suffix[1:]} file of numbers") from None
    if isinstance(loaded, np.ndarray):
        return _finite(loaded, file.name)
    unknown = sorted(set(parts) - _PARTS)
    if unknown or not {"user_factors", "item_factors"} <= set(parts):
        raise FileFormatError(
            f"{file.name} must have user_factors and item_factors, and otherwise only {', '.join(sorted(_PARTS))}; "
            f"got {', '.join(sorted(parts))}"
        )
    return _factors(parts, log, file.name, missing)


def _check_archive(file: Path) -> None:
    """Refuse an archive that unpacks to far more than it takes, or than there is memory for."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        limits = current_limits()
        limits.check_expansion(file, file.stat().st_size, unpacked)
        limits.check_memory(file, unpacked, f"has {len(members):,} arrays")


def _finite(matrix: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Refuse a matrix that is not one of numbers."""
    if matrix.dtype.kind not in "fiub":
        raise FileFormatError(f"{name} must be a matrix of numbers; got {matrix.dtype}")
    if not np.isfinite(matrix).all():
        raise FileFormatError(f"{name} has {int((~np.isfinite(matrix)).sum()):,} scores that are not finite")
    return matrix


def _factors(parts: dict[str, npt.NDArray[Any]], log: FeedbackLog, name: str, missing: str) -> Factors:
    """Line factors up with a log's positions, and take single values out of their arrays."""
    for side, catalogue in (("user", log.user_ids), ("item", log.item_ids)):
        ids = parts.pop(f"{side}_ids", None)
        if ids is not None:
            order = _order(ids, catalogue, side, name, missing)
            for part in (f"{side}_factors", f"{side}_constants"):
                if part in parts:
                    if parts[part].ndim == 0 or len(parts[part]) != len(ids):
                        raise FileFormatError(f"{name}: {part} must have a row for each of the {len(ids):,} {side}_ids")
                    parts[part] = rows_or_mean(parts[part], order) if (order < 0).any() else parts[part][order]
    options: dict[str, Any] = {"link": None} | parts
    for part in ("constant", "link"):
        if part in parts:
            if parts[part].ndim != 0:
                raise FileFormatError(f"{name}: {part} must be a single value; got shape {parts[part].shape}")
            options[part] = parts[part].item()
    return Factors(**options)


def _order(ids: npt.NDArray[Any], catalogue: IdMap, side: str, name: str, missing: str) -> npt.NDArray[np.int32]:
    """Return where in the ids of a file each of a log's is, -1 for those that it lacks; others are left out."""
    own = IdMap.in_order(ids, name=f"{side}_ids")
    unknown = np.flatnonzero(catalogue.find(own.arrow(), name=f"{name}: {side}_ids") < 0)
    order = own.find(catalogue.arrow(), name=f"the log's {side} ids")
    lacking = np.flatnonzero(order < 0)
    if lacking.size:
        told = told_of_lacking(catalogue, lacking, side)
        if missing == "error" or lacking.size == len(catalogue):
            hint = f"; missing='mean' scores them as its mean {side}" if lacking.size < len(catalogue) else ""
            raise UnknownIdError(f"{name}: {side}_ids lack {told}{hint}")
        warn_caller(f"{name}: {side}_ids lack {told}: they are scored as its mean {side}", ColdStartWarning)
    if unknown.size:
        warn_of_left_out(f"{name}: factors", {side: (unknown.size, own.arrow(unknown[:3]).to_pylist())})
    return order
