"""How tables of bad input are checked: one named error, one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from verirec.exceptions import VerirecError


def check_refusal(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Expect an error of verirec's own that says, in one line, what `message` (a regular expression) says."""
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, VerirecError)
    assert "\n" not in str(caught.value)
