"""Prepare a log on disk, out of core: whatever its length, in the memory that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np

from verirec.checks import byte_count, path_of
from verirec.data.gate import ROW_COLUMNS, refuse_useless
from verirec.data.prepared.columns_file import GROUP_ROWS, read_columns_file
from verirec.data.prepared.intake import Intake
from verirec.data.prepared.settings import VERSION, Settings, file_identity, key_of, state_of
from verirec.data.prepared.sources import Sources, found_files
from verirec.data.prepared.steps import Facts, Steps
from verirec.data.prepared.told import settle_repeats, warn_of_all
from verirec.data.prepared.workplace import Workplace, refuse_lack_of_room, refuse_taken, sole_preparer
from verirec.data.tables import FIELD_OF_ROLE, LogOptions, given_catalogues
from verirec.data.text_form import TextForm
from verirec.exceptions import ReusedWorkWarning, warn_caller
from verirec.open_files import many_files
from verirec.scratch import DEFAULT_MEMORY, limit_memory

_BYTES_A_ROW: Final = 400
"""Of memory, while a row is read, sorted and written; many columns are within it."""
_LEAST_ROWS, _MOST_ROWS = 1 << 16, 1 << 22
_KEPT_TIMES: Final = 3
"""A row is in a run, in a range of users and in the log."""


def prepare_log(
    paths: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    memory: int | str = DEFAULT_MEMORY,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
    **options: Unpack[LogOptions],
) -> Path:
    """Prepare a log on disk of files of ratings, which need not fit into memory.

    The log is a folder of Arrow files: `by_user.arrow`, the rows sorted by user and item, `by_item.arrow`, the same
    by item and user, `users.arrow` and `items.arrow`, the ids in order, and `log.json`, which has the counts, the
    settings and checksums of each million rows. `scan_log` opens it by memory map. What a row becomes, and what is
    refused, is as in `read_log`: the same rows give the same log.

    The work is done in parts that stay, in a hidden folder beside `out`, until all is done: after a stop or a crash,
    the same call goes on where it was. A second process that would write to `out` meanwhile is refused.

    Parameters
    ----------
    paths
        A file, a pattern such as "ratings/*.parquet", or several; all with one ending, the same columns and types.
        Rows count in the order of the files, and those of a pattern are sorted by name.
    out
        The folder to write, which must not be there.
    memory
        Bytes that the work may take, such as "2GB".
    delimiter, columns, encoding, options
        As in `read_log`.

    Returns
    -------
    The folder.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in (("a", "1,10,4\\n2,10,1\\n"), ("b", "1,11,5\\n")):
    ...         _ = pathlib.Path(folder, f"{name}.csv").write_text("user,item,rating\\n" + rows)
    ...     prepared = prepare_log(f"{folder}/*.csv", f"{folder}/log", positive_from=3)
    ...     sorted(file.name for file in prepared.iterdir())
    ['by_item.arrow', 'by_user.arrow', 'items.arrow', 'log.json', 'users.arrow']
    """
    settings = Settings.of(dict(options), function="prepare_log")
    form = TextForm(delimiter, columns, encoding, skip_broken=settings.cleaning.drop_missing)
    place, budget = path_of("out", out), byte_count("memory", memory)
    with sole_preparer(place):
        refuse_taken(place)
        prepare_held(found_files(paths), place, settings, form, budget)
    return place


@many_files()
def prepare_held(files: list[Path], place: Path, settings: Settings, form: TextForm, memory: int) -> None:
    """Prepare a log in a place that is free, for its sole preparer."""
    seen = {file: state_of(file) for file in files}
    sources = Sources.of(files, settings.roles, form)
    made_from = {"files": [file_identity(file) for file in files], "settings": settings.said(), "text": _said(form)}
    rows = int(np.clip(memory // _BYTES_A_ROW, _LEAST_ROWS, _MOST_ROWS))
    work = Workplace(place, key_of(made_from, [seen[file] for file in files], rows))
    needed = _bytes_needed(sources)
    refuse_lack_of_room(place, needed, sum(file.stat().st_size for file in work.folder.rglob("*") if file.is_file()))
    limit_memory(memory)
    catalogues = given_catalogues(sources.roles, settings.catalogues, sources.reads_integers)
    facts = _prepare(Steps(Intake(sources, settings, catalogues), work, rows, seen))
    work.finish(place, work.folder / "log", facts | {"made_from": made_from})


def _prepare(steps: Steps) -> Facts:
    """Do all steps; what was found on the way is warned of, or refused, once all of it is known."""
    if steps.place.finished:
        warn_caller(f"{steps.place.finished:,} finished parts of an earlier run are used again", ReusedWorkWarning)
    found = steps.runs()
    runs = {name: facts for name, facts in found.items() if facts["rows"]}
    catalogues = steps.catalogues(runs)
    by_user = steps.by_user(runs, catalogues)
    read = sum(facts["read"] for facts in found.values())
    warn_of_all([told for facts in found.values() for told in facts["warnings"]], read)
    kept = sum(facts["rows"] for facts in runs.values())
    settle_repeats([told for facts in by_user.values() for told in facts["repeats"]], kept)
    ids: Any = catalogues["item"].ids
    by_item = steps.by_item(by_user, len(ids))

    def files(folder: Path) -> Facts:
        known = steps.write_catalogues(folder, catalogues)
        known |= steps.joined(folder, by_user, by_item)
        _refuse_useless(folder, steps.intake)
        total = sum(facts["rows"] for facts in by_user.values())
        return {"version": VERSION, "rows": total, "group_rows": GROUP_ROWS} | known

    return steps.place.part("log", files)


def _refuse_useless(folder: Path, intake: Intake) -> None:
    roles = intake.sources.roles
    names = {field: f"column {getattr(roles, role)!r}" for role, field in FIELD_OF_ROLE.items()}
    columns = dict.fromkeys(ROW_COLUMNS) | read_columns_file(folder / "by_user.arrow")
    refuse_useless(columns, intake.settings.positive_from, names)


def _said(form: TextForm) -> dict[str, Any]:
    return {"delimiter": form.delimiter, "columns": form.columns and [*form.columns], "encoding": form.encoding}


def _bytes_needed(sources: Sources) -> int:
    """Guess how much of the disk the work takes at most."""
    extra = sum(value is not None for value in vars(sources.roles).values()) - 2
    return sources.guessed_rows() * _KEPT_TIMES * (9 + 9 + 8 * extra)
