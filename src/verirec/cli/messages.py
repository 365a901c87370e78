"""Messages of the library as the command line says them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_CALLED: Final = {
    "score": "score_column",
    "propensity": "propensity_column",
    "columns": "columns_named",
    "missing": "missing_predictions",
}
"""What the library calls what an option has another name for."""

_HINT: Final = re.compile(
    r"""(?<![\w'"./=-]) (?P<name>[a-z]\w*) = (?P<value> \.\.\. | '[^']*' | "[^"]*" | [-+\w.]*\w )""", re.VERBOSE
)

_ANSWERS: Final = re.compile(r"name them: user=\.\.\., item=\.\.\., (true_label|answer)=\.\.\.")
"""How files of answers are told their columns, which are not the log's."""

_NAMED: Final = re.compile(r"\bname (it|them): (?=(\w+)=\.\.\.)")

_IN_PYTHON: Final = "log.binary(positive_from=...), or "
"""What a command line cannot do."""

_LIMIT: Final = re.compile(r"read_limits\((\w+)=\.\.\.\)")


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Turn `name=value`, as Python has it, into `--name value` where a verb has such an option.

    Parameters
    ----------
    message
        Of an error or a warning.
    options
        Names of a verb's parameters, and its options.

    Examples
    --------
    >>> in_options("needs a rule such as positive_from=4", {"positive_from": "--positive-from"})
    'needs a rule such as --positive-from 4'
    >>> in_options("or drop_missing=True", {"drop_missing": "--drop-missing"})
    'or --drop-missing'
    >>> in_options("name it: true_label=...", {})
    'rename it: true_label'
    >>> in_options("raise that by read_limits(rows=...)", {"limit": "--limit"})
    'raise that by --limit=rows=NUMBER'
    """

    def spoken(hint: re.Match[str]) -> str:
        name, value = hint["name"], hint["value"]
        option = _option(name, options)
        if option is None:
            return name if value == "..." else hint[0]
        if value == "True":
            return option
        return f"{option} {value.strip(chr(39) + chr(34))}"

    message = message.replace(_IN_PYTHON, "")
    if "answer_columns" in options:
        message = _ANSWERS.sub("name them: --answer-columns USER,ITEM,ANSWER", message)
    message = _NAMED.sub(lambda hint: hint[0] if _option(hint[2], options) else f"re{hint[0]}", message)
    return _HINT.sub(spoken, _LIMIT.sub(r"--limit=\1=NUMBER", message) if "limit" in options else message)


def _option(name: str, options: Mapping[str, str]) -> str | None:
    """Return the option that says what the library calls so, if a verb has it."""
    return options.get(_CALLED.get(name, name)) or options.get(name)
