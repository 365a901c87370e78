"""The command as a whole: help with examples, exit codes, and mistakes told in one line."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import verirec
import verirec.assessment
from cli.conftest import HANGS
from verirec.cli.main import app
from verirec.cli.verbs import VERBS, command_of
from verirec.exceptions import DataError, ScoreWarning


def paths(command, path):
    """Walk over a command and everything below it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from paths(below, (*path, name))


PATHS = [path for verb in VERBS for path in paths(command_of(verb), (verb,))]


def one_line(errors):
    return errors.startswith("verirec: ") and errors.count("\n") == 1 and errors.endswith("\n")


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def test_the_verbs_are_found():
    assert {("demo",), ("datasets",), ("datasets", "fetch")} <= set(PATHS)


@pytest.mark.parametrize(
    "verb",
    PATHS,
    ids=" ".join,
)
def test_the_help_of_every_verb_shows_an_example(verb):
    result = CliRunner().invoke(app, [*verb, "--help"])
    assert result.exit_code == 0
    assert f"Example: verirec {' '.join(verb)} " in " ".join(result.output.split())


def test_the_help_lists_every_verb_and_is_what_no_arguments_give(run):
    code, output, _ = run("--help")
    assert code == 0
    assert set(VERBS) <= set(output.split())
    assert run()[1].strip() == output.strip()


def test_the_version_is_the_packages(run):
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    ours, python, others = out.splitlines()
    assert ours == f"verirec {verirec.__version__}"
    assert python.startswith(f"Python {platform.python_version()}")
    assert f"numpy {np.__version__}" in others


def test_what_is_not_installed_has_no_version(run, monkeypatch):
    monkeypatch.setattr("verirec.cli.main._MATTERS", ("numpy", "nosuchpackage"))
    assert "nosuchpackage is not installed" in run("--version")[1]


@pytest.mark.parametrize("verb", [(), ("assess",), ("datasets", "fetch")], ids=str)
def test_h_is_help(run, verb):
    assert run(*verb, "-h") == run(*verb, "--help")
    assert run(*verb, "-h")[0] == 0


@pytest.mark.filterwarnings("default")
def test_quiet_says_results_and_verbose_says_every_step(run, tmp_path):
    (tmp_path / "log.csv").write_text("user,item,label\na,1,1\na,1,1\nb,2,0\nc,3,1\n")
    parts = "--train", tmp_path / "a.csv", "--test", tmp_path / "b.csv"
    command = ["split", tmp_path / "log.csv", *parts]
    assert "occur more than once" in run(*command)[2]
    assert run("--quiet", *command)[2] == ""
    assert run("-q", "-v", *command)[0] == 2
    code, _, err = run("--verbose", "demo", "--out", "/dev/null/nowhere")
    assert code == 2
    assert "Traceback" in err
    code, _, err = run("--quiet", *command, "--held-out", "7")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "held_out must be" in err


def test_shells_complete_verbs_and_their_options(spawn):
    code, out, _ = spawn(COMP_WORDS="verirec asse", COMP_CWORD="1", _VERIREC_COMPLETE="complete_bash")
    assert (code, out.split()) == (0, ["assess"])
    code, out, _ = spawn(COMP_WORDS="verirec assess --sur", COMP_CWORD="2", _VERIREC_COMPLETE="complete_bash")
    assert (code, out.split()) == (0, ["--survey"])


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
            timeout=HANGS,
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


AT_THE_IMPORT_OF = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("name", ["verirec.cli", "typer", "verirec.cli.demo", "rich.console", "numpy", "matplotlib"])
def test_ctrl_c_while_the_command_is_still_starting_is_told_in_one_line(spawn, tmp_path, name):
    ended = spawn("demo", "--out", tmp_path / "demo", start=AT_THE_IMPORT_OF.format(name=name, signal="SIGINT"))
    assert ended == (130, "", "verirec: stopped\n")
    assert not (tmp_path / "demo").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_that_end_a_process_end_it_as_ctrl_c_does(spawn, tmp_path, name):
    # Whoever runs the tests may have had it ignored.
    usual = f"signal.signal(signal.{name}, signal.SIG_DFL)\n"
    start = AT_THE_IMPORT_OF.format(name="verirec.cli.demo", signal=name) + usual
    assert spawn("demo", "--out", tmp_path / "demo", start=start) == (130, "", "verirec: stopped\n")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no such signals")
def test_a_hang_up_that_is_ignored_stays_so(spawn):
    start = AT_THE_IMPORT_OF.format(name="verirec.cli.datasets", signal="SIGHUP")
    code, output, _ = spawn("datasets", start=f"{start}signal.signal(signal.SIGHUP, signal.SIG_IGN)\n")
    assert code == 0
    assert "coat" in output


def test_what_the_command_starts_with_imports_nothing(python):
    """Or Ctrl-C would not be caught while that goes on."""
    added = python("import sys; before = set(sys.modules); import verirec.__main__; print(*set(sys.modules) - before)")
    assert set(added.split()) <= {"verirec", "verirec.__main__", "__future__"}


HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "torch", "narwhals")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",)], ids=lambda one: one[-1] if one else "nothing")
def test_to_show_the_help_nothing_heavy_is_imported(python, arguments):
    code = "import sys; sys.argv[1:] = {}; from verirec.__main__ import main\ntry: main()\nfinally: print(*sys.modules)"
    shown = python(code.format(list(arguments)))
    assert shown.strip()
    assert not {name.partition(".")[0] for name in shown.splitlines()[-1].split()} & set(HEAVY)


@pytest.mark.parametrize("arguments", [*((verb, "--help") for verb in VERBS), ("train", "--nope")], ids=" ".join)
def test_to_show_the_help_of_a_verb_or_a_mistake_only_numpy_is_imported(python, arguments):
    code = "import sys; sys.argv[1:] = {}; from verirec.__main__ import main\ntry: main()\nfinally: print(*sys.modules)"
    shown = python(code.format([*arguments]), fails=arguments[-1] != "--help")
    assert not {name.partition(".")[0] for name in shown.splitlines()[-1].split()} & ({*HEAVY} - {"numpy"})


@pytest.mark.parametrize("verb", VERBS.keys())
def test_the_line_of_a_verb_in_the_help_is_the_first_of_its_own(verb):
    assert " ".join(command_of(verb).help.partition("\n\n")[0].split()) == VERBS[verb]


@pytest.mark.parametrize("arguments", [("demo",), ("assess", "log.csv"), ("plan", "log.csv")], ids=" ".join)
def test_an_empty_name_is_no_place_to_write_to(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, output, errors = run(*arguments, "--out", "")
    assert (code, output) == (2, "")
    assert one_line(errors)
    assert "'--out': it must name a place to write to; got nothing" in errors
    assert list(tmp_path.iterdir()) == []


REPEATS = [
    (("assess", "log.csv", "--survey", "a.csv", "--survey", "b.csv"), "--survey was given twice: put the answers into"),
    (("estimate", "log.csv", "--audit=a.csv", "--audit", "b.csv"), "--audit was given twice: put the answers into one"),
    (("estimate", "log.csv", "-k", "3", "--k", "5"), "--k was given twice: give it once"),
]


@pytest.mark.parametrize(("arguments", "message"), REPEATS, ids=[message[:10] for _, message in REPEATS])
def test_an_option_of_one_value_given_twice_is_refused(run, arguments, message):
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert one_line(errors)
    assert message in errors


def test_an_option_of_several_values_may_be_repeated(run):
    assert "twice" not in run("estimate", "no.csv", "--predictions", "a=a.csv", "--predictions", "b=b.csv")[2]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_names_that_are_no_text_are_written_to_and_refused_to_read_from(tmp_path, encoding):
    rows = "".join(f"{user},{item},{1 + (user * item) % 5}\n" for user in range(12) for item in range(8))
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + rows)
    (tmp_path / os.fsdecode(b"in\xff.csv")).write_text("user,item,rating\n" + rows)

    def run(source, out):
        command = [sys.executable, "-m", "verirec", "plan", source, "--positive-from", "4", "--budget", "10"]
        return subprocess.run(
            [*command, "--out", out],
            cwd=tmp_path,
            env=os.environ | {"PYTHONIOENCODING": encoding},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    done = run("ratings.csv", os.fsdecode(b"plan\xff.csv"))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "plan\\udcff.csv" in done.stdout.replace("\n", "")
    assert (tmp_path / os.fsdecode(b"plan\xff.csv")).is_file()
    refused = run(os.fsdecode(b"in\xff.csv"), "plan.csv")
    assert refused.returncode == 2
    assert "is not UTF-8: rename the file" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_without_a_home_that_can_be_written_nothing_foreign_is_said(spawn, tmp_path):
    (tmp_path / "home").write_text("a file")
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), tmp_path / "home")
    code, _, errors = spawn("demo", "--out", tmp_path / "demo", **places)
    assert (code, errors) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.filterwarnings("default")
def test_a_warning_is_above_a_line_that_goes_on(on_terminal):
    shown = on_terminal(
        """
import sys, time, warnings
from verirec.cli import main, speech
from verirec.exceptions import ReusedWorkWarning, ScoreWarning
warnings.showwarning = main._one_line_warning
with speech.working("Reading"):
    time.sleep(0.3)
    warnings.warn("mind the gap", ScoreWarning)
    warnings.warn("going on from an earlier run: 2 finished parts", ReusedWorkWarning)
    time.sleep(0.3)
print("done")
"""
    )
    assert "Reading" in shown
    assert lines_left(shown) == [
        "verirec: warning: mind the gap",
        "verirec: going on from an earlier run: 2 finished parts",
        "done",
    ]


def lines_left(shown):
    """What stays on a screen, as lines that begin anew, are wiped or gone back to leave it."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", shown):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part.endswith("A"):
            row -= int(part[2:-1] or 1)
        elif not part.startswith(("\x1b", "\r")):
            lines[row] += part
    return [line for line in lines if line]
