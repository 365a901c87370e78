"""Runs every snippet of the README and of docs/: Python blocks as they stand, and `verirec` commands in bash blocks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser


class VerirecCommands(CodeBlockParser):
    """Bash blocks hold `verirec` commands, one a line, each of which must succeed."""

    language = "bash"

    def evaluate(self, example: Example) -> None:
        for line in example.parsed.strip().splitlines():
            verb, *arguments = shlex.split(line, comments=True)
            assert verb == "verirec", f"a bash block runs verirec and nothing else, not {line!r}"
            done = subprocess.run(
                [Path(sys.executable).with_name("verirec"), *arguments], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    namespace["before"] = Path.cwd()
    namespace["folder"] = tempfile.TemporaryDirectory()
    os.chdir(namespace["folder"].name)


def leave_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["before"])
    namespace["folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), VerirecCommands(), SkipParser()],
    patterns=["README.md", "docs/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
).pytest()
