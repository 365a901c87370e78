"""Parquet by Arrow: row groups side by side, text ids as dictionaries from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from verirec.data.ids import is_text
from verirec.data.limits import ReadLimits, current_limits
from verirec.data.roles import Roles

_SPELT_OUT_BYTES: Final = 6
"""A dictionary's index takes at most 4 bytes a value: a column chunk above this is mostly text spelt out."""
_BATCH_ROWS: Final = 2_000_000
_VALUE_BYTES: Final = 4
"""Of memory that a value takes at least; a file may store a repeated one once."""


def read_parquet(file: Path, settle: Callable[[list[str]], Roles]) -> tuple[pa.Table, Roles]:
    """Read the columns that are needed; text ids come back as dictionaries.

    Parameters
    ----------
    settle
        Says which columns are needed, by all of their names.
    """
    metadata = pq.read_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    limits = check_parquet(file, metadata)
    limits.check_rows(file, metadata.num_rows, "")
    settled = settle(schema.names)
    text = [name for name in (str(settled.user), str(settled.item)) if is_text(schema.field(name).type)]
    if not text:
        table = pq.read_table(file, columns=settled.names())
        limits.check_fields(file, table)
        return table, settled
    with pq.ParquetFile(file, metadata=metadata) as opened:
        # A damaged file is refused here; asking its column metadata first could end the process.
        next(opened.iter_batches(batch_size=1, columns=settled.names()), None)
    compact = [name for name in text if not _is_spelt_out(metadata, name)]

    def read(groups: list[int]) -> pa.Table:
        """Read some row groups; text ids come back dictionary-encoded, so that their spelling is freed at once."""
        with pq.ParquetFile(file, read_dictionary=compact, metadata=metadata, memory_map=True) as opened:
            rows = max(1, sum(metadata.row_group(group).num_rows for group in groups))
            batches = opened.iter_batches(
                batch_size=rows, row_groups=groups, columns=settled.names(), use_threads=False
            )
            table = pa.Table.from_batches(
                list(batches), opened.schema_arrow.empty_table().select(settled.names()).schema
            )
        for name in text:
            if not pa.types.is_dictionary(table.schema.field(name).type):
                place = table.column_names.index(name)
                table = table.set_column(place, name, table[name].dictionary_encode())
        return table

    # More workers than two gain little, and each holds a batch's text in memory.
    with ThreadPoolExecutor(max_workers=2) as workers:
        parts = list(workers.map(read, _row_group_batches(metadata)))
    table = pa.concat_tables(parts, promote_options="permissive")
    limits.check_fields(file, table)
    return table, settled


def check_parquet(file: Path, metadata: Any) -> ReadLimits:
    """Refuse a file by what its metadata say that it holds, but for the memory of all its rows; returns the limits."""
    limits = current_limits()
    limits.check_columns(file, metadata.num_columns)
    limits.check_expansion(file, file.stat().st_size, _VALUE_BYTES * metadata.num_rows * min(3, metadata.num_columns))
    return limits


def _row_group_batches(metadata: Any) -> Iterator[list[int]]:
    """Join row groups into batches of some million rows, so that a frequent id's spelling is kept once a batch."""
    batch: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        batch.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch or metadata.num_row_groups == 0:
        yield batch


def _is_spelt_out(metadata: Any, name: str) -> bool:
    """Tell, by its first row group, whether a column is mostly stored as text: then it is faster to encode it later."""
    if metadata.num_row_groups == 0:
        return True
    group = metadata.row_group(0)
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == name:
            return bool(column.total_uncompressed_size > _SPELT_OUT_BYTES * max(1, column.num_values))
    return True
