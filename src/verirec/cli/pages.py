"""What verbs that write a page have in common: what the page says of where it comes from, and what is printed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer
from rich.console import Console

if TYPE_CHECKING:
    from verirec.assessment.findings import Origin


class Concluded(Protocol):
    """What was found, in sentences and in figures."""

    @property
    def conclusions(self) -> list[str]:
        """Sentences, most important first."""

    @property
    def summary(self) -> dict[str, Any]:
        """All figures, ready for JSON."""


def origin_of(log: Path) -> Origin:
    """Return the file and the command line, for the foot of a page."""
    from verirec.assessment.findings import Origin  # The assessment takes long to import.

    said = (log.name, shlex.join(["verirec", *sys.argv[1:]]))
    return Origin(*(text.encode("utf-8", "replace").decode() for text in said))


def conclude(found: Concluded, page: Path, *, as_json: bool) -> None:
    """Print the conclusions and where the page is, or all figures as JSON."""
    if as_json:
        typer.echo(json.dumps(found.summary, indent=2))
        return
    console = Console(markup=False, highlight=False)
    for sentence in found.conclusions:
        console.print(f"- {sentence}", soft_wrap=True)
    console.print(f"The page: {page}", soft_wrap=True)
