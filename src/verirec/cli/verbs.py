"""The verbs, each imported when it is called: `verirec --help` waits for none of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import typer.main
from typer.core import TyperGroup

VERBS: Final = {
    "demo": "Assess two recommenders in a simulated world whose truth is known.",
    "assess": "Report how selective and noisy a log is, and how good each recommender really is, on one page.",
    "monitor": "Assess each week or month of a log, with verdicts that allow for looking many times.",
    "check": "List everything that is wrong with a file of ratings, and the options that mend it.",
    "split": "Part a log in two files, to train on one and to judge by the other.",
    "plan": "Choose the pairs to ask people about, and write them to a CSV file with an empty true_label column.",
    "prepare": "Prepare a log on disk of files of ratings that need not fit into memory.",
    "estimate": "Estimate how good each recommender really is: its loss, and how it ranks all items.",
    "train": "Train a recommender on a log.",
    "tune": "Search for parameters, train with the best, and list all that was tried.",
    "evaluate": "Evaluate a trained recommender on test ratings, without any correction.",
    "recommend": "Recommend items to users.",
    "methods": "List the methods that verirec train knows.",
    "datasets": "List the data sets: where each of them is, or how to get it.",
    "adapters": "List the libraries whose models can be judged as they are.",
    "reproduce": "Rerun the paper's studies: Table 1 and Figure 1 as printed and done right, Table 2 tuned equally.",
}
"""What each does, as the first line of its own help says."""

BEFORE: Final = ("-q", "--quiet", "-v", "--verbose")
"""Options that come before the verb."""


def command_of(verb: str) -> Any:
    """Import the module of a verb, and return the command that its `app` makes."""
    # Nothing of the library imports the studies: their verb is found by the name of its module.
    module = "verirec.studies.cli.reproduce" if verb == "reproduce" else f"verirec.cli.{verb.replace('-', '_')}"
    return typer.main.get_command(import_module(module).app)


def called(words: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the command that a line's words name, or `None`, and the words after it; options may come before it."""
    while words and words[0] in BEFORE:
        words = words[1:]
    if not words or words[0] not in VERBS:
        return None, [*words]
    command, rest = command_of(words[0]), [*words[1:]]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def options_called(words: Sequence[str]) -> dict[str, str]:
    """Return the options of the verb that a line's words name, by their names in Python."""
    command, _ = called(words)
    return {one.name: one.opts[0] for one in getattr(command, "params", ()) if one.opts[0].startswith("--")}


class Verbs(TyperGroup):
    """Commands of a line each, for the help; the one that is called is taken from its module."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the verb that was called, its command and what is left of the arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None else command_of(str(name)), rest
