"""The package's own names: imported late, and the same for Python, for `import *` and for type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
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
        "adapters", "assessment", "data", "engine", "estimation", "exceptions", "load", "losses", "methods", "nuisance",
    }  # fmt: skip
    assert {*DECLARED} <= {*dir(verirec)}
    assert {*DECLARED} == {*verirec._PACKAGES, *verirec._HOMES}


def test_another_name_is_an_error_that_says_so():
    with pytest.raises(AttributeError, match="module 'verirec' has no attribute 'nope'"):
        verirec.nope  # noqa: B018


LOG = "log = verirec.FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 2], [1, 0, 1, 0], n_users=3, n_items=3)"
NOT_FOR_ARRAYS = {
    *("pandas", "torch", "numba", "matplotlib", "jinja2", "rich", "typer", "narwhals", "pooch", "scipy.stats"),
}
NEEDED_LATE = {
    "": {*NOT_FOR_ARRAYS, "numpy", "scipy", "pyarrow"},
    "dir(verirec); verirec.__version__": {*NOT_FOR_ARRAYS, "numpy", "scipy", "pyarrow"},
    LOG: {*NOT_FOR_ARRAYS, "scipy.sparse", "scipy.linalg", "scipy.optimize"},
    f"{LOG}; verirec.estimate([[.5] * 3] * 3, log, estimators=['naive', 'ips'])": {*NOT_FOR_ARRAYS, "scipy.optimize"},
    f"{LOG}; verirec.metrics.auc(log.labels, [.1, .2, .3, .4])": {*NOT_FOR_ARRAYS, "scipy.optimize"},
    "verirec.NoiseRates(.1, .2)": {*NOT_FOR_ARRAYS, "pyarrow", "scipy.linalg", "scipy.sparse"},
    "verirec.simulate.world(20, 10, observed=.5, random_state=0)": NOT_FOR_ARRAYS,
    "verirec.methods.catalogue": {
        *("pandas", "numba", "matplotlib", "jinja2", "rich", "typer", "narwhals", "pooch", "scipy.stats"),
        *("torch._dynamo", "torch._inductor", "optuna"),
    },
}


@pytest.mark.parametrize("code", NEEDED_LATE, ids=lambda code: code[:30] or "import verirec")
def test_what_takes_long_to_import_is_imported_where_it_is_needed(code):
    command = [sys.executable, "-W", "ignore", "-c", f"import sys, verirec\n{code}\nprint(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not NEEDED_LATE[code] & {*loaded}
