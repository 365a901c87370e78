"""Ways of running the command: in this process, and as its users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verirec.cli import main as main_module


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    """Keep no parts of work: how fast a machine is decides nothing."""
    monkeypatch.setattr("verirec.resuming.pieces.WORTH_KEEPING", float("inf"))


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `verirec` in this process; give (exit code, output, errors)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["verirec", *map(str, arguments)])
        try:
            main_module.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return run


HANGS = 600
"""Seconds after which a command has come to hang; no test depends on how long one takes."""


def environment(first=None, **more):
    """Return what a command is run in: no data folder of somebody's, and a folder before all others on the path."""
    clean = {name: value for name, value in os.environ.items() if name != "VERIREC_DATA"}
    if first is not None:
        path = clean.get("PYTHONPATH")
        clean["PYTHONPATH"] = f"{first}{os.pathsep}{path}" if path else str(first)
    return clean | {name: str(value) for name, value in more.items()}


@pytest.fixture
def spawn(tmp_path):
    """Run the console script beside this Python in an empty folder; give (exit code, output, errors).

    `start` is the text of a sitecustomize.py, which Python runs before anything else.
    """

    def spawn(*arguments, start=None, **more):
        if start is not None:
            (tmp_path / "start").mkdir()
            (tmp_path / "start" / "sitecustomize.py").write_text(start)
        done = subprocess.run(
            [Path(sys.executable).with_name("verirec"), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(None if start is None else tmp_path / "start", **more),
            timeout=HANGS,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return spawn


@pytest.fixture
def python():
    """Run Python code in a process of its own; give what it prints."""

    def python(code, *, fails=False):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)
        assert bool(done.returncode) == fails, done.stderr
        return done.stdout

    return python


@pytest.fixture
def on_terminal():
    """Run Python code on a terminal of 120 columns; give what is written to it."""
    import pty

    def on_terminal(code):
        ours, theirs = pty.openpty()
        given = environment(TERM="xterm", COLUMNS=120)
        child = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, env=given)
        os.close(theirs)
        shown = b""
        try:
            while some := os.read(ours, 1 << 16):
                shown += some
        except OSError:  # So Linux says that the other end is closed.
            pass
        os.close(ours)
        assert child.wait() == 0, shown
        return shown.decode()

    return on_terminal
