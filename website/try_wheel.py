"""Tries the built wheel as a stranger would: `python -m website.try_wheel`, after `make dist`.

For each interpreter and each set of extras: a fresh environment, the wheel and nothing else of this folder, then
`verirec demo`, and the README's Python where its extras are there. Prints a line each, and fails if one does.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("", "train", "train,fast", "study", "ray")
TRAINING = "## Train a recommender"
"""From this heading on, the README's code needs `verirec[train]`."""


def readme_code(training: bool) -> str:
    """Return the README's Python blocks, one after the other."""
    text = (ROOT / "README.md").read_text()
    if not training:
        text = text.partition(TRAINING)[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def tried(python: str, extra: str, wheel: Path, folder: Path) -> str | None:
    """Try one; return what failed, in a line."""
    home = folder / "environment"
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    target = f"verirec[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    (folder / "readme.py").write_text(readme_code("train" in extra or extra == "study"))
    steps = (
        ("environment", [python, "-m", "venv", home]),
        ("install", [*pip, "--constraint", ROOT / "constraints.txt", target]),
        ("demo", [home / "bin" / "verirec", "demo", "--out", "demo"]),
        ("README", [home / "bin" / "python", "-W", "ignore", "readme.py"]),
    )
    # Nothing of this folder may help.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_CONSTR"))}
    for name, command in steps:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            return f"{name}: {(done.stderr.strip().splitlines() or ['no word'])[-1]}"
    return None


def main() -> None:
    """Try all, or those that were named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    parser.add_argument("--extras", nargs="+", default=EXTRAS)
    options = parser.parse_args()
    (wheel,) = (ROOT / "dist").glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    failed = 0
    for python in options.pythons:
        for extra in options.extras:
            start = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                wrong = tried(python, extra, wheel, Path(folder))
            failed += wrong is not None
            outcome = wrong or "ok"
            print(f"{Path(python).name} [{extra}]: {outcome}, {time.monotonic() - start:.0f} s", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
