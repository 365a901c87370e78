"""The SQL of docs/scale, which prepares a log in a warehouse: each dialect gives the log that the events give."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from sqlglot import exp

import verirec as vr

FOLDER = Path(__file__).parent.parent / "docs" / "scale"
DIALECTS = sorted(path.stem for path in FOLDER.glob("*.sql"))


def events() -> pd.DataFrame:
    """Rate some pairs several times, at different moments, and leave some ratings out."""
    random = np.random.default_rng(0)
    ratings = random.integers(1, 6, 2_000).astype(float)
    ratings[random.random(2_000) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "user_id": random.integers(30, size=2_000),
            "item_id": random.integers(40, size=2_000),
            "rating": ratings,
            "rated_at": random.permutation(2_000),
        }
    )


def selections(dialect: str) -> list[str]:
    """Return the SELECT of each statement, in DuckDB's words: what is made of the events, ratings, users, items."""
    statements = sqlglot.parse((FOLDER / f"{dialect}.sql").read_text("utf-8"), dialect=dialect)
    found = [statement.find(exp.Select) for statement in statements if statement is not None]
    queries = [select.sql(dialect="duckdb", comments=False) for select in found if select is not None]
    return [query.replace("READ_PARQUET('events/*.parquet')", "events") for query in queries]


def test_duckdb_writes_what_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = events()
    monkeypatch.chdir(tmp_path)
    Path("events").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(logged)), 2)):
        logged.iloc[part].to_parquet(f"events/{number}.parquet", index=False)
    with duckdb.connect() as database:
        database.execute((FOLDER / "duckdb.sql").read_text("utf-8"))
    catalogues = {"all_users": Path("users.parquet"), "all_items": Path("items.parquet")}
    log = vr.scan_log(vr.prepare_log("ratings/*.parquet", "log", positive_from=3, **catalogues))
    last = logged.dropna(subset="rating").sort_values("rated_at").drop(columns="rated_at")
    assert log.equals(vr.FeedbackLog.from_frame(last, duplicates="last", positive_from=3))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_dialect_gives_the_log_that_is_read_from_the_events(dialect: str) -> None:
    logged = events()
    first, ratings, users, items = selections(dialect)
    with duckdb.connect() as database:
        database.register("events", logged)
        database.sql(f"CREATE TEMP TABLE ratings AS {first}")
        table, by_user, by_item = (database.sql(query).df() for query in (ratings, users, items))

    rated = logged.dropna(subset="rating")
    log = vr.FeedbackLog.from_frame(rated, timestamp="rated_at", duplicates="latest", positive_from=3)
    expected = log.to_frame().sort_values(["user", "item"])[["user", "item", "rating"]]
    np.testing.assert_array_equal(table.to_numpy(), expected.to_numpy())
    for counted, name in ((by_user, "user"), (by_item, "item")):
        assert counted.set_index(name)["n"].to_dict() == expected[name].value_counts().to_dict()
