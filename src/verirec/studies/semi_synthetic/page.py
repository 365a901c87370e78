"""The page that tells what of the paper reproduces, what does not, and why: a function of the result tables alone."""

from __future__ import annotations

import math
from typing import Any, Final

from verirec.data.datasets.kuairec import SIZE
from verirec.pages.markdown import markdown_table
from verirec.pages.rendering import render_text
from verirec.studies.semi_synthetic import tables
from verirec.studies.semi_synthetic.plans import Plan, Setting
from verirec.studies.semi_synthetic.populations import LIKED_ABOVE
from verirec.studies.semi_synthetic.results import FILES, STUDIES, Results, read_results
from verirec.studies.semi_synthetic.words import (
    mean_with_coverage,
    mean_with_gap,
    method_in_words,
    rho_in_words,
    row_in_words,
    table1_cell,
    table1_in_markdown,
    table1_notes,
    table1_title,
)

__all__ = ["FILES", "Results", "read_results", "reproduction_page", "table1_page"]

FAMILIES: Final = ("eib", "ips", "dr")


def table1_page(table: Any, plan: Plan) -> str:
    """Return Table 1 in Markdown, with what it is and how to read it."""
    title = table1_title(plan, int(table.seeds.iloc[0]))
    notes = "\n".join(table1_notes(plan))
    return f"# {title}\n\n{notes}\n\n{table1_in_markdown(table, table1_cell(plan))}\n"


def reproduction_page(results: Results, pictures: str) -> str:
    """Write the page in Markdown.

    Parameters
    ----------
    results
        All tables; the sections of those that are `None` say so.
    pictures
        Path of the results' folder from the page's.
    """
    printed, sound = results.printed, results.sound
    without_rates = printed[printed.rho != "paper"]
    estimated = printed[printed.rho == "paper"]
    page = render_text(
        "verirec.studies.semi_synthetic",
        "reproduction.md",
        results=results,
        pictures=pictures,
        folders={name: folder for name, (folder, _) in STUDIES.items()},
        close=(tables.CLOSE_RMSE, tables.CLOSE_GAP),
        known=tables.gaps(printed),
        by_text=tables.gaps_of(without_rates[~without_rates.method.isin(tables.BY_FIT)]),
        estimated=tables.gaps_of(estimated),
        rates=(float(estimated.rho01.mean()), float(estimated.rho10.mean())),
        true_rates=(Setting("").rho01, Setting("").rho10),
        extremes=_extremes(Setting("")),
        literal=None if results.wrong is None else tables.gaps(results.wrong),
        spread=None if results.wrong is None else _spread_of_one_draw(results),
        printed_table=table1_in_markdown(printed, mean_with_gap),
        sound_table=_shorter(sound),
        best_table=None if results.not_aliased is None else _best_table(results),
        wrong_table=None if results.wrong is None else table1_in_markdown(results.wrong, mean_with_coverage),
        kuairec_table=None if results.kuairec is None else _shorter(results.kuairec),
        people=SIZE,
        liked_above=LIKED_ABOVE,
        figure1=None if results.figure1 is None else _figure1_facts(results.figure1),
        robustness_table=None if results.robustness is None else _robustness_table(results),
        range_over_settings=_range_over_settings,
        nearer=_nearer,
        span=_span,
        row=_row,
        n=len(printed.matrix.unique()),
    )
    return f"{page.strip()}\n"


def _shorter(table: Any) -> str:
    """Lay a sound table out without what differs from DR only in the imputation."""
    return table1_in_markdown(table[~table.method.isin(tables.BY_FIT)], mean_with_coverage)


def _extremes(setting: Setting) -> tuple[float, float]:
    """Return the extremes of P(r = 1) = g (1 - rho01) + (1 - g) rho10 over the probabilities g of liking."""
    ends = [g * (1 - setting.rho01) + (1 - g) * setting.rho10 for g in setting.gamma]
    return min(ends), max(ends)


def _spread_of_one_draw(results: Results) -> dict[str, float]:
    """Say what one draw of beta a run would do to IPS, whose error is linear in it: from ours at beta 0 and .5."""
    exact, half = (_row(table, "ips", "none")["mean"].to_numpy() for table in (results.sound, results.wrong))
    moved = float(abs(half - exact).max())
    return {
        "moved": moved,
        "would_be": 2 * moved / math.sqrt(12),
        "printed": float(_row(results.printed, "ips", "none").paper_std.max()),
    }


