"""The pages on Table 2 and on which method to take when: functions of the studies' tables alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verirec.exceptions import DataError
from verirec.pages.markdown import markdown_table
from verirec.pages.rendering import render_text
from verirec.studies.semi_synthetic.words import method_in_words
from verirec.studies.table2.facts import (
    advice,
    claims,
    closed_share,
    corrections,
    moved_by_tuning,
    shown_means,
    weights_chosen,
)
from verirec.studies.table2.page import correction_rows, forms_of, selection_table
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.results import StudyTables, read_tables
from verirec.studies.table2.words import CHOICES, FORMS, MARKS, laid_out, name_in_words

FOLDERS: Final = {
    "coat": "coat",
    "honest": "coat-honest",
    "swapped": "coat-honest-swapped",
    "audit": "coat-audit",
    "kuairec": "kuairec",
}
"""What the pages are made of, and in which folder; without the first two there is no page."""
_NEEDED: Final = ("coat", "honest")
COMMANDS: Final = {
    "coat": "--dataset coat",
    "honest": "--dataset coat --protocol honest --methods mf,ome,ips,ome-ips,dr-jl,ome-dr --forms constants,features",
    "swapped": "--dataset coat --protocol honest --rho01 .1 --rho10 .2 --methods mf,ome "
    "--forms constants,features --trials 8 --seeds 5",
    "audit": "--dataset coat --rates audit --methods ome,ome-ips,ome-dr --forms constants,features",
    "kuairec": "--dataset kuairec --methods mf,ips,ome-dr --forms paper,constants --trials 5 --seeds 3",
}


@dataclass(frozen=True, eq=False)
class Studies:
    """The tables of the studies, by the names in `FOLDERS`; `None` where one was not run."""

    coat: StudyTables
    honest: StudyTables
    swapped: StudyTables | None = None
    audit: StudyTables | None = None
    kuairec: StudyTables | None = None


def read_studies(folder: str | Path) -> Studies:
    """Read what the commands left in a folder, one folder a study."""
    found = {}
    for name, inside in FOLDERS.items():
        if Path(folder, inside).is_dir():
            found[name] = read_tables(Path(folder, inside))
        elif name in _NEEDED:
            raise DataError(f"{str(folder)!r} has no folder {inside}: verirec reproduce table2 {COMMANDS[name]}")
    return Studies(**found)


def table2_page(studies: Studies) -> str:
    """Write the page on Table 2."""
    return render_text("verirec.studies.table2", "table2.md", **_values(studies)).strip() + "\n"


def which_method_page(studies: Studies) -> str:
    """Write the page on which method to take when."""
    return render_text("verirec.studies.table2", "which-method.md", **_values(studies)).strip() + "\n"


PAGES: Final[dict[str, Callable[[Studies], str]]] = {"table2.md": table2_page, "which-method.md": which_method_page}


def _values(studies: Studies) -> dict[str, Any]:
    return {
        "studies": studies,
        "folders": FOLDERS,
        "commands": COMMANDS,
        "marks": MARKS,
        "FORMS": FORMS,
        "CHOICES": CHOICES,
        "forms": forms_of,
        "table": _table,
        "selection": selection_table,
        "correction": lambda tables: markdown_table(*correction_rows(tables)),
        "corrections": corrections,
        "missing": [method_in_words(one) for one in PAPER_METHODS if one not in set(studies.coat.table2.method)],
        "claims": claims(studies.coat),
        "tuning": moved_by_tuning(studies.coat),
        "closed": closed_share,
        "advice": advice,
        "shown": shown_means,
        "weights": weights_chosen,
        "name": name_in_words,
        "method": method_in_words,
    }


def _table(tables: StudyTables, form: str, choice: str) -> str:
    return markdown_table(*laid_out(tables.table2, form, choice))
