"""Machine code that is kept: taken by the next process, never wrong, and never in the way."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import verirec
from verirec.exceptions import CacheWarning, DatasetNotFoundError
from verirec.user_cache import cache_folder

pytest.importorskip("numba")
compiled = importlib.import_module("verirec.compiled")

SOURCE = """
from verirec.compiled import kernel

@kernel()
def inner(number):
    return {factor} * number

@kernel()
def outer(number):
    return inner(number) + 1
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a folder of its own for what is kept."""
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    compiled._SAID.clear()
    return tmp_path / "cache"


@pytest.fixture
def load(tmp_path):
    """Import the same small module anew, as another process would."""
    file = tmp_path / "source" / "kernels.py"
    file.parent.mkdir()

    def load(factor=2):
        file.write_text(SOURCE.format(factor=factor))
        compiled._source_of.cache_clear()
        spec = importlib.util.spec_from_file_location("kernels", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["kernels"] = module
        spec.loader.exec_module(module)
        return module

    yield load
    sys.modules.pop("kernels", None)


def hits(function):
    return sum(function.stats.cache_hits.values())


def kept(home):
    return sorted(file for file in home.rglob("*") if file.is_file())


def test_what_one_compiled_is_taken_by_the_next(home, load):
    first, again = load(), load()
    assert (first.outer(3), hits(first.outer)) == (7, 0)
    assert (again.outer(3), hits(again.outer)) == (7, 1)
    assert again.outer(0.5) == 2
    assert hits(again.outer) == 1


IN_A_PROCESS = """
import sys; sys.path.insert(0, {folder!r})
import kernels
print(kernels.outer(3), sum(kernels.outer.stats.cache_hits.values()))
"""


def test_processes_at_once_do_not_harm_each_other(home, load, tmp_path):
    load()
    command = [sys.executable, "-c", IN_A_PROCESS.format(folder=str(tmp_path / "source"))]

    def start():
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    together = [start() for _ in range(3)]
    assert {one.communicate()[0].split()[0] for one in together} == {"7"}
    assert len(kept(home)) == 2
    assert start().communicate()[0].split() == ["7", "1"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:10],
        lambda whole: whole[:-1],
        lambda whole: whole[:900] + bytes([whole[900] ^ 1]) + whole[901:],
        lambda whole: b"\0" * len(whole),
    ],
    ids=["empty", "a part of the checksum", "cut", "a bit", "zeros"],
)
def test_a_damaged_file_is_ignored_and_replaced(home, load, damage):
    load().outer(3)
    whole = {file: file.read_bytes() for file in kept(home)}
    for file in whole:
        file.write_bytes(damage(whole[file]))
    again, after = load(), load()
    assert (again.outer(3), hits(again.outer)) == (7, 0)
    assert kept(home) == sorted(whole)
    assert (after.outer(3), hits(after.outer)) == (7, 1)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(compiled, "_VERSION"), (compiled.numba, "__version__"), (compiled.np, "__version__")],
    ids=["verirec", "numba", "numpy"],
)
def test_what_another_version_compiled_is_ignored(home, load, monkeypatch, owner, name):
    load().outer(3)
    monkeypatch.setattr(owner, name, "0.0.1")
    again = load()
    assert (again.outer(3), hits(again.outer)) == (7, 0)


def test_what_another_processor_compiled_is_ignored(home, load, monkeypatch):
    load().outer(3)
    from numba.core.registry import cpu_target

    codegen = type(cpu_target.target_context.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda _: ("x86_64", "another", ""))
    again = load()
    assert (again.outer(3), hits(again.outer)) == (7, 0)


def test_a_function_that_calls_another_is_compiled_again_when_that_is_edited(home, load):
    assert load(factor=2).outer(3) == 7
    assert load(factor=5).outer(3) == 16
    assert load(factor=2).outer(3) == 7


def test_a_folder_that_cannot_be_written_is_told_once_and_done_without(home, load):
    home.write_text("a file, where a folder should be")
    with pytest.warns(CacheWarning, match=r"cannot be kept in .*cache.*Not a directory.*\$VERIREC_CACHE") as told:
        found = load().outer(3), load().outer(3.5)
    assert found == (7, 8)
    assert len(told) == 1


def test_what_is_kept_in_a_folder_that_cannot_be_written_is_still_taken(home, load, monkeypatch):
    load().outer(3)
    monkeypatch.setattr(compiled, "replace_file", lambda *_: pytest.fail("there is nothing to write"))
    assert load().outer(3) == 7


@pytest.fixture
def nobody(monkeypatch):
    """Be a user without a name and without a home."""
    pwd = pytest.importorskip("pwd")

    def unknown(_):
        raise KeyError("no such user")

    for name in ("HOME", "XDG_CACHE_HOME", "VERIREC_CACHE", "VERIREC_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(pwd, "getpwnam", unknown)
    compiled._SAID.clear()


def test_without_a_home_nothing_is_kept_and_that_is_told_once(nobody, load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cache_folder() is None
    with pytest.warns(CacheWarning, match="there is no home folder") as told:
        assert load().outer(3) == 7
    assert len(told) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["source"]


def test_without_a_home_data_sets_ask_for_a_folder(nobody):
    with pytest.raises(DatasetNotFoundError, match="there is no home folder"):
        verirec.load_dataset("coat")


def test_the_systems_place_for_caches_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("VERIREC_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert cache_folder() == tmp_path / "verirec"
    monkeypatch.setenv("VERIREC_CACHE", "~/ours")
    assert cache_folder() == Path("~/ours").expanduser()


def test_without_a_compiler_functions_run_as_they_are(home, load):
    code = "import kernels; print(kernels.outer(3))"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([*sys.path])}
    load()
    folder = Path(sys.modules["kernels"].__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
    assert kept(home) == []


def test_nothing_is_said_where_all_is_well(home, load):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load().outer(3)


def test_what_is_no_file_of_ours_is_not_read(home, load):
    load().outer(3)
    for file in kept(home):
        junk = b"no machine code"
        file.write_bytes(hashlib.sha256(junk).digest() + junk)
    assert load().outer(3) == 7
    places = kept(home)
    for file in places:
        file.unlink()
        os.mkfifo(file)
    with pytest.warns(CacheWarning) as told:
        assert load().outer(3) == 7
    assert len(told) == 1
