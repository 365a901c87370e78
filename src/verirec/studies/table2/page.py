"""The report of one study of Table 2: a page, the table in Markdown, and pictures; a function of its tables alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verirec.pages.figures import as_svg, write_pictures
from verirec.pages.markdown import markdown_table
from verirec.pages.rendering import render
from verirec.pages.writing import write_file
from verirec.studies.semi_synthetic.words import method_in_words
from verirec.studies.table2.findings import OVERALL
from verirec.studies.table2.plots import intervals_plot, spread_plot, time_plot
from verirec.studies.table2.results import StudyTables
from verirec.studies.table2.spaces import BY_LOG_FORM
from verirec.studies.table2.words import CHOICES, FORMS, MARKS, laid_out, name_in_words, title


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
        searches=None if tables.searches is None else search_rows(tables),
        chosen=CHOICES[tables.choices[0]],
    )


def forms_of(tables: StudyTables) -> list[str]:
    """Return the forms that a study has, in order."""
    return [form for form in FORMS if (tables.table2.form == form).any()]


def _figures(tables: StudyTables) -> dict[str, Any]:
    """Draw the pictures; where nothing was tuned there is no spread to draw."""
    choice = tables.choices[0]
    found = {"intervals": intervals_plot(tables.table2, choice), "time": time_plot(tables.table2, choice)}
    if (tables.spread.trials > 1).any():
        found["spread"] = spread_plot(tables.spread, tables.table2, choice)
    return found


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
    """Lay the selection study out: mean regrets by form and way to choose, with standard errors over methods."""
    overall = tables.selection[tables.selection.method == OVERALL]
    forms = list(dict.fromkeys(overall.form))
    rows = []
    for way, cells in overall.groupby("chosen_by", sort=False):
        by_form = cells.set_index("form")
        shown = [
            f"{one.auc_regret:.4f} ±{one.auc_error:.4f}, {one.log_loss_regret:.4f} ±{one.log_loss_error:.4f}"
            for one in (by_form.loc[form] for form in forms)
        ]
        rows.append([CHOICES[str(way)], *shown])
    return ["", *("all forms" if form == OVERALL else form for form in forms)], rows


def selection_table(tables: StudyTables) -> str:
    """Return the selection study in Markdown."""
    return markdown_table(*selection_rows(tables))


def search_rows(tables: StudyTables) -> tuple[list[str], list[list[str]]]:
    """Lay out what each search tried and chose, and by how much that is better than constants on held-out rows."""
    rows = []
    for method, of in tables.searches.groupby("method", sort=False):
        chosen: dict[str, int] = {}
        for one in of.itertuples():
            words = "constants alone" if one.constants else _candidate_in_words(json.loads(one.chosen))
            chosen[words] = chosen.get(words, 0) + 1
        most_often = sorted(chosen.items(), key=lambda one: -one[1])
        rows.append(
            [
                name_in_words(str(method), BY_LOG_FORM),
                f"{of.tried.min()} to {of.tried.max()}",
                "; ".join(f"{words} ({count} of {len(of)})" for words, count in most_often),
                f"{of.gain.mean():+.4f} ±{of.standard_error.mean():.4f}",
            ]
        )
    return ["", "candidates tried", "chosen", "better than constants on held-out rows, by its own criterion"], rows


def _candidate_in_words(chosen: dict[str, Any]) -> str:
    """Say what was chosen, penalties aside.

    Examples
    --------
    >>> _candidate_in_words({"method": "mf", "model": "features", "dim": 0, "covariates": "both"})
    'features, propensity and co-rating'
    >>> _candidate_in_words({"method": "ome", "model": "mf", "dim": 8, "covariates": "none"})
    'ome, 8 factors'
    """
    covariates = {"both": "propensity and co-rating", "none": ""}.get(chosen["covariates"], chosen["covariates"])
    parts = [
        "" if chosen["method"] == "mf" else chosen["method"],
        "features" if chosen["model"] == "features" else "",
        f"{chosen['dim']} factors" if chosen["dim"] else "",
        covariates,
    ]
    return ", ".join(part for part in parts if part) or "other constants"


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
