"""The report of one study of Table 2: a page, the table in Markdown, and pictures; a function of its tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from verirec.pages.figures import as_svg, write_pictures
from verirec.pages.markdown import markdown_table
from verirec.pages.rendering import render
from verirec.pages.writing import write_file
from verirec.studies.semi_synthetic.words import method_in_words
from verirec.studies.table2.findings import BEST, OVERALL
from verirec.studies.table2.plots import intervals_plot, spread_plot, time_plot
from verirec.studies.table2.results import StudyTables
from verirec.studies.table2.words import CHOICES, FORMS, MARKS, laid_out, title

PICTURES: Final = ("intervals", "spread", "time")


def write_study(folder: str | Path, tables: StudyTables) -> None:
    """Write a study's tables, `table2.md`, `report.html` and pictures into a folder."""
    tables.write(folder)
    write_file(Path(folder, "table2.md"), f"{study_markdown(tables)}\n".encode())
    for name, figure in _figures(tables).items():
        write_pictures(folder, name, figure)
    write_file(Path(folder, "report.html"), study_page(tables).encode())


def study_markdown(tables: StudyTables) -> str:
    """Return the table in Markdown: a part a form, and for each way to choose."""
    parts = [f"# {title(tables.table2)}", MARKS]
    for choice in tables.choices:
        for form in forms_of(tables):
            parts += [f"## {FORMS[form]}, {CHOICES[choice]}", markdown_table(*laid_out(tables.table2, form, choice))]
    if tables.selection is not None:
        parts += ["## Ways to choose a setting", selection_table(tables)]
    return "\n\n".join(parts)


def study_page(tables: StudyTables) -> str:
    """Return the same as one HTML page, with the pictures in it."""
    return render(
        "verirec.studies.table2",
        "table2.html",
        title=title(tables.table2),
        marks=MARKS,
        parts=[
            (FORMS[form], CHOICES[choice], *laid_out(tables.table2, form, choice))
            for choice in tables.choices
            for form in forms_of(tables)
        ],
        pictures={name: as_svg(figure, name) for name, figure in _figures(tables).items()},
        spread=_spread_rows(tables),
        selection=None if tables.selection is None else selection_rows(tables),
        correction=None if tables.correction is None else correction_rows(tables),
        chosen=CHOICES[tables.choices[0]],
    )


def forms_of(tables: StudyTables) -> list[str]:
    """Return the forms that a study has, in order."""
    return [form for form in FORMS if (tables.table2.form == form).any()]


def _figures(tables: StudyTables) -> dict[str, Any]:
    choice = tables.choices[0]
    return {
        "intervals": intervals_plot(tables.table2, choice),
        "spread": spread_plot(tables.spread, tables.table2, choice),
        "time": time_plot(tables.table2, choice),
    }


def _spread_rows(tables: StudyTables) -> list[list[str]]:
    tuned = tables.spread[tables.spread.trials > 1]
    return [
        [
            method_in_words(one.method),
            one.form,
            *(f"{value:.3f}" for value in (one.auc_least, one.auc_lower, one.auc_median, one.auc_upper, one.auc_most)),
            str(one.failed),
            f"{one.seconds:.2f}",
        ]
        for one in tuned.itertuples()
    ]


def selection_rows(tables: StudyTables) -> tuple[list[str], list[list[str]]]:
    """Lay the selection study out: mean test AUC by form and way to choose, with shares of the gap closed."""
    overall = tables.selection[tables.selection.method == OVERALL]
    forms = list(dict.fromkeys(overall.form))
    words = {**CHOICES, BEST: "the best trial on the test, which nobody can know"}
    rows = []
    for way, cells in overall.groupby("chosen_by", sort=False):
        by_form = cells.set_index("form")
        shown = []
        for form in forms:
            share = by_form.share[form]
            closed = f" ({share:.0%})" if way not in ("naive", BEST) and share == share else ""
            shown.append(f"{by_form.auc[form]:.3f}{closed}")
        rows.append([words[str(way)], *shown])
    return ["", *("all forms" if form == OVERALL else form for form in forms)], rows


def selection_table(tables: StudyTables) -> str:
    """Return the selection study in Markdown."""
    return markdown_table(*selection_rows(tables))


def correction_rows(tables: StudyTables) -> tuple[list[str], list[list[str]]]:
    """Lay out what the correction for noise changes in the log loss on clean labels."""
    choice = tables.choices[-1]
    part = tables.correction[(tables.correction.choice == choice) & (tables.correction.metric == "log_loss")]
    rows = [
        [
            f"{method_in_words(one.method)} → {method_in_words(one.corrected)}, {one.form}",
            one.on,
            f"{one.plain:.3f}",
            f"{one.with_correction:.3f}",
            f"{one.difference:+.3f}",
            f"{one.p_value:.2g}",
        ]
        for one in part.itertuples()
    ]
    return ["", "on clean labels of", "plain", "corrected", "difference", "p"], rows
