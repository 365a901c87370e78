"""Two ways of running the command: in this process, and as its users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verirec.cli import main as main_module


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


@pytest.fixture
def spawn(tmp_path):
    """Run the console script beside this Python in an empty folder; give (exit code, output, errors)."""

    def spawn(*arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if name != "VERIREC_DATA"}
        done = subprocess.run(
            [Path(sys.executable).with_name("verirec"), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=clean | {name: str(value) for name, value in environment.items()},
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return spawn
