"""A call as text: what can be run, changed argument by argument, printed and run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Random = np.random.Generator
Pool = Callable[[Random], str]
"""Draws an expression."""


@dataclass(frozen=True)
class Call:
    """A function and its arguments, all as Python text.

    Attributes
    ----------
    function
        What is called.
    setting
        Names that the arguments may use, evaluated first and in order.
    arguments
        By their names.
    """

    function: str
    setting: Mapping[str, str]
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{name} = {text}" for name, text in self.setting.items()]
        given = ", ".join(f"{name}={text}" for name, text in self.arguments.items())
        return "; ".join([*lines, f"{self.function}({given})"])

    def made(self, names: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Evaluate the function and its arguments, without calling it."""
        space = dict(names)
        for name, text in self.setting.items():
            space[name] = eval(text, space)
        given = {name: eval(text, space) for name, text in self.arguments.items()}
        return eval(self.function, space), given

    def without(self, name: str) -> Call:
        """Return it with an argument left to its default."""
        return replace(self, arguments={key: text for key, text in self.arguments.items() if key != name})

    def with_setting(self, name: str, text: str) -> Call:
        """Return it with another setting."""
        return replace(self, setting={**self.setting, name: text})

    def with_argument(self, name: str, text: str) -> Call:
        """Return it with another argument."""
        return replace(self, arguments={**self.arguments, name: text})


@dataclass(frozen=True)
class Entry:
    """A public entry: how a valid call of it is drawn.

    Attributes
    ----------
    function, setting
        As in `Call`; settings are drawn.
    needed, optional
        Arguments, drawn; of the optional ones, some.
    weight
        How often it is tried, beside others.
    """

    function: str | Pool
    setting: Mapping[str, Pool]
    needed: Mapping[str, Pool]
    optional: Mapping[str, Pool]
    weight: float = 1.0

    def draw(self, random: Random) -> Call:
        """Draw a valid call."""
        share = random.choice([0.0, 0.2, 0.5, 1.0])
        chosen = {name: pool for name, pool in self.optional.items() if random.random() < share}
        return Call(
            self.function if isinstance(self.function, str) else self.function(random),
            {name: pool(random) for name, pool in self.setting.items()},
            {name: pool(random) for name, pool in {**self.needed, **chosen}.items()},
        )


def entry(
    function: str | Pool,
    needed: Mapping[str, Pool] | None = None,
    optional: Mapping[str, Pool] | None = None,
    *,
    setting: Mapping[str, Pool] | None = None,
    weight: float = 1.0,
) -> Entry:
    """Make an entry of what it has."""
    return Entry(function, setting or {}, needed or {}, optional or {}, weight)


def one(*texts: str) -> Pool:
    """Draw one of these expressions."""
    return lambda random: texts[random.integers(len(texts))]


def whole(low: int, high: int) -> Pool:
    """Draw an integer."""
    return lambda random: str(random.integers(low, high, endpoint=True))


def real(low: float, high: float) -> Pool:
    """Draw a number, one of the ends now and then."""
    return lambda random: repr(float(random.choice([low, high, *random.uniform(low, high, 6).round(3)])))


def either(*pools: Pool) -> Pool:
    """Draw from one of the pools."""
    return lambda random: pools[random.integers(len(pools))](random)


def filled(template: str, **pools: Pool) -> Pool:
    """Fill a template's names, each by a draw."""
    return lambda random: template.format(**{name: pool(random) for name, pool in pools.items()})
