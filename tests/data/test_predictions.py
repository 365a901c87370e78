import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec import Factors
from verirec.data import as_predictions
from verirec.data.cells import DenseCells
from verirec.exceptions import ParameterError, PositionError, PredictionError

N_USERS, N_ITEMS = 4, 5
RANDOM = np.random.default_rng(0)
U, V = RANDOM.normal(size=(N_USERS, 3)), RANDOM.normal(size=(N_ITEMS, 3))
B_USER, B_ITEM = RANDOM.normal(size=N_USERS), RANDOM.normal(size=N_ITEMS)


def dense(users=U, items=V, user_constants=0.0, item_constants=0.0, constant=0.0):
    sums = users @ items.T + np.reshape(user_constants, (-1, 1)) + np.reshape(item_constants, (1, -1)) + constant
    return 1 / (1 + np.exp(-sums))


SCORES = dense()
SHUFFLED = RANDOM.permutation(N_USERS * N_ITEMS)
FORMS = {
    "dense": (SCORES, SCORES),
    "nested lists": (SCORES.tolist(), SCORES),
    "frame": (pd.DataFrame(SCORES), SCORES),
    "triples": ((SHUFFLED // N_ITEMS, SHUFFLED % N_ITEMS, SCORES.ravel()[SHUFFLED]), SCORES),
    "function": (lambda users, items: SCORES[users, items], SCORES),
    "function giving a list": (lambda users, items: SCORES[users, items].tolist(), SCORES),
    "factors": (Factors(U, V), SCORES),
    "two factors": ((U, V), SCORES),
    "factors and constants": ((U, V, B_USER, B_ITEM), dense(user_constants=B_USER, item_constants=B_ITEM)),
    "some constants": ((U, V, None, B_ITEM), dense(item_constants=B_ITEM)),
    "all of it": (Factors(U, V, B_USER, B_ITEM, 0.7), dense(U, V, B_USER, B_ITEM, 0.7)),
    "identity": (Factors(U, V, link="identity"), U @ V.T),
    "float32 factors": (Factors(U.astype("f4"), V.astype("f4")), dense(U.astype("f4"), V.astype("f4"))),
    "integers": (np.arange(20).reshape(4, 5), np.arange(20.0).reshape(4, 5)),
}


@pytest.mark.parametrize("form", FORMS)
@given(users=st.lists(st.integers(0, N_USERS - 1), max_size=6), items=st.lists(st.integers(0, N_ITEMS - 1), max_size=6))
def test_every_form_agrees_with_its_dense_matrix_on_pairs_and_blocks(form, users, items):
    given_form, reference = FORMS[form]
    predictions = as_predictions(given_form, N_USERS, N_ITEMS)
    rows, columns = np.array(users, int), np.array(items, int)
    block = predictions.block(rows, columns)
    assert block.shape == (len(users), len(items))
    assert block == pytest.approx(reference[np.ix_(rows, columns)], rel=1e-6)
    short = min(len(users), len(items))
    pairs = predictions.at(rows[:short], columns[:short])
    assert pairs.dtype == np.float64
    assert pairs == pytest.approx(reference[rows[:short], columns[:short]], rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_grid_is_one_block(form):
    given_form, reference = FORMS[form]
    whole = as_predictions(given_form, N_USERS, N_ITEMS).block(np.arange(N_USERS), np.arange(N_ITEMS))
    assert whole == pytest.approx(reference, rel=1e-6)


def test_cell_values_are_taken_as_they_are():
    cells = DenseCells(SCORES)
    assert as_predictions(cells, N_USERS, N_ITEMS) is cells


def test_extreme_sums_stay_probabilities():
    extreme = as_predictions(Factors(np.array([[1e4]]), np.array([[1.0], [-1.0]])), 1, 2)
    assert extreme.block([0], [0, 1]).tolist() == [[1.0, 0.0]]


BAD = {
    "transposed": (SCORES.T, PredictionError, r"^a dense array of predictions must have shape \(4, 5\); got \(5, 4\)$"),
    "flat": (SCORES.ravel(), PredictionError, r"must have shape \(4, 5\); got \(20,\): scores of some pairs"),
    "text": ("scores", PredictionError, r"Factors, all by position; got str$"),
    "nothing": (None, PredictionError, r"Factors, all by position; got NoneType$"),
    "objects": (
        SCORES.astype(object),
        PredictionError,
        r"^predictions must be a dense array of numbers, .*; got ndarray$",
    ),
    "dense NaN": (
        np.where(np.arange(20).reshape(4, 5) == 7, np.nan, SCORES),
        PredictionError,
        r"^the predictions must be finite; 1 of 20 are not \(first: the one at \[1, 2\]\)$",
    ),
    "dense infinity": (
        np.full((4, 5), np.inf),
        PredictionError,
        r"20 of 20 are not \(first: the one at \[0, 0\]\)$",
    ),
    "one part": (
        (SCORES,),
        PredictionError,
        r"^a tuple of predictions must be \(users, items, scores\), \(U, V\) or \(U, V, b_u, b_i\); got 1 parts$",
    ),
    "five parts": ((U, V, B_USER, B_ITEM, 0.0), PredictionError, r"got 5 parts$"),
    "lengths": (
        ([0, 1], [0, 1], [0.5]),
        PredictionError,
        r"^\(users, items, scores\) must have one length; got 2, 2 and \(1,\)$",
    ),
    "lengths of positions": (([0, 1], [0], [0.5, 0.5]), PredictionError, r"must have one length; got 2, 1 and \(2,\)$"),
    "NaN score": (
        ([0, 1], [0, 1], [0.5, np.nan]),
        PredictionError,
        r"^predictions' scores must be finite; 1 of 2 are not \(first: the one at \[1\]\)$",
    ),
    "repeated pair": (
        ([0, 1, 0, 2], [4, 2, 4, 2], [0.1, 0.2, 0.3, 0.4]),
        PredictionError,
        r"^predictions score 1 pairs more than once \(first: user 0, item 4\)$",
    ),
    "user outside": (
        ([0, 4], [0, 0], [0.5, 0.5]),
        PositionError,
        r"^predictions' users must be positions from 0 to 3; 1 of 2 is not \(row 1 has 4\)$",
    ),
    "item outside": (
        ([0, 1], [-1, 0], [0.5, 0.5]),
        PositionError,
        r"^predictions' items must be positions from 0 to 4; 1 of 2 is not \(row 0 has -1\)$",
    ),
    "user factors": ((U[:3], V), PredictionError, r"^user_factors must have shape \(4, 3\); got \(3, 3\)$"),
    "item factors": ((U, V[:, :2]), PredictionError, r"^item_factors must have shape \(5, 3\); got \(5, 2\)$"),
    "flat factors": ((U[:, 0], V[:, 0]), PredictionError, r"^user_factors must be a matrix; got shape"),
    "numbers as factors": ((1.0, 2.0), PredictionError, r"^user_factors must be a matrix; got shape"),
    "NaN factors": ((np.full_like(U, np.nan), V), PredictionError, r"^user_factors must be finite"),
    "text factors": ((U.astype(str), V), PredictionError, r"^user_factors must be numbers"),
    "user constants": ((U, V, B_ITEM, B_ITEM), PredictionError, r"^user_constants must have shape \(4,\); got \(5,\)$"),
    "item constants": ((U, V, B_USER, B_USER), PredictionError, r"^item_constants must have shape \(5,\); got \(4,\)$"),
}
BAD |= {
    "ragged": ([[0.5], [0.5, 0.5]], PredictionError, r"predictions"),
    "text scores": (
        ([0], [0], ["high"]),
        PredictionError,
        r"scores must be numbers",
    ),
    "pair three times": (
        ([0, 0, 0], [4, 4, 4], [0.1, 0.2, 0.3]),
        PredictionError,
        r"^predictions score 1 pairs more than once",
    ),
}


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [pytest.param(*case, id=name) for name, case in BAD.items()],
)
def test_bad_predictions_are_refused_in_one_line(predictions, error, message):
    with pytest.raises(error, match=message) as caught:
        as_predictions(predictions, N_USERS, N_ITEMS)
    assert caught.type is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"user_constants": np.full(4, np.nan)}, PredictionError, r"^user_constants must be finite; 4 of 4"),
        ({"link": "probit"}, ParameterError, r"^link must be one of identity, logistic; got 'probit'$"),
        ({"constant": np.nan}, PredictionError, r"constant"),
        ({"constant": "a"}, PredictionError, r"constant"),
        ({"item_factors": V[:, :2]}, PredictionError, r"^item_factors must have shape \(5, 3\); got \(5, 2\)$"),
    ],
)
def test_factors_are_checked_when_they_are_made(arguments, error, message):
    with pytest.raises(error, match=message):
        Factors(**{"user_factors": U, "item_factors": V} | arguments)


