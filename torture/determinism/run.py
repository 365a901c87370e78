"""The determinism campaign: one bundle of results, computed in setting after setting and compared with a plain run.

Threads, hash seeds, the order of rows and workers must not change a bit. Another processor adds in another order: its
results may differ by so much, in units of the largest number of a result, and no more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torture.campaign import ONE_THREAD, ROOT, Figures, environment

TOLERANCE = 1e-5
"""Of what is trained in single precision, on another processor."""
PATIENCE = 1_200


@dataclass(frozen=True)
class Setting:
    """What differs from a plain run: variables, the order of rows, where the work runs; and whether bits have to be the same."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    order: int = 0
    engine: str = "serial"
    same_bits: bool = True


def _threads(number: int) -> dict[str, str]:
    return dict.fromkeys(ONE_THREAD, str(number))


def _processor(name: str, value: str) -> Setting:
    return Setting(f"{name}={value}", {name: value}, same_bits=False)


SETTINGS = (
    Setting("rows in another order", order=1),
    Setting("4 threads", _threads(4)),
    Setting("hash seed 1", {"PYTHONHASHSEED": "1"}),
    _processor("OPENBLAS_CORETYPE", "Prescott"),
    _processor("ATEN_CPU_CAPABILITY", "default"),
    Setting("2 processes", engine="processes"),
    Setting("rows in a third order, 3 threads, hash seed 2", _threads(3) | {"PYTHONHASHSEED": "2"}, order=2),
    _processor("OPENBLAS_CORETYPE", "Haswell"),
    _processor("ATEN_CPU_CAPABILITY", "avx2"),
    _processor("NUMBA_CPU_NAME", "generic"),
    _processor("NPY_DISABLE_CPU_FEATURES", "AVX2 FMA3"),
    Setting("the same once more"),
)


def run(budget_seconds: float, seed: int) -> Figures:
    """Go through the settings until the time is over; the first is always tried."""
    figures, started = Figures(seed), time.monotonic()
    plain = _results(Setting("plain"))
    for number, setting in enumerate(SETTINGS):
        if number and time.monotonic() - started > budget_seconds:
            break
        try:
            found = _results(setting)
        except subprocess.CalledProcessError as error:
            figures.fail(
                f"{setting.name}: {error.stderr.decode(errors='replace').splitlines()[-1:]}", _repeated(setting)
            )
            continue
        _enter(figures, setting, plain, found)
    figures.counts |= {"settings": len(figures.tables.get("settings", [])), "results": len(plain)}
    figures.seconds = time.monotonic() - started
    return figures


def _repeated(setting: Setting) -> str:
    variables = " ".join(f"{name}='{value}'" for name, value in setting.variables.items())
    return f"{variables} python -m torture.determinism.work {setting.order} {setting.engine}".strip()


def _results(setting: Setting) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "torture.determinism.work", str(setting.order), setting.engine]
    variables = environment(**(ONE_THREAD | {"PYTHONHASHSEED": "0"} | setting.variables))
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, check=True, timeout=PATIENCE)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def _enter(figures: Figures, setting: Setting, plain: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare with a plain run; a result that is a choice, as a plan is, has to be the same or cannot be compared."""
    off = {name: _off(plain[name], found.get(name, [])) for name in plain}
    worst = max(off, key=lambda name: off[name])
    row = {"setting": setting.name, "same bits": sum(value == 0 for value in off.values()), "of": len(off)}
    figures.tables.setdefault("settings", []).append(
        row | {"largest difference": f"{off[worst]:.1g}", "of result": worst if off[worst] else ""}
    )
    limit = 0.0 if setting.same_bits else TOLERANCE
    for name, value in off.items():
        if value > limit:
            figures.fail(
                f"{setting.name}: {name} is off by {value:.2g}, at most {limit:g} is allowed", _repeated(setting)
            )


def _off(wanted: list[float], found: list[float]) -> float:
    """Return the largest difference, by the largest number."""
    if len(wanted) != len(found):
        return float("inf")
    if not wanted:
        return 0.0
    left, right = np.array(wanted), np.array(found)
    return float(np.abs(left - right).max() / max(np.abs(left).max(), 1e-300))
