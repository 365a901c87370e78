"""What was made last, kept for who asks again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Latest(Generic[Key, Value]):
    """Values by key, the latest few: the oldest goes before another is made.

    Parameters
    ----------
    most
        How many are kept.

    Examples
    --------
    >>> squares = Latest(2)
    >>> [squares.get(number, lambda: number**2) for number in (1, 2, 3)]
    [1, 4, 9]
    >>> squares.get(3, lambda: 0), squares.get(1, lambda: 0)
    (9, 0)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what is kept by a key, or make it."""
        if key not in self._values:
            while len(self._values) >= self.most:
                self._values.pop(next(iter(self._values)))
            self._values[key] = make()
        return self._values[key]
