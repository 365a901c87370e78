"""verirec prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import verirec as vr
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import WholeLogOptions, of_log
from verirec.cli.options import named_path
from verirec.cli.speech import GOES_ON, speech, working

app = typer.Typer(add_completion=False)


@app.command("prepare")
@takes_groups
def prepare_command(
    files: Annotated[
        list[str], typer.Argument(metavar="RATINGS...", help="Files of ratings, or patterns in quotes, of one form.")
    ],
    out: Annotated[Path, typer.Option(parser=named_path, metavar="LOG", help="The folder to write.")],
    rules: WholeLogOptions,
    propensity_column: Annotated[str | None, of_log(help="The column of propensities.")] = None,
    weight: Annotated[str | None, of_log(help="The column of row weights.")] = None,
) -> None:
    """Prepare a log on disk of files of ratings that need not fit into memory.

    Verbs that take a LOG take the folder. Stopped work goes on where it was when it is called again.

    Example: verirec prepare "ratings/*.parquet" --positive-from 4 --duplicates last --memory 2GB --out log
    """
    from verirec.data.prepared.workplace import has_parts

    more = rules.reading | rules.rules(propensity_column) | {"weight": weight}
    with working("Preparing the log"):
        try:
            folder = vr.prepare_log(files, out, memory=rules.memory, **more)
        except KeyboardInterrupt:
            if has_parts(out):
                speech.stopped = GOES_ON
            raise
        log = vr.scan_log(folder, memory=rules.memory)
    console = Console(markup=False, highlight=False)
    console.print(f"{len(log):,} rows, {log.n_users:,} users x {log.n_items:,} items", soft_wrap=True)
    console.print(f"The log: {folder}", soft_wrap=True)
