"""The package's own names: imported late, and the same for Python, for `import *` and for type checkers."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import verirec

for_type_checkers = next(
    node
    for node in ast.parse(Path(verirec.__file__).read_text()).body
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
)
DECLARED = {
    name.name: node.module
    for node in for_type_checkers.body
    if isinstance(node, ast.ImportFrom) and node.module.startswith("verirec")
    for name in node.names
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_name_that_type_checkers_see_is_what_is_imported(name):
    declared = import_module(DECLARED[name])
    expected = import_module(f"verirec.{name}") if declared is verirec else getattr(declared, name)
    assert getattr(verirec, name) is expected


def test_all_names_are_declared_and_listed():
    assert {*verirec.__all__} - {"__version__"} == {*DECLARED} - {
        "assessment", "data", "estimation", "exceptions", "load", "losses", "methods", "nuisance",
    }  # fmt: skip
    assert {*DECLARED} <= {*dir(verirec)}
    assert {*DECLARED} == {*verirec._PACKAGES, *verirec._HOMES}


def test_another_name_is_an_error_that_says_so():
    with pytest.raises(AttributeError, match="module 'verirec' has no attribute 'nope'"):
        verirec.nope  # noqa: B018
