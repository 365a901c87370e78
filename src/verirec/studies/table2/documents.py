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
from verirec.studies.table2 import facts
from verirec.studies.table2.facts import claims, moved_by_tuning, shown_means
from verirec.studies.table2.page import correction_rows, forms_of, search_rows, selection_table
from verirec.studies.table2.paper import PAPER_METHODS
from verirec.studies.table2.results import StudyTables, read_tables
from verirec.studies.table2.spaces import BASELINE_FORM, BY_LOG_FORM
from verirec.studies.table2.words import CHOICES, FORMS, MARKS, laid_out, metric_in_words, name_in_words

FOLDERS: Final = {
    "coat": "coat",
    "honest": "coat-honest",
    "swapped": "coat-honest-swapped",
    "audit": "coat-audit",
    "kuairec": "kuairec",
    "kuairec_honest": "kuairec-honest",
    "music": "music",
}
"""What the pages are made of, and in which folder; without the first two there is no page."""
_NEEDED: Final = ("coat", "honest")
COMMANDS: Final = {
    "coat": "--dataset coat --trials 8",
    "honest": "--dataset coat --protocol honest --trials 8 --no-auto",
    "swapped": "--dataset coat --protocol honest --rho01 .1 --rho10 .2 "
    "--methods mf,ome,ips,ome-ips,dr-jl,ome-dr "
    "--forms constants,features,exposure --trials 8 --no-auto",
    "audit": "--dataset coat --rates audit --methods ome,ome-ips,ome-dr --forms constants,features,exposure "
    "--trials 8 --no-auto",
    "kuairec": "--dataset kuairec --trials 8 --no-auto",
    "kuairec_honest": "--dataset kuairec --protocol honest --trials 8 --no-auto",
    "music": "--dataset yahoo-r3 --seeds 3 --trials 4",
}


@dataclass(frozen=True, eq=False)
class Studies:
    """The tables of the studies, by the names in `FOLDERS`; `None` where one was not run."""

    coat: StudyTables
    honest: StudyTables
    swapped: StudyTables | None = None
    audit: StudyTables | None = None
    kuairec: StudyTables | None = None
    kuairec_honest: StudyTables | None = None
    music: StudyTables | None = None


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
    from verirec.methods import catalogue  # Imports torch.

    return {
        "studies": studies,
        "papers": PAPER_METHODS,
        "swept": [one for one in PAPER_METHODS if catalogue[one].sweeps],
        "folders": FOLDERS,
        "commands": COMMANDS,
        "marks": MARKS,
        "FORMS": FORMS,
        "CHOICES": CHOICES,
        "forms": forms_of,
        "table": _table,
        "by_form": _by_form,
        "selection": selection_table,
        "correction": lambda tables: markdown_table(*correction_rows(tables)),
        "searches": lambda tables: markdown_table(*search_rows(tables)),
        "missing": _missing,
        "claims": claims(studies.coat),
        "tuning": moved_by_tuning(studies.coat),
        "facts": facts,
        "shown": shown_means,
        "name": name_in_words,
        "method": method_in_words,
        "metric": metric_in_words,
    }


def _missing(tables: StudyTables) -> list[str]:
    return [method_in_words(one) for one in PAPER_METHODS if one not in set(tables.table2.method)]


def _table(tables: StudyTables, form: str, metrics: tuple[str, ...] | None = None) -> str:
    return markdown_table(*laid_out(tables.table2, form, tables.choices[0], metrics))


def _by_form(tables: StudyTables) -> str:
    """Write two tables, AUC, NDCG, Recall and log loss in a cell: what has one form, and all forms side by side."""
    forms, table = forms_of(tables), tables.table2
    single = [
        [name_in_words(one, form), shown_means(tables, one, form)]
        for form in (BASELINE_FORM, BY_LOG_FORM)
        for one in dict.fromkeys(table[table.form == form].method)
    ]
    methods = dict.fromkeys(table[table.form.isin(forms)].method)
    rows = [[method_in_words(one), *(shown_means(tables, one, form) for form in forms)] for one in methods]
    both = (["", "AUC / NDCG / Recall / log loss"], single), (["", *(FORMS[form] for form in forms)], rows)
    return "\n\n".join(markdown_table(header, body) for header, body in both)
