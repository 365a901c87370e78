"""The losses of predictions, cell by cell: from logits where there are some, from probabilities elsewhere."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held, held_a_row
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.data.cells import CellValues
from verirec.data.parts import SHORT
from verirec.data.predictions import as_predictions
from verirec.engine import running_on
from verirec.engine.base import Serial
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.level_losses import LevelLosses
from verirec.exceptions import PredictionError, ScoreWarning
from verirec.losses import get_level_loss, get_loss

LOGITS = np.array([[-50.0, -3.0, 0.0, 50.0], [50.0, 0.5, -50.0, 2.0], [700.0, -700.0, 36.0, 38.0]])
SHAPE = LOGITS.shape
USERS, ITEMS = (axis.ravel() for axis in np.indices(SHAPE))
FACTORS = vr.Factors(LOGITS, np.eye(SHAPE[1]))


def losses_of(predictions, loss="log", **options):
    return CellLosses(as_predictions(predictions, *SHAPE), get_loss(loss), **options)


def softplus(z):
    return z + math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z))


def probability(z):
    return 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))


def of_all_cells(losses):
    """Give l(f, 0) and l(f, 1) of all cells, by pairs and by a block, which must agree."""
    by_pair, by_block = (
        losses.of_rows(USERS, ITEMS),
        losses.cells(np.arange(SHAPE[0])[:, None], np.arange(SHAPE[1])[None, :]),
    )
    for pairs, block in zip(by_pair, by_block, strict=True):
        np.testing.assert_allclose(block.ravel(), pairs, rtol=1e-14, atol=1e-15)
    negative, difference = by_pair
    return negative, negative + difference


@pytest.mark.parametrize(
    "factors",
    [
        FACTORS,
        (LOGITS, np.eye(4)),
        vr.Factors(LOGITS - 7, np.eye(4), np.full(3, 2.0), np.full(4, 4.0), 1.0),
        vr.Factors(LOGITS.astype(np.float32), np.eye(4, dtype=np.float32)),
    ],
    ids=["factors", "tuple", "constants", "single precision"],
)
def test_the_log_loss_of_logistic_factors_is_softplus_and_finite(factors):
    negative, positive = of_all_cells(losses_of(factors))
    assert np.isfinite([negative, positive]).all()
    flat = LOGITS.ravel().tolist()
    assert negative.tolist() == pytest.approx([softplus(z) for z in flat], rel=1e-12, abs=1e-12)
    assert positive.tolist() == pytest.approx([softplus(-z) for z in flat], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("clip", [1e-6, 0.1])
def test_with_a_clip_it_is_that_of_clipped_probabilities(clip):
    losses = losses_of(FACTORS, clip=clip)
    negative, positive = of_all_cells(losses)
    clipped = [min(max(probability(z), clip), 1 - clip) for z in LOGITS.ravel().tolist()]
    assert negative.tolist() == pytest.approx([LOSSES["log"](f, 0) for f in clipped], rel=1e-9)
    assert positive.tolist() == pytest.approx([LOSSES["log"](f, 1) for f in clipped], rel=1e-9)
    assert losses.count_clipped(USERS, ITEMS) == sum(
        not clip <= probability(z) <= 1 - clip for z in LOGITS.ravel().tolist()
    )


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_other_losses_of_logistic_factors_are_of_their_probabilities(loss):
    negative, positive = of_all_cells(losses_of(FACTORS, loss))
    values = [probability(z) for z in LOGITS.ravel().tolist()]
    assert negative.tolist() == pytest.approx([LOSSES[loss](f, 0) for f in values], rel=1e-12, abs=1e-15)
    assert positive.tolist() == pytest.approx([LOSSES[loss](f, 1) for f in values], rel=1e-12, abs=1e-15)


def test_factors_without_a_link_are_probabilities_themselves():
    values = np.random.default_rng(0).uniform(0.1, 0.9, SHAPE)
    identity = vr.Factors(values, np.eye(SHAPE[1]), link="identity")
    for one, other in zip(of_all_cells(losses_of(identity)), of_all_cells(losses_of(values)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    outside = vr.Factors(LOGITS, np.eye(SHAPE[1]), link="identity")
    message = (
        "^the log loss needs probabilities strictly between 0 and 1; .*; these look like scores or ratings: calibrate "
    )
    check_refusal(lambda: losses_of(outside).of_rows(USERS, ITEMS), PredictionError, message)


def test_wrong_predictions_are_counted_among_the_pairs_asked_for_or_over_the_grid():
    values = np.full(SHAPE, 0.5)
    values[0, 0] = values[2, 3] = 1
    one = (np.array([0]), np.array([0]))
    message = r"; {} predictions are not \(first: .*\); clip=1e-6 would keep them inside$"
    for counts_grid, said in ((False, "1 of 1"), (True, "2 of 12")):
        losses = losses_of(values, counts_grid=counts_grid)
        check_refusal(lambda losses=losses: losses.of_rows(*one), PredictionError, message.format(said))


@pytest.mark.parametrize(
    ("value", "hint"),
    [(0.0, "clip=1e-6"), (1.0, "clip=1e-6"), (1 + 1e-9, "clip=1e-6"), (-1e-9, "clip=1e-6"), (1.01, "these look like")]
    + [
        (value, "these look like scores or ratings: calibrate makes probabilities of them")
        for value in (-0.1, 5.0, 37.5)
    ],
)
@pytest.mark.parametrize("counts_grid", [False, True])
def test_only_what_is_outside_by_rounding_should_be_clipped(value, hint, counts_grid):
    values = np.full(SHAPE, 0.5)
    values[0, 0], values[2, 3] = 0.0, value
    losses = losses_of(values, counts_grid=counts_grid)
    check_refusal(lambda: losses.of_rows(USERS, ITEMS), PredictionError, rf" predictions are not \(.*\); {hint}")


@pytest.mark.parametrize(("loss", "clip"), [("squared", None), ("squared", 0.1), ("log", 0.1)])
def test_a_clip_is_named_only_where_it_would_help(loss, clip):
    """NaN cannot be clipped, and only the log loss minds 0 and 1."""
    values = as_predictions(lambda users, items: np.full(np.broadcast(users, items).shape, 0.5), *SHAPE)
    values.cells = lambda users, items: np.full(np.broadcast(users, items).shape, np.nan)
    losses = CellLosses(values, get_loss(loss), clip=clip)
    check_refusal(lambda: losses.of_rows(USERS, ITEMS), PredictionError, r" loss needs .* are not \(first: [^;]*\)$")


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_a_clip_makes_no_probabilities_of_scores(loss):
    scores = np.full(SHAPE, 0.5)
    scores[1, 2] = 7.0
    losses = losses_of(scores, loss, clip=1e-6)
    check_refusal(lambda: losses.of_rows(USERS, ITEMS), PredictionError, "from 0.5 to 7; these look like scores")
    # One that is 1 but for rounding is a probability.
    scores[1, 2] = 1 + 1e-9
    assert np.isfinite(losses_of(scores, loss, clip=1e-6).of_rows(USERS, ITEMS)).all()


class Batched(CellValues):
    """A model that says something else of a pair in each batch, and takes 128 bytes a pair on the way."""

    shape = (1_000, 2_000)
    parallel = False

    def cells(self, users, items):
        """Return a probability that depends on who else is asked about."""
        shares = np.ones((users.size, 16)) * (1 + users.ravel()[:, None]) / (2 + users.max())
        return (0.5 * shares.mean(axis=1)).reshape(users.shape)


class Elsewhere(Serial):
    """This process, taken for others."""

    elsewhere, workers = True, 2


def pairs_of(length):
    return np.divmod(np.arange(length, dtype=np.int32), Batched.shape[1])


@pytest.mark.parametrize("parallel", [False, True])
def test_a_model_is_asked_about_the_same_pairs_at_once_on_every_engine(parallel, monkeypatch):
    monkeypatch.setattr(Batched, "parallel", parallel)
    losses = CellLosses(Batched(), get_loss("squared"))
    here = losses.of_rows(*pairs_of(20 * SHORT + 5))
    with running_on(Elsewhere()):
        there = losses.of_rows(*pairs_of(20 * SHORT + 5))
    assert [one.tobytes() for one in here] == [one.tobytes() for one in there]


def test_what_comes_from_workers_is_not_held_as_long_as_the_log(in_small_parts):
    def work(log):
        random = np.random.default_rng(0)
        factors = vr.Factors(*(random.normal(size=(size, 4)) for size in log.shape))
        losses = CellLosses(as_predictions(factors, *log.shape), get_loss("log"))
        return lambda: losses.of_rows(log.users, log.items)

    with running_on(Elsewhere()):
        assert held_a_row(work) < HALF_A_NUMBER


def log_of(length):
    users, items = pairs_of(length)
    return vr.FeedbackLog.from_arrays(users, items, 1 + items % 3, n_users=1_000, n_items=2_000, levels=(1, 2, 3))


BINARY, STARS = (
    CellLosses(Batched(), get_loss("squared"), 0.1),
    LevelLosses(Batched(), get_level_loss("squared", (1, 2, 3))),
)
ASKED = {
    "losses": lambda log: BINARY.of_rows(log.users, log.items),
    "clipped": lambda log: BINARY.count_clipped(log.users, log.items),
    "losses of stars": lambda log: STARS.of_rows(log.users, log.items),
    "clipped stars": lambda log: replace(STARS, clip=0.0).count_clipped(log.users, log.items),
    "scale": lambda log: quiet(STARS.warn_of_scale, log),
}


def quiet(function, *given):
    with warnings.catch_warnings(action="ignore"):
        return function(*given)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_model_is_not_asked_about_all_rows_at_once(asked, limited):
    """What is found is on disk; whatever the length, no more than a part is in memory."""
    asked(log_of(9))
    few, many = log_of(4 * SHORT), log_of(16 * SHORT)
    short, long = held(lambda: asked(few)), held(lambda: asked(many))
    assert long - short < 8 * 12 * SHORT


def test_stars_outside_of_the_scale_are_counted_in_all_parts():
    log = log_of(3 * SHORT)
    with pytest.warns(ScoreWarning, match="of 196,608 of 196,608 logged pairs are outside of the scale"):
        STARS.warn_of_scale(log)
    assert replace(STARS, clip=0.0).count_clipped(log.users, log.items) == 3 * SHORT


@pytest.mark.parametrize(
    ("wrong", "told"), [(1.0, "; 2 of 200,000 predictions are not "), (np.nan, "; 2 of 200,000 are not ")]
)
def test_wrong_predictions_are_counted_among_all_pairs_where_a_model_is_asked_part_by_part(wrong, told):
    def predicted(users, items):
        return np.where((users % 60 == 3) & (items == 7), wrong, 0.5)

    losses = CellLosses(as_predictions(predicted, 1_000, 2_000), get_loss("log"))
    check_refusal(lambda: losses.of_rows(*pairs_of(200_000)), PredictionError, told)


def identical(users, items):
    return np.full(len(users), 7.0)


def lacking(users, items):
    return np.where((users % 60 == 3) & (items == 7), np.nan, 0.5)


@pytest.mark.parametrize("predicted", [identical, lacking], ids=["scores", "none for some pairs"])
@pytest.mark.parametrize(("loss", "clip"), [("log", None), ("squared", 0.1)])
def test_what_is_wrong_is_not_counted_over_all_rows_at_once(predicted, loss, clip, in_small_parts):
    def work(log):
        losses = CellLosses(as_predictions(predicted, *log.shape), get_loss(loss), clip=clip)

        def refused():
            with pytest.raises(PredictionError):
                losses.of_rows(log.users, log.items)

        return refused

    assert held_a_row(work) < HALF_A_NUMBER


def test_how_far_scores_go_is_told_of_all_parts():
    scores = as_predictions(lambda users, items: np.where(users > 0, 2.0 + users, 0.5), 1_000, 2_000)
    losses = CellLosses(scores, get_loss("log"), clip=1e-6)
    check_refusal(lambda: losses.of_rows(*pairs_of(200_000)), PredictionError, "go from 0.5 to 101; these look like")
