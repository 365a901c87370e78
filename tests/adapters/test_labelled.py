"""Frames with a row a user, and matrices in an order of their own: lined up with the log by its ids, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data import as_predictions
from verirec.exceptions import AdapterError, ColumnError, IdError, PredictionError, PropensityError, UnknownIdError

WORLD = vr.simulate.world(60, 40, observed=0.4, random_state=0)
USERS, ITEMS = [f"u{n:02}" for n in range(60)], list(range(100, 140))
LOG = vr.FeedbackLog.from_arrays(
    WORLD.log.users, WORLD.log.items, WORLD.log.labels, n_users=60, n_items=40, user_ids=USERS, item_ids=ITEMS
)
VALUES = np.random.default_rng(0).uniform(0.1, 0.9, LOG.shape)
ORDER = np.random.default_rng(1).permutation(60), np.random.default_rng(2).permutation(40)
SHUFFLED = VALUES[np.ix_(*ORDER)]
WIDE = pd.DataFrame(SHUFFLED, index=np.array(USERS)[ORDER[0]], columns=np.array(ITEMS)[ORDER[1]])
TIDY = WIDE.stack().rename("score").rename_axis(["member", "recipe"]).reset_index()


def test_a_frame_with_a_row_a_user_is_taken_by_its_labels_wherever_predictions_are():
    p = vr.GivenPropensity(WORLD.propensity_values)
    half = np.full(LOG.shape, 0.5)
    for judge in (
        lambda f: vr.estimate(f, LOG, propensities=p, estimators="dr")["dr"].value,
        lambda f: vr.compare(f, half, LOG, propensities=p)["dr"].value,
        lambda f: vr.estimate_ranking(f, LOG, propensities=p)["auc"].value,
        lambda f: vr.metrics.evaluate(f, LOG)["log_loss"],
        lambda f: vr.assess(LOG, {"mine": f}, propensities=p).summary["headline"]["mine"]["value"],
        lambda f: vr.sensitivity(f, LOG, propensities=p).surfaces["recommender"].at(0.1, 0.1),
        lambda f: vr.calibrate(f, LOG, method="isotonic").at([3], [7])[0],
        lambda f: vr.plan_labels(LOG, {"mine": f, "half": half}, budget=40).to_frame().to_csv(),
    ):
        assert judge(WIDE) == judge(VALUES)


def test_labels_decide_before_order_and_what_the_log_lacks_is_left_out():
    more = pd.concat([WIDE, WIDE.iloc[:2].set_axis(["x", "y"])]).assign(**{"7": 0.5}).rename(columns={"7": 7})
    assert np.array_equal(vr.adapt(more, LOG).predictions, VALUES)
    assert np.array_equal(vr.adapt(WIDE.rename_axis(columns=pd.Index(["item"])[0]), LOG).predictions, VALUES)


@pytest.mark.parametrize("frame", [pd.DataFrame(VALUES), pl.DataFrame(VALUES)], ids=["pandas", "polars"])
def test_a_frame_without_labels_is_by_position(frame):
    assert np.array_equal(vr.adapt(frame, LOG).predictions, VALUES)


def test_a_matrix_in_an_order_of_its_own_comes_with_ids():
    both = vr.adapt(SHUFFLED, LOG, user_ids=WIDE.index, item_ids=WIDE.columns)
    assert np.array_equal(both.predictions, VALUES)
    assert repr(both) == "Adapted(a matrix: scores of 60 users x 40 items)"
    assert np.array_equal(vr.adapt(VALUES[ORDER[0]], LOG, user_ids=WIDE.index).predictions, VALUES)


@pytest.mark.parametrize("frame", [WIDE, pd.DataFrame(SHUFFLED), pl.DataFrame(SHUFFLED)])
def test_a_frame_takes_no_ids_beside_its_labels(frame):
    told = "is read by its own labels or columns, and takes no user_ids=... or item_ids=...: label it with them"
    check_refusal(lambda: vr.adapt(frame, LOG, user_ids=WIDE.index, item_ids=WIDE.columns), AdapterError, told)


def test_columns_of_pairs_may_have_any_names():
    found = as_predictions(vr.adapt(TIDY, LOG, user="member", item="recipe"), *LOG.shape)
    assert np.array_equal(found.block(np.arange(60), np.arange(40)), VALUES)


REFUSED = {
    "users of another kind": (
        lambda: vr.estimate(WIDE.reset_index(drop=True), LOG), UnknownIdError,
        r"^the DataFrame's index: integers \(first: 0\) where the catalogue has strings",
    ),
    "other items": (
        lambda: vr.estimate(WIDE.rename(columns=lambda item: item + 1000), LOG), UnknownIdError,
        r"^the DataFrame has no column for 40 of the log's 40 items \(first: 100\); the first of its own 40 is 11\d\d$",
    ),
    "too few users": (
        lambda: vr.assess(LOG, {"mine": WIDE.iloc[1:]}), UnknownIdError,
        r"^mine: the DataFrame has no row for 1 of the log's 60 users \(first: 'u\d\d'\); the first of its own 59 ",
    ),
    "users twice": (
        lambda: vr.estimate(pd.concat([WIDE, WIDE.iloc[:1]]), LOG), IdError, "the DataFrame's index must be distinct",
    ),
    "a gap": (lambda: vr.estimate(WIDE.where(WIDE > 0.2), LOG), PredictionError, "must be finite"),
    "no row labels": (
        lambda: vr.estimate(pl.DataFrame(VALUES, schema=list(map(str, ITEMS))), LOG), PredictionError,
        "^the DataFrame must have columns user, item and score .* users as its index",
    ),
    "pairs by other names": (
        lambda: vr.estimate(TIDY, LOG), ColumnError,
        r"cannot tell which column is the user .* name them: user=\.\.\., item=\.\.\.; .* \(vr\.adapt takes",
    ),
    "no such column": (
        lambda: vr.adapt(TIDY, LOG, user="member", item="dish"), ColumnError, "no column 'dish' .for item."
    ),
    "labels where no log is": (
        lambda: as_predictions(WIDE, 60, 40), PredictionError,
        r"^the DataFrame's index and columns are lined up .* by vr\.adapt\(frame, log\)",
    ),
    "labelled propensities": (lambda: vr.GivenPropensity(WIDE), PropensityError, r"by position; .* frame\.reindex"),
    "too few ids": (
        lambda: vr.adapt(VALUES, LOG, user_ids=USERS[1:]), UnknownIdError, "^the matrix has 60 rows; got 59 user_ids"
    ),
    "a side without ids": (
        lambda: vr.adapt(VALUES[:, 1:], LOG, user_ids=USERS), UnknownIdError,
        r"^the matrix has 39 columns and the log 40 items: say whose they are, item_ids=",
    ),
    "a flat matrix": (lambda: vr.adapt(VALUES[0], LOG, user_ids=USERS), PredictionError, r"got shape \(40,\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_labels_that_are_not_the_logs_are_refused_in_one_line(case):
    act, error, message = REFUSED[case]
    check_refusal(act, error, message)