def _best_table(results: Results) -> str:
    """Compare OME-IPS and OME-DR as printed and without the aliasing, with true and with estimated rates."""
    rows = [
        (f"{row_in_words(method, rho)}, {words}", _row(table, method, rho))
        for rho in ("true", "paper")
        for words, table in (("as printed", results.printed), ("propensities of the formula", results.not_aliased))
        for method in ("ome-ips", "ome-dr")
    ]
    return markdown_table(
        ["", *results.printed.matrix.unique()],
        [[words, *(f"{mean:.3f}" for mean in row["mean"])] for words, row in rows],
    )


def _nearer(table: Any, first: tuple[str, str], second: tuple[str, str]) -> int:
    """Count the recommenders on which one row of Table 1 is nearer to the truth than another."""
    means = [_row(table, *row).set_index("matrix")["mean"] for row in (first, second)]
    return int((means[0] < means[1]).sum())


def _row(table: Any, method: str, rho: str) -> Any:
    """Return the cells of one row of a table."""
    return table[(table.method == method) & (table.rho == rho)]


def _span(values: Any, digits: int = 3) -> str:
    """Say from where to where numbers go.

    Examples
    --------
    >>> import pandas as pd
    >>> _span(pd.Series([0.2, 0.1234])), _span(pd.Series([0.0, 0.0]), 2)
    ('0.123 to 0.200', '0.00')
    """
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _figure1_facts(table: Any) -> dict[str, Any]:
    """Return Figure 1's table, where the paper's rule does worse than no correction, and where its rates are best."""
    worse = []
    for family in FAMILIES:
        plain, ours = (
            _row(table, *row).set_index("observed")["mean"] for row in ((family, "none"), (f"ome-{family}", "paper"))
        )
        at = [
            f"{100 * share:.1f}% ({ours[share]:.3f} against {plain[share]:.3f})"
            for share in plain.index[ours.round(3) > plain.round(3)]
        ]
        if at:
            worse.append(f"{method_in_words(f'ome-{family}')} at {', '.join(at)}")
    better = {
        family: int(
            (
                _row(table, f"ome-{family}", "true")["mean"].to_numpy() < _row(table, family, "none")["mean"].to_numpy()
            ).sum()
        )
        for family in FAMILIES
    }
    paper, audit = (_row(table, "ome-dr", rho).sort_values("observed") for rho in ("paper", "audit-500"))
    rates = {}
    for rate in ("rho01", "rho10"):
        errors = paper[f"{rate}_error"].to_numpy()
        rates[rate] = {
            "least": float(errors.min()),
            "at": float(paper.observed.iloc[int(errors.argmin())]),
            "last": float(errors[-1]),
            "falls": bool((errors[1:] < errors[:-1]).all()),
        }
    return {
        "table": _figure1_table(table),
        "shares": int(table.scale.nunique()),
        "worse": worse,
        "better": better,
        "rates": rates,
        "most": float(paper.observed.iloc[-1]),
        "audit": audit,
        "paper": paper,
        "true": _row(table, "ome-dr", "true"),
    }


def _range_over_settings(table: Any, rho: str) -> str:
    """Say in which setting a source of noise rates does best and worst."""
    means = table[(table.rho == rho) & (table.setting != tables.OVERALL)].set_index("setting")["mean"]
    return f"{means.min():.3f} ({means.idxmin()}) to {means.max():.3f} ({means.idxmax()})"


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
        [] if table is None else table[table.setting == tables.OVERALL].itertuples()
        for table in (results.robustness, results.robustness_wrong)
    )
    with_wrong = {one.rho: f"{one.mean:.3f}" for one in wrong}
    return markdown_table(
        ["noise rates", "mean RE", "worst setting and recommender", "coverage", "mean RE, wrong propensities"],
        [
            [
                rho_in_words(one.rho),
                f"{one.mean:.3f}",
                f"{one.worst:.3f}",
                f"{one.coverage:.2f}",
                with_wrong.get(one.rho, "not run"),
            ]
            for one in overall
        ],
    )
