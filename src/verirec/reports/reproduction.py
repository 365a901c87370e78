"""The page that tells what of the paper reproduces, what does not, and why: a function of the result tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from verirec.exceptions import DataError
from verirec.experiments.reproduce import tables
from verirec.reports.page import render_text
from verirec.reports.reproduction_words import (
    markdown_table,
    mean_with_coverage,
    mean_with_gap,
    method_in_words,
    rho_in_words,
    table1_in_markdown,
)

FILES: Final = {
    "printed": "printed/table1.csv",
    "not_aliased": "printed-not-aliased/table1.csv",
    "sound": "sound/table1.csv",
    "wrong": "wrong-propensities/table1.csv",
    "kuairec": "kuairec/table1.csv",
    "figure1": "figure1/figure1.csv",
    "robustness": "robustness/robustness.csv",
    "robustness_wrong": "robustness-wrong-propensities/robustness.csv",
}
"""What `verirec reproduce all` leaves, and the page is made of."""


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of all studies, by the names in `FILES`."""

    printed: Any
    not_aliased: Any
    sound: Any
    wrong: Any
    kuairec: Any
    figure1: Any
    robustness: Any
    robustness_wrong: Any


def read_results(folder: str | Path) -> Results:
    """Read the tables that `verirec reproduce all` left in a folder."""
    missing = [file for file in FILES.values() if not Path(folder, file).is_file()]
    if missing:
        raise DataError(
            f"{str(folder)!r} has no {missing[0]} ({len(missing)} of {len(FILES)} tables are missing); "
            "verirec reproduce all writes them"
        )
    read = {}
    for name, file in FILES.items():
        try:
            read[name] = pd.read_csv(Path(folder, file))
        except (OSError, ValueError) as error:
            raise DataError(f"{str(Path(folder, file))!r} is not a table: {' '.join(str(error).split())}") from None
    return Results(**read)


def table1_page(table: Any) -> str:
    """Give Table 1 in Markdown."""
    return f"# Table 1\n\nRelative error (gap to the printed number).\n\n{table1_in_markdown(table, mean_with_gap)}\n"


def reproduction_page(results: Results, pictures: str) -> str:
    """Write the page in Markdown.

    Parameters
    ----------
    results
        All tables.
    pictures
        Path of the results' folder from the page's.
    """
    cells, rmse, largest = tables.gaps(results.printed)
    estimated = results.printed[results.printed.rho == "paper"]
    return render_text(
        "reproduction.md",
        results=results,
        pictures=pictures,
        cells=cells,
        rmse=rmse,
        largest=largest,
        literal=tables.gaps(results.wrong),
        estimated=estimated,
        estimated_gap=float(estimated.gap.abs().max()),
        printed_table=table1_in_markdown(results.printed, mean_with_gap),
        sound_table=table1_in_markdown(_corrected(results.sound), mean_with_coverage),
        best_table=_best_table(results),
        wrong_table=table1_in_markdown(_corrected(results.wrong), mean_with_coverage),
        kuairec_table=table1_in_markdown(_corrected(results.kuairec), mean_with_coverage),
        figure1_table=_figure1_table(results.figure1),
        robustness_table=_robustness_table(results),
        row=_row,
        wins=_wins,
    )


def _corrected(table: Any) -> Any:
    """Leave out what differs from DR only in the imputation, for a shorter table."""
    return table[~table.method.isin(("mrdr", "sdr", "tdr", "ome"))]


def _best_table(results: Results) -> str:
    """Compare OME-IPS and OME-DR with true rates, as printed and without the aliasing."""
    rows = [
        (words, method, _row(table, method, "true"))
        for words, table in (("as printed", results.printed), ("propensities of the formula", results.not_aliased))
        for method in ("ome-ips", "ome-dr")
    ]
    return markdown_table(
        ["", *results.printed.matrix.unique()],
        [[f"{method_in_words(name)}, {words}", *(f"{mean:.3f}" for mean in row["mean"])] for words, name, row in rows],
    )


def _wins(table: Any) -> int:
    """Count the recommenders on which OME-DR is nearer to the truth than OME-IPS, with true rates."""
    means = [_row(table, method, "true").set_index("matrix")["mean"] for method in ("ome-dr", "ome-ips")]
    return int((means[0] < means[1]).sum())


def _row(table: Any, method: str, rho: str) -> Any:
    """Give the cells of one row of a table."""
    return table[(table.method == method) & (table.rho == rho)]


def _figure1_table(table: Any) -> str:
    dr = table[table.method.isin(("dr", "ome-dr"))]
    sources = list(dict.fromkeys(dr.rho))
    body = []
    for _, part in dr.groupby("scale"):
        by_source = part.set_index("rho")
        body.append(
            [
                f"{100 * part.observed.iloc[0]:.1f}%",
                *(f"{by_source.loc[rho, 'mean']:.3f}" for rho in sources),
                *(
                    f"{by_source.loc[rho, 'rho01_error']:.3f}, {by_source.loc[rho, 'rho10_error']:.3f}"
                    for rho in sources
                    if rho not in ("none", "true")
                ),
            ]
        )
    header = [
        "observed",
        *(f"{method_in_words('dr')}, {rho_in_words(rho)}" if rho == "none" else rho_in_words(rho) for rho in sources),
    ]
    return markdown_table(
        [*header, *(f"error of ρ01, ρ10: {rho_in_words(rho)}" for rho in sources if rho not in ("none", "true"))], body
    )


def _robustness_table(results: Results) -> str:
    overall, wrong = (
        table[table.setting == tables.OVERALL].set_index("rho")
        for table in (results.robustness, results.robustness_wrong)
    )
    return markdown_table(
        ["noise rates", "mean RE", "worst setting and recommender", "coverage", "mean RE, wrong propensities"],
        [
            [
                rho_in_words(rho),
                f"{overall.loc[rho, 'mean']:.3f}",
                f"{overall.loc[rho, 'worst']:.3f}",
                f"{overall.loc[rho, 'coverage']:.2f}",
                f"{wrong.loc[rho, 'mean']:.3f}",
            ]
            for rho in overall.index
        ],
    )