def test_factors_show_their_size_and_not_their_numbers():
    assert repr(Factors(U, V)) == "Factors(4 users x 5 items, 3 factors, logistic link)"


@pytest.mark.parametrize("kind", [np.int8, bool, np.float16])
def test_factors_of_narrow_types_do_not_wrap_or_overflow(kind):
    users, items = np.full((4, 3), 100).astype(kind), np.full((5, 3), 100).astype(kind)
    exact = users.astype(float) @ items.astype(float).T
    assert (
        as_predictions(Factors(users, items, link="identity"), 4, 5).block([0, 1], [2]).tolist()
        == exact[:2, 2:3].tolist()
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda users, items: 0.5, r"^the prediction function must give one number a pair, shape \(3,\); got \(\)$"),
        (lambda users, items: users[:2], r"must give one number a pair, shape \(3,\); got \(2,\)$"),
        (lambda users, items: np.ones((len(users), 1)), r"must give one number a pair, shape \(3,\); got \(3, 1\)$"),
        (lambda users, items: None, r"must give one number a pair"),
        (
            lambda users, items: np.where(items == 1, np.nan, 0.5),
            r"^the prediction function's result must be finite; 1 of 3 are not \(first: the one at \[1\]",
        ),
        (lambda users, items: np.full(len(users), "high"), r"must be numbers"),
    ],
)
def test_a_function_that_gives_something_else_is_refused_when_asked(function, message):
    predictions = as_predictions(function, N_USERS, N_ITEMS)
    with pytest.raises(PredictionError, match=message) as caught:
        predictions.at([0, 1, 2], [0, 1, 2])
    assert "\n" not in str(caught.value)


