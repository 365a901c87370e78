"""The house stays in order: what a module may lean on, and how long a function may be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text())
    for path in sorted(SRC.rglob("*.py"))
}
MOST_IMPORTED, LONGEST_BODY = 15, 50


def imported(tree):
    """Modules of ours that a module imports, inside of functions too; not those for type checkers alone."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) not in typing_only and isinstance(node, ast.ImportFrom):
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in MODULES else node.module


@pytest.mark.parametrize("name", MODULES)
def test_no_module_leans_on_many_others(name):
    if name != "verirec.methods":  # the catalogue: a family a line
        found = {one for one in imported(MODULES[name]) if one in MODULES} - {name}
        assert len(found) <= MOST_IMPORTED, sorted(found)


def test_no_function_is_longer_than_a_page():
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                assert lines <= LONGEST_BODY, (name, node.name, lines)


def test_what_is_compiled_is_kept_in_the_users_cache():
    for name, tree in MODULES.items():
        found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        found |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        assert name == "verirec.compiled" or "numba" not in found, f"{name}: take verirec.compiled.kernel, not numba"


def test_files_of_tests_have_names_of_their_own():
    """Two of one name cannot be collected together."""
    names = [path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []
