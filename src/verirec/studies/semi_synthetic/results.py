"""Reading the tables of the reproduction's studies, which anybody may have edited: checked once, and then trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from verirec.exceptions import DataError
from verirec.studies.semi_synthetic import tables
from verirec.studies.semi_synthetic.plans import PAPER_ERROR, Plan, figure1_plan, robustness_plan, table1_plan

STUDIES: Final[dict[str, tuple[str, Plan]]] = {
    "printed": ("printed", table1_plan("printed")),
    "not_aliased": ("printed-not-aliased", table1_plan("printed", aliased=False)),
    "sound": ("sound", table1_plan()),
    "wrong": ("wrong-propensities", table1_plan(propensity_error=PAPER_ERROR)),
    "kuairec": ("kuairec", table1_plan(preferences="kuairec")),
    "figure1": ("figure1", figure1_plan()),
    "robustness": ("robustness", robustness_plan()),
    "robustness_wrong": ("robustness-wrong-propensities", robustness_plan(PAPER_ERROR)),
}
"""What `verirec reproduce all` runs, and into which folder."""

NEEDED: Final = ("printed", "sound")
"""Without these there is no page."""

FILES: Final = {name: f"{folder}/{plan.study}.csv" for name, (folder, plan) in STUDIES.items()}
"""What it leaves there, and the page is made of."""

_TEXT: Final = ("setting", "method", "rho", "matrix", "made_as", "baseline", "better")
_COLUMNS: Final = {
    "table1": "method rho matrix mean std paper gap paper_std made_as coverage rho01 rho10 "
    "baseline p_value better seeds",
    "figure1": "observed scale method rho matrix mean std coverage rho01_error rho10_error seeds",
    "robustness": "setting rho mean std worst coverage rho01 rho10 seeds",
}
_KEYS: Final = {
    "table1": ["method", "rho", "matrix"],
    "figure1": ["scale", "method", "rho", "matrix"],
    "robustness": ["setting", "rho"],
}
_NEVER_BLANK: Final = ("mean", "worst", "observed", "scale", "seeds")


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of the studies, by the names in `STUDIES`; `None` where one was not run."""

    printed: Any
    sound: Any
    not_aliased: Any = None
    wrong: Any = None
    kuairec: Any = None
    figure1: Any = None
    robustness: Any = None
    robustness_wrong: Any = None

    @property
    def left_out(self) -> list[str]:
        """The folders of the studies that were not run."""
        return [folder for name, (folder, _) in STUDIES.items() if getattr(self, name) is None]


def read_results(folder: str | Path) -> Results:
    """Read the tables that `verirec reproduce all` left in a folder.

    Those in `NEEDED` have to be there; of the others, the ones without a folder are left out. Each must have exactly
    the cells of its study, once, in numbers, over one number of seeds.
    """
    found = {}
    for name, (inside, plan) in STUDIES.items():
        file = Path(folder, FILES[name])
        if name in NEEDED or file.parent.is_dir():
            if not file.is_file():
                raise DataError(f"{str(folder)!r} has no {FILES[name]}; verirec reproduce all writes {inside}/")
            found[name] = read_study(file, plan)
    return Results(**found)


def read_study(file: Path, plan: Plan) -> Any:
    """Read the table of one study, its rows in the order of the plan."""
    table = _in_types(file, _as_text(file, plan.study), plan.study)
    keys, expected = _KEYS[plan.study], _expected(plan)
    found = list(table[keys].itertuples(index=False, name=None))
    for key in set(found) - set(expected):
        raise _refused(file, f"has a row of {_words(key)}, which is not of this study")
    if len(found) > len(set(found)):
        twice = next(key for key in found if found.count(key) > 1)
        raise _refused(file, f"has {_words(twice)} more than once")
    if len(found) < len(expected):
        missing = next(key for key in expected if key not in set(found))
        raise _refused(file, f"has {len(found)} of {len(expected)} cells; {_words(missing)} is missing")
    if table.seeds.nunique() > 1 or table.seeds.iloc[0] < 1 or (table.seeds % 1).any():
        raise _refused(file, f"must have one number of seeds in all rows; got {_words(table.seeds.unique())}")
    table["seeds"] = table.seeds.astype(int)
    table = table.set_index(keys).loc[expected].reset_index()
    if plan.study == "table1":
        _check_table1(file, table, plan)
    return table


def _as_text(file: Path, study: str) -> Any:
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise _refused(file, f"is not a table: {' '.join(str(error).split())}") from None
    columns = _COLUMNS[study].split()
    if sorted(table.columns) != sorted(columns):
        missing = [name for name in columns if name not in table.columns]
        other = [str(name) for name in table.columns if name not in columns]
        wrong = f"{missing[0]!r} is missing" if missing else f"{other[0]!r} is none of them"
        raise _refused(file, f"must have the columns of {study}; {wrong}")
    return table


def _in_types(file: Path, text: Any, study: str) -> Any:
    """Turn the numbers into such; blanks stay only where there may be some."""
    table = text.copy()
    for name in _COLUMNS[study].split():
        if name not in _TEXT:
            table[name] = [_number(file, name, value) for value in text[name]]
    return table


def _number(file: Path, name: str, value: str) -> float:
    if value == "" and name not in _NEVER_BLANK:
        return math.nan
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (number < 0 and name != "gap"):
        raise _refused(file, f"must have numbers as {name}; got {value[:40]!r}")
    return number


def _expected(plan: Plan) -> list[tuple[Any, ...]]:
    """Return the keys of a study's table, in the order of its plan."""
    if plan.study == "table1":
        names = sorted(tables.names_in_table1(plan).values(), key=plan.matrices.index)
        return [(*row, name) for name in names for row in plan.rows]
    if plan.study == "figure1":
        return [(float(one.name), *row, name) for one in plan.settings for row in plan.rows for name in plan.matrices]
    settings = [*(one.name for one in plan.settings), tables.OVERALL]
    return [(setting, rho) for setting in settings for _, rho in plan.rows]


def _check_table1(file: Path, table: Any, plan: Plan) -> None:
    """Check that what stands beside our numbers is the paper's, and that tests and coverage are such."""
    made_as = {name: matrix for matrix, name in tables.names_in_table1(plan).items()}
    for one in table.itertuples():
        printed = tables.printed_cell(plan, one.method, one.rho, made_as[one.matrix])
        cell = _words((one.method, one.rho, one.matrix))
        theirs, gap = (math.nan, math.nan) if printed is None else (printed.mean, one.mean - printed.mean)
        if one.made_as != made_as[one.matrix] or not (_same(one.paper, theirs) and _same(one.gap, gap)):
            raise _refused(file, f"has another recommender, printed number or gap at {cell} than this study has")
        if one.better not in ("", "true", "false"):
            raise _refused(file, f"must have true, false or nothing as better; got {one.better[:40]!r}")
        if math.isnan(one.coverage) != (plan.variant == "printed") or one.coverage > 1:
            raise _refused(file, f"has {one.coverage:g} as coverage at {cell}, which this study cannot have")
        if math.isnan(one.rho01 + one.rho10) != (one.rho == "none"):
            raise _refused(file, f"must have noise rates where they are used; see {cell}")


def _same(first: float, second: float) -> bool:
    return math.isnan(first) == math.isnan(second) and not abs(first - second) > 1e-9


def _words(values: Any) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value)[:40] for value in values)


def _refused(file: Path, what: str) -> DataError:
    return DataError(f"{str(file)!r} {' '.join(what.split())}")
