"""The reproduction's rows and cells in words and in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from verirec.pages.markdown import markdown_table
from verirec.studies.semi_synthetic.plans import Plan, table1_plan
from verirec.studies.semi_synthetic.tables import PRINTED_FOR

_METHODS: Final = {"naive": "Naive"}
_SOURCES: Final = {
    "none": "no rates",
    "true": "true rates",
    "paper": "paper's rule",
    "quantiles": "anchors, quantiles",
    "tails": "anchors, tails",
    "audit-200-direct": "audit of 200, direct",
}


def method_in_words(method: str) -> str:
    """Return a method's name as the paper writes it.

    Examples
    --------
    >>> method_in_words("ome-dr"), method_in_words("naive")
    ('OME-DR', 'Naive')
    """
    return _METHODS.get(method, method.upper())


def rho_in_words(rho: str) -> str:
    """Say where noise rates come from.

    Examples
    --------
    >>> rho_in_words("paper"), rho_in_words("audit-500")
    ("paper's rule", 'audit of 500')
    """
    return _SOURCES.get(rho, rho.replace("audit-", "audit of "))


def row_in_words(method: str, rho: str) -> str:
    """Name a row of Table 1.

    Examples
    --------
    >>> row_in_words("ome-dr", "true"), row_in_words("dr", "none")
    ('OME-DR, true rates', 'DR')
    """
    return method_in_words(method) if rho == "none" else f"{method_in_words(method)}, {rho_in_words(rho)}"


def table1_in_markdown(table: Any, cell: Callable[[Any], str]) -> str:
    """Lay Table 1 out as the paper does, each cell of the table in the words of `cell`."""
    names = list(dict.fromkeys(table.matrix))
    cells = {(one.method, one.rho, one.matrix): cell(one) for one in table.itertuples()}
    return markdown_table(
        ["", *names],
        [[row_in_words(method, rho), *(cells[method, rho, name] for name in names)] for method, rho in rows_of(table)],
    )


def rows_of(table: Any) -> list[tuple[str, str]]:
    """Return Table 1's rows in the order of the paper, each method's sources of noise rates together."""
    order = ("naive", "ome", "mrdr", "sdr", "tdr", "eib", "ome-eib", "ips", "ome-ips", "dr", "ome-dr")
    found = dict.fromkeys(zip(table.method, table.rho, strict=True))
    return sorted(found, key=lambda row: order.index(row[0]))


def mean_with_gap(one: Any) -> str:
    """Say our mean and how far it is from the printed one."""
    return f"{one.mean:.3f}" if one.paper != one.paper else f"{one.mean:.3f} ({one.gap:+.3f})"


def mean_with_paper(one: Any) -> str:
    """Say our mean and the printed one."""
    return f"{one.mean:.3f}" if one.paper != one.paper else f"{one.mean:.3f} ({one.paper:.3f})"


def mean_with_coverage(one: Any) -> str:
    """Say our mean, marked where it is significantly better than the best baseline, and the interval's coverage."""
    mark = "*" if one.better == "true" else ""
    return f"{one.mean:.3f}{mark} [{one.coverage:.2f}]"


def table1_cell(plan: Plan) -> Callable[[Any], str]:
    """Choose what a cell says: the printed variant is held against the paper, the sound one stands by itself."""
    return mean_with_paper if plan.variant == "printed" else mean_with_coverage


def table1_title(plan: Plan, seeds: int) -> str:
    """Say which Table 1 it is.

    Examples
    --------
    >>> from verirec.studies.semi_synthetic import table1_plan
    >>> table1_title(table1_plan("printed"), 20)
    'Table 1, as printed: movielens-100k, 20 seeds'
    >>> table1_title(table1_plan(propensity_error=0.5, preferences="kuairec"), 1)
    'Table 1, done right, but propensity error 0.5: kuairec, 1 seed'
    """
    usual = table1_plan(plan.variant).settings[0]
    (own,) = plan.settings
    but = [f"propensity error {own.propensity_error:g}"] if own.propensity_error != usual.propensity_error else []
    but += ["propensities of the formula"] if own.propensities != usual.propensities else []
    variant = ", but ".join(["as printed" if plan.variant == "printed" else "done right", *but])
    return f"Table 1, {variant}: {plan.preferences}, {seeds} seed{'' if seeds == 1 else 's'}"


def table1_notes(plan: Plan) -> list[str]:
    """Say how to read it."""
    has_printed = plan.preferences == PRINTED_FOR
    if plan.variant == "printed":
        if not has_printed:
            return ["Relative error; the paper has no such table. ROTATE and SKEW are as its text defines them."]
        return [
            "Relative error (the paper's number), under the paper's headers.",
            "Those of ROTATE and SKEW are swapped: the numbers under each are of what the text calls the other.",
        ]
    notes = [
        "Relative error, * if significantly smaller than the best baseline's [share of 95% intervals with the truth].",
        "ROTATE and SKEW are as the text defines them; the printed table has these headers swapped.",
    ]
    return [*notes, "The printed numbers rest on other arithmetic: --variant printed has it."] if has_printed else notes
