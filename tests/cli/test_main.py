"""The command as a whole: help with examples, exit codes, and mistakes told in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

import verirec
import verirec.assessment
from verirec.cli.main import app
from verirec.exceptions import DataError, ScoreWarning


def verbs(command, path=()):
    """Walk over the command and everything below it."""
    if path:
        yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from verbs(below, (*path, name))


VERBS = list(verbs(typer.main.get_command(app)))


def one_line(errors):
    return errors.startswith("verirec: ") and errors.count("\n") == 1 and errors.endswith("\n")


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def test_the_verbs_are_found():
    assert {("demo",), ("datasets",), ("datasets", "fetch")} <= set(VERBS)


@pytest.mark.parametrize(
    "verb",
    [verb if verb == ("datasets",) else pytest.param(verb) for verb in VERBS],
    ids=" ".join,
)
def test_the_help_of_every_verb_shows_an_example(verb):
    result = CliRunner().invoke(app, [*verb, "--help"])
    assert result.exit_code == 0
    assert f"Example: verirec {' '.join(verb)} " in " ".join(result.output.split())


def test_the_help_lists_every_verb_and_is_what_no_arguments_give(run):
    code, output, _ = run("--help")
    assert code == 0
    assert {name for name, *_ in VERBS} <= set(output.split())
    assert run()[1].strip() == output.strip()


def test_the_version_is_the_packages(run):
    assert run("--version") == (0, f"verirec {verirec.__version__}\n", "")


def test_an_error_of_ours_is_one_line_and_exit_code_2(run, monkeypatch):
    monkeypatch.setattr(verirec.assessment, "run_demo", raising(DataError("first line\n  second line")))
    assert run("demo") == (2, "", "verirec: first line second line\n")


def test_an_error_that_is_no_users_mistake_is_not_hidden(run, monkeypatch):
    monkeypatch.setattr(verirec.assessment, "run_demo", raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        run("demo")


def test_a_warning_is_one_line_and_no_failure(run, monkeypatch, tmp_path):
    from verirec.assessment import run_demo

    def warn(seed):
        warnings.warn("mind the gap", ScoreWarning, stacklevel=1)
        return run_demo(seed)

    monkeypatch.setattr(verirec.assessment, "run_demo", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, errors = run("demo", "--out", tmp_path)
    assert (code, errors) == (0, "verirec: warning: mind the gap\n")


def test_an_interruption_is_told_in_one_line_and_has_its_usual_exit_code(run, monkeypatch):
    monkeypatch.setattr(verirec.assessment, "run_demo", raising(KeyboardInterrupt()))
    code, _, errors = run("demo")
    assert code == 130
    assert "Traceback" not in errors


def test_an_interruption_says_that_it_stopped(run, monkeypatch):
    monkeypatch.setattr(verirec.assessment, "run_demo", raising(KeyboardInterrupt()))
    assert run("demo")[2] == "verirec: stopped\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "/data/log.csv"), "cannot use '/data/log.csv': Permission denied"),
        (FileNotFoundError(2, "No such file or directory", Path("a")), "cannot use 'a': No such file or directory"),
        (OSError(28, "No space left on device"), "the system refused: No space left on device"),
        (OSError("broken"), "the system refused: broken"),
        (OSError(), "the system refused: OSError"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_what_the_system_refuses_is_told_by_its_path_and_the_reason(run, monkeypatch, error, message):
    monkeypatch.setattr(verirec.assessment, "run_demo", raising(error))
    assert run("demo") == (2, "", f"verirec: {message}\n")


def run_with_closed_output(*arguments):
    """Run the command with nobody left to read its output."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [Path(sys.executable).with_name("verirec"), *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)


def test_a_reader_that_left_is_no_reason_for_noise():
    assert run_with_closed_output("datasets", "--json").stderr == ""


USAGE_MISTAKES = [
    ("nope",),
    ("demo", "--seed", "-1"),
    ("demo", "--seed", "x"),
    ("demo", "--nope"),
    ("datasets", "fetch"),
]


@pytest.mark.parametrize("arguments", USAGE_MISTAKES, ids=" ".join)
def test_a_mistake_in_the_arguments_has_exit_code_2_and_no_traceback(run, arguments):
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", USAGE_MISTAKES, ids=" ".join)
def test_a_mistake_in_the_arguments_is_told_in_one_line(run, arguments):
    assert one_line(run(*arguments)[2])


def test_the_installed_command_tells_a_mistake_in_one_line(spawn):
    code, output, errors = spawn("datasets", "fetch", "nope")
    assert (code, output) == (2, "")
    assert one_line(errors)
    assert "name must be one of coat, kuairec" in errors


@pytest.mark.parametrize("after", [0.4, 0.8])
def test_ctrl_c_while_the_command_is_still_starting_is_told_in_one_line(tmp_path, after):
    """Importing what it needs takes a second."""
    started = subprocess.Popen(
        [Path(sys.executable).with_name("verirec"), "demo", "--out", tmp_path / "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after)
    started.send_signal(signal.SIGINT)
    output, errors = started.communicate(timeout=60)
    assert (started.returncode, output, errors) == (130, "", "verirec: stopped\n")
    assert not (tmp_path / "demo").exists()


def test_what_the_command_starts_with_imports_nothing_heavy():
    """Or Ctrl-C would not be caught while that goes on."""
    listed = "import sys; before = set(sys.modules); import verirec_start; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) <= {"verirec_start", "__future__"}


@pytest.mark.parametrize("arguments", [("demo",), ("assess", "log.csv"), ("plan", "log.csv")], ids=" ".join)
def test_an_empty_name_is_no_place_to_write_to(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, output, errors = run(*arguments, "--out", "")
    assert (code, output) == (2, "")
    assert one_line(errors)
    assert "'--out': it must name a place to write to; got nothing" in errors
    assert list(tmp_path.iterdir()) == []
