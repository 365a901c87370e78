"""The campaign of environments: commands in processes of their own, in one odd environment after the other.

What is wanted: the files are those of a plain environment, bit by bit, and their modes what the mask leaves; stderr has lines
of ours alone; the exit code is 0, or 2 with one line that says why. A reader that goes away ends the command quietly, in
the middle of an output that is longer than a pipe's buffer.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture.campaign import ONE_THREAD, Figures, environment
from torture.environments.settings import SETTINGS, Setting
from torture.kill.jobs import TRAIN, contents, write_inputs

LONG = 300
"""Users whose lists are longer than a pipe's buffer."""
PATIENCE = 300
LEAST = 3
"""Commands, however late it is."""
COMMANDS = {
    "recommend": ["recommend", "model", "--all-users", "-k", "3", "--out", "OUT/list.csv"],
    "long lists": ["recommend", "long", "--all-users", "-k", "5"],
    "help": ["assess", "--help"],
    "plan": ["plan", "log.csv", "--predictions", "a=scores.csv", "--budget", "12", "--out", "OUT/plan.csv"],
    "estimate": ["estimate", "log.csv", "--predictions", "a=scores.csv", "--json"],
    "wrong": ["estimate", "no-such-file-é.csv", "--predictions", "a=scores.csv"],
    "train": ["train", "log.csv", "--method", "mf", "--set", "dim=2", "--set", "epochs=2", "--out", "OUT"],
}
MAY_FAIL = ("files of at most 100 bytes", "the current folder is gone", "64 open files")
"""Settings under which a command may say that it cannot."""


def run(budget_seconds: float, seed: int) -> Figures:
    """Try settings by settings, all commands in each, until the time is over."""
    figures, started = Figures(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        yard = _Yard(Path(folder).resolve(), figures)
        # One command in all settings, then the next: a short run has seen many settings.
        for place in range(len(COMMANDS)):
            for number, setting in enumerate(SETTINGS):
                if figures.counts.get("commands", 0) < LEAST or time.monotonic() - started < budget_seconds:
                    yard.trial(setting, [*COMMANDS][(place + number + seed) % len(COMMANDS)])
    figures.counts["settings"] = len(SETTINGS)
    figures.seconds = time.monotonic() - started
    return figures


class _Yard:
    """The folder with what commands read, and what they give in a plain environment."""

    def __init__(self, home: Path, figures: Figures) -> None:
        self.home, self.figures = home, figures
        write_inputs(home)
        _write_long_log(home)
        self.plain: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        for words in (TRAIN, ["train", "long.csv", *TRAIN[2:-1], "long"]):
            code, _, said = self._command(words)
            if code:
                raise RuntimeError(said.decode(errors="replace"))

    def _command(self, words: list[str], setting: Setting | None = None) -> tuple[int, bytes, bytes]:
        setting = setting or Setting("plain")
        variables = environment(**ONE_THREAD)
        for name, value in setting.variables.items():
            variables.pop(name, None)
            if value is not None:
                variables[name] = value.replace("HERE", str(self.home))

        def before() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            if setting.before:
                setting.before()
            for name in setting.streams:
                if name != "reader":
                    os.close(("stdin", "stdout", "stderr").index(name))

        with subprocess.Popen(
            [sys.executable, "-m", "verirec", *words], env=variables, cwd=self.home, umask=setting.umask,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before,
        ) as process:  # fmt: skip
            if "reader" in setting.streams and process.stdout and process.stderr:
                start = process.stdout.read(1)
                process.stdout.close()
                said = process.stderr.read()
                return process.wait(PATIENCE), start, said
            out, said = process.communicate(timeout=PATIENCE)
        return process.returncode, out, said

    def _ran(self, name: str, setting: Setting | None = None) -> tuple[int, bytes, bytes, dict[str, str]]:
        out = self.home / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        words = [word.replace("OUT", str(out)) for word in COMMANDS[name]]
        return *self._command(words, setting), contents(out)

    def trial(self, setting: Setting, name: str) -> None:
        """Run a command in a setting, and compare with a plain run."""
        if name not in self.plain:
            code, out, _, files = self._ran(name)
            self.plain[name] = code, out, files
        code, _, files = self.plain[name]
        ended, out, said, found = self._ran(name, setting)
        self.figures.add("commands")
        for wrong in self._wrong(setting, name, ended, said.decode(errors="replace")):
            self.figures.fail(f"{name}: {wrong}", setting.name)
        if ended == 0 == code and found != files:
            self.figures.fail(f"{name}: other files than in a plain environment", setting.name)
        if setting.umask >= 0:
            self._check_modes(setting, name)

    def _wrong(self, setting: Setting, name: str, ended: int, said: str) -> list[str]:
        wrong = []
        foreign = [line for line in said.splitlines() if not line.startswith("verirec: ")]
        if foreign:
            wrong.append(f"said {foreign[:3]}")
        wanted = self.plain[name][0]
        quiet = "reader" in setting.streams and name in ("long lists", "help", "estimate")
        allowed = (
            {wanted} | ({2} if setting.name in MAY_FAIL else set()) | ({1, 141, -signal.SIGPIPE} if quiet else set())
        )
        if ended not in allowed:
            wrong.append(f"exit code {ended}, wanted {wanted}; said {said[-200:]!r}")
        return wrong

    def _check_modes(self, setting: Setting, name: str) -> None:
        for file in (self.home / "out").rglob("*"):
            mode = stat.S_IMODE(file.stat().st_mode)
            wanted = (0o777 if file.is_dir() else 0o666) & ~setting.umask
            if file.is_file() and mode != wanted and not file.name.startswith("."):
                self.figures.fail(f"{name}: {file.name} has mode {mode:03o}, wanted {wanted:03o}", setting.name)


def _write_long_log(home: Path) -> None:
    rows = "".join(f"u{user},i{(user + item) % 7},{(user + item) % 2}\n" for user in range(LONG) for item in range(2))
    (home / "long.csv").write_text("user,item,rating\n" + rows)