def test_a_function_is_asked_with_flat_arrays_of_one_length():
    shapes = []

    def predict(users, items):
        shapes.append((users.shape, items.shape))
        return users * 0.1

    as_predictions(predict, N_USERS, N_ITEMS).block([0, 1], [0, 1, 2])
    assert shapes == [((6,), (6,))]


def test_pairs_that_triples_do_not_cover_are_counted_and_the_first_is_named():
    predictions = as_predictions(([0, 3], [1, 2], [0.1, 0.2]), N_USERS, N_ITEMS)
    assert predictions.at([3, 0, 3], [2, 1, 2]).tolist() == [0.2, 0.1, 0.2]
    with pytest.raises(PredictionError) as caught:
        predictions.at([0, 2, 3], [1, 4, 4])
    assert str(caught.value) == ("predictions do not cover 2 of the 3 pairs that are needed (first: user 2, item 4)")
    with pytest.raises(PredictionError, match=r"cover 3 of the 4 pairs .*\(first: user 0, item 2\)$"):
        predictions.block([0, 1], [1, 2])


def test_no_triples_cover_nothing():
    predictions = as_predictions(([], [], []), N_USERS, N_ITEMS)
    assert predictions.at(np.empty(0, int), np.empty(0, int)).tolist() == []
    with pytest.raises(PredictionError, match=r"cover 1 of the 1 pairs"):
        predictions.at([0], [0])


def test_triples_have_no_score_for_an_item_beyond_the_grid():
    predictions = as_predictions(([1], [0], [0.9]), N_USERS, N_ITEMS)
    with pytest.raises((PredictionError, IndexError)):
        predictions.at([0], [N_ITEMS])


def test_what_is_covered_is_told_only_where_it_is_not_all():
    assert as_predictions(([1, 0], [2, 1], [0.5, 0.5]), 2, 3).covered.tolist() == [1, 5]
    whole = ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0.5] * 6)
    for predictions in (whole, np.full((2, 3), 0.5), lambda users, items: users / 10):
        assert as_predictions(predictions, 2, 3).covered is None


@pytest.mark.parametrize("users", [["ann", "bob"], [0, 1]])
def test_a_frame_of_other_columns_is_told_which_are_wanted(users):
    frame = pd.DataFrame({"who": users, "what": [0, 1], "how": [0.2, 0.4]})
    with pytest.raises(PredictionError, match="a frame of pairs must have columns user, item and score"):
        as_predictions(frame, 2, 2)
