"""Files of features: all columns, the ids as text until it is known what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from verirec.data.frames import as_arrow
from verirec.data.ids import encode_ids, is_text
from verirec.data.limits import current_limits
from verirec.data.parquet_files import check_parquet
from verirec.exceptions import ColumnError, FileFormatError, ParameterError
from verirec.formatting import names_in_words, short

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


def feature_table(features: Any, name: str, id_column: str, *, reads_integers: bool) -> pa.Table:
    """Return features, a frame or the path of a .csv, .tsv or .parquet file, as an Arrow table.

    Parameters
    ----------
    features
        With an id column and one column a feature.
    name
        What errors call them.
    id_column
        Its name.
    reads_integers
        Whether plain integers in a text file's ids are the integers of a log.
    """
    if not isinstance(features, str | Path):
        return as_arrow(features, name)
    file = Path(features)
    table, called = _read(file, id_column), f"{name}, {file.name},"
    if len(set(table.column_names)) < len(table.column_names):
        raise ColumnError(f"{called} has a column twice; the columns are: {names_in_words(table.column_names)}")
    if id_column not in table.column_names:
        raise ColumnError(
            f"{called} must have the id column {id_column!r}; it has {names_in_words(table.column_names)}"
        )
    if is_text(table[id_column].type) and file.suffix.lower() in _DELIMITERS:
        codes, ids = encode_ids(table[id_column], f"{called} column {id_column!r}", from_text=reads_integers)
        place = table.column_names.index(id_column)
        table = table.set_column(place, id_column, pa.chunked_array([ids.arrow(codes)]))
    return table


def _read(file: Path, id_column: str) -> pa.Table:
    ending = file.suffix.lower()
    if ending != ".parquet" and ending not in _DELIMITERS:
        raise ParameterError(f"features must end in .csv, .tsv or .parquet; got {short(file.name)}")
    if not file.is_file():
        raise FileFormatError(f"no file {short(str(file), max=300)}")
    try:
        limits = current_limits()
        if ending == ".parquet":
            metadata = pq.read_metadata(file)
            check_parquet(file, metadata).check_rows(file, metadata.num_rows, "")
            return pq.read_table(file)
        table = pyarrow.csv.read_csv(
            file,
            # Quoted text may hold line breaks: without this, lines of it are read as rows of large files.
            parse_options=pyarrow.csv.ParseOptions(delimiter=_DELIMITERS[ending], newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={id_column: pa.string()}, strings_can_be_null=True, null_values=[""]
            ),
        )
        limits.check_columns(file, table.num_columns)
        limits.check_fields(file, table)
        return table
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{file.name} is not a readable {ending[1:]} file: {' '.join(str(error).split())}"
        ) from None
