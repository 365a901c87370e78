"""From files to the files of a prepared log, step by step; each step's parts are kept until all is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from verirec.data.files import frugal_memory
from verirec.data.ids import IdMap, spelt
from verirec.data.prepared.columns_file import checksums, dtypes_of, outlined, read_columns_file
from verirec.data.prepared.ids_file import file_checksum, read_ids, write_ids
from verirec.data.prepared.intake import Intake
from verirec.data.prepared.merging import ItemMerge, MergedRun, UserMerge, merged_types, ranges_of
from verirec.data.prepared.settings import FileState, state_of
from verirec.data.prepared.workplace import Workplace
from verirec.data.tables import GivenCatalogue, catalogue_columns
from verirec.exceptions import DroppedRowsWarning, EmptyLogError, FileFormatError, warn_caller
from verirec.progress import Task, working
from verirec.scratch import let_pages_go

Facts = dict[str, Any]

_UNMERGED: Final = 4_000_000
"""Ids that are collected, at least, before they are merged."""


@dataclass(frozen=True)
class Steps:
    """The work on one log.

    Parameters
    ----------
    intake
        What is read, and how.
    place
        Where parts are kept.
    rows
        How many are worked on at a time.
    seen
        What each file was like when the work began, by `state_of`.
    """

    intake: Intake
    place: Workplace
    rows: int
    seen: dict[Path, FileState]

    def runs(self) -> dict[str, Facts]:
        """Take all files in; return the facts of each run by its name."""
        sources, found = self.intake.sources, {}
        likely = [sources.likely_rows(file) for file in sources.files]
        with working("Reading ratings", sum(likely)) as task, frugal_memory():
            for number, file in enumerate(sources.files):
                for name, facts in self._runs_of(number, file, task):
                    found[name] = facts
                read = sum(facts["read"] for facts in found.values())
                task.correct(read, read + sum(likely[number + 1 :]))
        if not any(facts["rows"] for facts in found.values()):
            raise EmptyLogError("the log is empty: it must have at least one row")
        return {name: facts for name, facts in found.items() if facts["rows"] or facts["warnings"]}

    def _runs_of(self, number: int, file: Path, task: Task) -> Iterator[tuple[str, Facts]]:
        """Take a file in, from its first piece that is not there on."""
        skip = 0
        while self.place.has(name := f"run-{number:05}-{skip:05}"):
            facts = self.place.part(name, _nothing)
            task.skip(facts["read"])
            yield name, facts
            skip += 1
        read = f"read-{number:05}"
        if not self.place.has(read):
            # Closed here: an error's traceback would have it go on, and Arrow's threads with it.
            with closing(self.intake.sources.pieces(file, self.rows, skip)) as pieces:
                yield from self._taken(number, file, enumerate(pieces, skip), task)
        self._refuse_changed(file)
        # Kept with the part: what was left out is said again by a run that finds the file read.
        whole = self.place.part(read, lambda _: {"broken": self.intake.sources.form.told_of_broken(file.name)})
        for told in whole["broken"]:
            warn_caller(told, DroppedRowsWarning)

    def _taken(
        self, number: int, file: Path, pieces: Iterable[tuple[int, pa.Table]], task: Task
    ) -> Iterator[tuple[str, Facts]]:
        """Take pieces of a file in."""
        for piece, table in pieces:
            called = file.name if piece == 0 and table.num_rows < self.rows else f"{file.name}, {self._where(piece)}"
            name = f"run-{number:05}-{piece:05}"

            def take(folder: Path, rows: pa.Table = table, of: str = called) -> Facts:
                facts = self.intake.take(rows, of, folder)
                self._refuse_changed(file)
                return facts

            facts = self.place.part(name, take)
            task.advance(table.num_rows)
            yield name, facts

    def _refuse_changed(self, file: Path) -> None:
        """Refuse to go on with rows of a file that is not the one by which the log, and its parts, are found again."""
        if state_of(file) != self.seen[file]:
            raise FileFormatError(f"{file.name} changed while the log was prepared from it: prepare it again")

    def _where(self, piece: int) -> str:
        return f"from row {piece * self.rows:,} on"

    def catalogues(self, runs: Iterable[str]) -> dict[str, GivenCatalogue]:
        """Merge the ids of all runs, where no catalogue was given."""
        found = {}
        for side, given in self.intake.catalogues.items():
            if given.ids is None:
                each = (read_ids(self.place.folder / run / f"{side}s.arrow") for run in runs)
                found[side] = replace(given, ids=_merged_ids(each, given, self.intake.sources.from_text))
            else:
                found[side] = given
        return found

    def by_user(self, runs: dict[str, Facts], catalogues: dict[str, GivenCatalogue]) -> dict[str, Facts]:
        """Sort all rows by user and item, range by range; return the facts of each by its name."""
        given = catalogues["user"], catalogues["item"], self.intake.sources.from_text, len(runs)
        opened = [MergedRun(self.place.folder / run, *given) for run in runs]
        types = merged_types([facts["dtypes"] for facts in runs.values()])
        ids = {f"{side}_ids": one.ids for side, one in catalogues.items()}
        merge = UserMerge(opened, types, **ids, duplicates=self.intake.settings.duplicates)  # type: ignore[arg-type]
        return self._ranges("user", "Sorting by user", merge)

    def by_item(self, parts: Iterable[str], n_items: int) -> dict[str, Facts]:
        """Sort what is kept by item too, range by range."""
        merge = ItemMerge([self.place.folder / part / "by_item.arrow" for part in parts], n_items)
        return self._ranges("item", "Sorting by item", merge)

    def _ranges(self, side: str, what: str, merge: UserMerge | ItemMerge) -> dict[str, Facts]:
        counts, found = merge.counts(), {}
        with working(what, int(counts.sum())) as task:
            for start, stop in ranges_of(counts, self.rows):
                name = f"{side}-{start:010}"
                told = task.skip if self.place.has(name) else task.advance
                found[name] = self.place.part(name, lambda to, a=start, b=stop: merge.make(a, b, to))  # type: ignore[misc]
                told(int(counts[start:stop].sum()))
                let_pages_go()
        return found

    def joined(self, files: Path, by_user: Iterable[str], by_item: Iterable[str]) -> Facts:
        """Join the parts into the two files of rows; return the types and checksums of the columns of each."""
        found: Facts = {"dtypes": {}, "checksums": {}}
        for name, parts in (("by_user.arrow", list(by_user)), ("by_item.arrow", list(by_item))):
            columns = _joined(files / name, [self.place.folder / part / name for part in parts])
            found["dtypes"][name], found["checksums"][name] = dtypes_of(columns), checksums(columns)
        return found

    def write_catalogues(self, files: Path, catalogues: dict[str, GivenCatalogue]) -> Facts:
        """Write ids and features; return what else there is to know of the log."""
        ids = {side: one.ids for side, one in catalogues.items()}
        columns = catalogue_columns(catalogues, ids["user"], ids["item"], self.intake.settings.levels)  # type: ignore[arg-type]
        facts: Facts = {name: columns[name] for name in ("n_users", "n_items", "levels")}
        for side, known in ids.items():
            write_ids(files / f"{side}s.arrow", known.arrow(), columns.get(f"{side}_features"))  # type: ignore[union-attr]
            facts[f"{side}_feature_names"] = columns.get(f"{side}_feature_names")
            facts[f"{side}_checksum"] = file_checksum(files / f"{side}s.arrow")
        return facts


def _nothing(folder: Path) -> Facts:
    return {}


def _merged_ids(each: Iterable[pa.Array], given: GivenCatalogue, from_text: bool) -> IdMap:
    """Merge dictionaries, some at a time: all of them together may take more room than the log's own."""
    merged: list[pa.Array] = []
    for ids in each:
        merged.append(ids)
        if sum(map(len, merged[1:])) > max(_UNMERGED, len(merged[0])):
            merged = [_union(merged, given, from_text)]
    return IdMap(_union(merged, given, from_text))


def _union(each: list[pa.Array], given: GivenCatalogue, from_text: bool) -> pa.Array:
    text = len({pa.types.is_integer(ids.type) for ids in each}) > 1
    column = pa.chunked_array([spelt(pa.chunked_array([ids])).combine_chunks() for ids in each] if text else each)
    return given.encode(column, from_text)[1].arrow()


def _joined(file: Path, parts: list[Path]) -> dict[str, Any]:
    each = [read_columns_file(part) for part in parts]
    length = sum(len(columns["users"]) for columns in each)
    whole = outlined(file, {name: values.dtype for name, values in each[0].items()}, length)
    start = 0
    for columns in each:
        stop = start + len(columns["users"])
        for name, values in columns.items():
            whole[name][start:stop] = values
        start = stop
        let_pages_go()
    return whole
