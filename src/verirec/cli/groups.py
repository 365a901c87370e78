"""Groups of options, declared once and taken by several verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take a dataclass of options as one parameter: the command line has each of its fields by itself.

    One that is a context is entered for as long as the verb runs.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int
    ...     height: int = 1
    >>> @takes_groups
    ... def area(name: str, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> area(name="a room", width=3, height=4)
    a room 12
    >>> list(signature(area).parameters)
    ['name', 'width', 'height']
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: _made(group, given) for name, group in groups.items()}
        with ExitStack() as entered:
            for group in made.values():
                if isinstance(group, AbstractContextManager):
                    entered.enter_context(group)
            command(**given, **made)

    parameters = [one for parameter in signature(command).parameters.values() for one in _spread(parameter, hints)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _made(group: Any, given: dict[str, Any]) -> Any:
    """Take the fields of a group out of what is given, and make the group of them."""
    return group(**{field.name: given.pop(field.name) for field in fields(group) if field.name in given})


def _spread(parameter: Parameter, hints: dict[str, Any]) -> Iterator[Parameter]:
    """Yield a parameter, or those of its group: by name, so that one with a default may come before one without."""
    group = hints[parameter.name]
    if not is_dataclass(group):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=group)
        return
    within = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=within[field.name])
