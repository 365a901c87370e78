"""verirec plan-audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from verirec.cli.options import (
    AllItems,
    AllUsers,
    Confidence,
    Delimiter,
    Duplicates,
    Item,
    LogFile,
    PositiveFrom,
    Rating,
    Rho01,
    Rho10,
    Seed,
    Timestamp,
    User,
    given_rates,
    load_log,
)
from verirec.nuisances.noise_rates import AuditPlan, plan_audit


def plan_audit_command(
    log: LogFile,
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    half_width: Annotated[float, typer.Option(help="Of the intervals of both noise rates.")] = 0.03,
    rho01: Rho01 = None,
    rho10: Rho10 = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    positive_from: PositiveFrom = None,
    timestamp: Timestamp = None,
    duplicates: Duplicates = "error",
    delimiter: Delimiter = None,
    all_users: AllUsers = None,
    all_items: AllItems = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
) -> None:
    """Choose the pairs to ask people about, and write them as a CSV file whose true_label is to be filled in.

    --rho01 and --rho10 are what you guess the noise rates to be. `verirec audit --audit-labels` reads the file back.

    Example: verirec plan-audit ratings.csv --positive-from 4 --half-width .03 --out audit.csv
    """
    from verirec.reports.writing import check_writable_file, write_table

    check_writable_file(out)
    with Console(stderr=True).status("Choosing the pairs"):
        table = load_log(
            log,
            user=user,
            item=item,
            rating=rating,
            positive_from=positive_from,
            timestamp=timestamp,
            duplicates=duplicates,
            delimiter=delimiter,
            all_users=all_users,
            all_items=all_items,
        )
        plan = plan_audit(
            table, half_width=half_width, confidence=confidence, guess=given_rates(rho01, rho10), random_state=seed
        )
        write_table(out, plan.to_frame())
    console = Console(markup=False, highlight=False)
    console.print(f"{len(plan):,} pairs to ask about are in {out}; fill in true_label with 0 or 1.", soft_wrap=True)
    if plan.simple is not None:
        console.print(f"Chosen at random it would take {plan.simple:,}.", soft_wrap=True)
    console.print(
        f"Expected half-widths: {plan.expected[0]:.3f} of rho01, {plan.expected[1]:.3f} of rho10, {_made_for(plan)}.",
        soft_wrap=True,
    )


def _made_for(plan: AuditPlan) -> str:
    if len(plan.guesses) == 1:
        return f"if they are about {plan.guesses[0].rho01:.2f} and {plan.guesses[0].rho10:.2f}"
    most01, most10 = max(one.rho01 for one in plan.guesses), max(one.rho10 for one in plan.guesses)
    return f"at worst, for rates up to {most01:.2f} and {most10:.2f}"
