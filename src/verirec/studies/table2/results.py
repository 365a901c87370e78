"""The tables of a study of Table 2, as files: written by the command, read by the pages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import pandas as pd

from verirec.exceptions import DataError
from verirec.pages.writing import write_table
from verirec.studies.table2.tables import COLUMNS

_NEEDED: Final = {
    "table2": COLUMNS,
    "spread": ("method", "form", "trials", "failed", "auc_lower", "auc_median", "auc_upper", "auc_most", "seconds"),
    "correction": ("method", "corrected", "form", "choice", "on", "metric", "plain", "with_correction", "p_value"),
    "selection": ("method", "form", "chosen_by", "auc_regret", "auc_error", "log_loss_regret", "log_loss_error"),
    "searches": ("method", "seed", "tried", "constants", "gain", "standard_error", "chosen"),
    "settings": ("method", "form", "choice", "setting"),
}


@dataclass(frozen=True, eq=False)
class StudyTables:
    """The tables of one study; `selection`, `correction` and `searches` are `None` where there is nothing to tell.

    Parameters
    ----------
    table2, spread, settings, selection, correction, searches
        As `verirec.studies.table2` makes them.
    """

    table2: Any
    spread: Any
    settings: Any
    selection: Any = None
    correction: Any = None
    searches: Any = None

    def write(self, folder: str | Path) -> None:
        """Write each as a CSV file."""
        for name in (field.name for field in fields(self)):
            table = getattr(self, name)
            if table is not None and len(table):
                write_table(Path(folder, f"{name}.csv"), table)
            else:
                # A table of an earlier study in the same folder would speak of another one.
                Path(folder, f"{name}.csv").unlink(missing_ok=True)

    @property
    def dataset(self) -> str:
        """Its data set."""
        return str(self.table2.dataset.iloc[0])

    @property
    def choices(self) -> list[str]:
        """What settings were chosen by."""
        return list(dict.fromkeys(self.table2.choice))

    def cell(self, method: str, form: str, metric: str) -> Any:
        """Look a row of the table up; a metric without its depth will do. `None` where the study has none."""
        table = self.table2[(self.table2.choice == self.choices[0]) & (self.table2.form == form)]
        found = table[(table.method == method) & (table.metric.str.split("@").str[0] == metric)]
        return found.iloc[0] if len(found) else None

    def mean(self, method: str, form: str, metric: str) -> float:
        """Look a mean up; NaN where the study has none."""
        found = self.cell(method, form, metric)
        return float("nan") if found is None else float(found["mean"])


def read_tables(folder: str | Path) -> StudyTables:
    """Read the tables that `verirec reproduce table2` left in a folder."""
    found = {}
    for field in fields(StudyTables):
        file = Path(folder, f"{field.name}.csv")
        if file.is_file():
            found[field.name] = _read(file, _NEEDED[field.name])
        elif field.name in ("table2", "spread", "settings"):
            raise DataError(f"{str(folder)!r} has no {file.name}; verirec reproduce table2 --out writes it")
    return StudyTables(**found)


def _read(file: Path, columns: Any) -> Any:
    try:
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise DataError(f"{file.name} is not a table: {' '.join(str(error).split())}") from None
    missing = [name for name in columns if name not in table.columns]
    if missing or len(table) == 0:
        raise DataError(f"{file.name} must have rows and the column {missing[0] if missing else columns[0]!r}")
    for name in ("better", "established", "baseline", "setting"):
        if name in table.columns:
            table[name] = table[name].fillna("").astype(str)
    return table
