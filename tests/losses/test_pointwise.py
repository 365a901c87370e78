import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import check_refusal
from verirec.exceptions import ParameterError, PredictionError
from verirec.losses import Loss, get_loss

BY_HAND = {
    "log": lambda f, y: -math.log(f) if y else -math.log1p(-f),
    "squared": lambda f, y: (f - y) ** 2,
    "absolute": lambda f, y: abs(f - y),
}
INSIDE = st.floats(1e-300, 1, exclude_max=True)


@pytest.mark.parametrize("name", BY_HAND)
@given(draws=st.lists(st.tuples(INSIDE, st.integers(0, 1)), min_size=1))
def test_each_loss_is_its_formula_elementwise(name, draws):
    predictions, labels = (np.array(column) for column in zip(*draws, strict=True))
    expected = [BY_HAND[name](f, y) for f, y in draws]
    assert get_loss(name).of(predictions, labels) == pytest.approx(expected, rel=1e-12)


@given(st.floats(1e-300, 1e-3))
def test_log_loss_next_to_0_and_1_is_right_to_1e_16(f):
    assert get_loss("log").of(np.array([f]), np.array([0]))[0] == pytest.approx(-math.log1p(-f), rel=0, abs=1.2e-16)
    assert get_loss("log").of(np.array([f]), np.array([1]))[0] == pytest.approx(-math.log(f), rel=1e-15)


def test_losses_keep_the_shape_of_a_block():
    predictions = np.full((2, 3), 0.5)
    assert get_loss("absolute").of(predictions, np.eye(2, 3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([0.5, 0.0, 0.5], r"1 of 3 predictions are not \(first: 0\)$"),
        ([1.0, 0.5], r"1 of 2 predictions are not \(first: 1\)$"),
        ([-0.5, 0.5, 1.5, np.nan, 7], r"4 of 5 predictions are not \(first: -0\.5, 1\.5, nan\)$"),
        ([[0.5, np.inf]], r"1 of 2 predictions are not \(first: inf\)$"),
    ],
)
def test_log_loss_refuses_what_is_not_a_probability_and_says_how_many_are_not(predictions, message):
    values = np.array(predictions)
    with pytest.raises(PredictionError, match=rf"^the log loss needs probabilities strictly .*; {message}") as caught:
        get_loss("log").of(values, np.ones_like(values))
    assert "\n" not in str(caught.value)


def softplus(z):
    return z + math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z))


@given(st.lists(st.floats(-800, 800), min_size=1))
def test_the_log_loss_of_logits_is_softplus_however_large_they_are(logits):
    given_ = np.array(logits)
    negative, difference = get_loss("log").from_logits(given_)
    assert negative.tolist() == pytest.approx([softplus(z) for z in logits], rel=1e-15, abs=2.3e-16)
    assert (negative + difference).tolist() == pytest.approx([softplus(-z) for z in logits], rel=1e-12, abs=1e-12)
    assert given_.tolist() == logits


@given(st.lists(st.floats(-800, 800), max_size=70), st.sampled_from([(np.float64, 1e-15), (np.float32, 1e-7)]))
def test_totals_halfway_between_the_classes_are_those_of_single_logits(logits, precision):
    dtype, within = precision
    given_ = np.array([logits, logits[::-1]], dtype).reshape(2, -1)
    found = get_loss("log").halfway_totals(given_)
    exact = math.fsum((softplus(z) + softplus(-z)) / 2 for z in given_[0].tolist())
    assert found.dtype == np.float64
    assert found.tolist() == pytest.approx([exact, exact], rel=within, abs=within * (1 + len(logits)))


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_totals_of_logits_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(PredictionError, match=r"^the logits of predictions must be finite"):
        get_loss("log").halfway_totals(np.array([[0.0] * 20, [0.0] * 19 + [wrong]]))


@pytest.mark.parametrize(
    "loss", ["squared", "absolute", lambda f, y: np.abs(f - y)], ids=["squared", "absolute", "own"]
)
def test_other_losses_are_of_probabilities_only(loss):
    assert get_loss(loss).from_logits is None


@pytest.mark.parametrize("name", ["squared", "absolute"])
def test_losses_that_are_finite_everywhere_take_any_number(name):
    get_loss(name).check(np.array([-3.0, 0.0, 1.0, 70.0]))


@pytest.mark.parametrize("name", ["squared", "absolute"])
def test_check_refuses_predictions_on_which_the_loss_is_not_finite(name):
    with pytest.raises(PredictionError):
        get_loss(name).check(np.array([0.5, np.nan]))


def test_get_loss_leaves_a_loss_as_it_is():
    loss = Loss("mine", np.abs, np.square)
    assert get_loss(loss) is loss


@given(st.lists(st.tuples(INSIDE, st.integers(0, 1)), min_size=1))
def test_a_function_of_predictions_and_labels_becomes_the_same_loss(draws):
    def brier(f, y):
        return (f - y) ** 2

    predictions, labels = (np.array(column) for column in zip(*draws, strict=True))
    wrapped = get_loss(brier)
    assert wrapped.name == "brier"
    assert wrapped.of(predictions, labels).tolist() == pytest.approx(
        get_loss("squared").of(predictions, labels).tolist()
    )


@pytest.mark.parametrize("loss", ["hinge", "", 3, None, ("log",)])
def test_an_unknown_loss_is_refused_with_the_known_ones(loss):
    with pytest.raises(ParameterError) as caught:
        get_loss(loss)
    assert str(caught.value) == f"loss must be one of absolute, log, squared or a function of (f, y); got {loss!r}"


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            lambda f, y: np.mean((f - y) ** 2),
            r"must give a finite number for each prediction, shape \(2,\); got shape \(\)",
        ),
        (lambda f, y: f * np.nan, r"got shape \(2,\) with 2 not finite"),
        (lambda f, y: f + 1j, r"must give numbers; got complex128"),
        (lambda f, y: None, r"must give numbers; got object"),
        (lambda f, y: np.ones((3, 2)), r"got shape \(3, 2\)"),
    ],
)
def test_a_loss_of_ones_own_must_give_a_number_for_each_prediction(loss, message):
    with pytest.raises(PredictionError, match=message):
        get_loss(loss).of(np.array([0.2, 0.4]), np.array([0, 1]))


def test_a_loss_that_works_in_place_spoils_nothing():
    in_place = get_loss(lambda f, y: np.abs(np.subtract(f, y, out=f)))
    assert in_place.of(np.array([0.25, 0.25]), np.array([1, 0])).tolist() == [0.75, 0.25]


@pytest.mark.parametrize("name", BY_HAND)
@given(predictions=st.lists(INSIDE, min_size=1))
def test_halves_are_the_loss_against_1_and_against_0(name, predictions):
    if_positive, if_negative = get_loss(name).halves(np.array(predictions))
    assert if_positive.tolist() == pytest.approx([BY_HAND[name](f, 1) for f in predictions], rel=1e-12)
    assert if_negative.tolist() == pytest.approx([BY_HAND[name](f, 0) for f in predictions], rel=1e-12)


def test_halves_of_a_function_are_the_function_at_both_labels():
    def lopsided(f, y):
        return 3 * y * (1 - f) + (1 - y) * f

    if_positive, if_negative = get_loss(lopsided).halves(np.array([[0.25, 0.5]]))
    assert (if_positive.tolist(), if_negative.tolist()) == ([[2.25, 1.5]], [[0.25, 0.5]])


def test_halves_of_nothing_are_nothing():
    assert [half.shape for half in get_loss("log").halves(np.empty((0, 3)))] == [(0, 3), (0, 3)]


def test_finite_halves_are_kept_without_a_word_even_if_their_sum_is_not_finite():
    large = np.full(3, 1.2e154)
    assert get_loss("squared").halves(large)[1].tolist() == (large**2).tolist()


@pytest.mark.parametrize(
    ("loss", "predictions", "message"),
    [
        ("log", [0.5, 0.0], r"^the log loss needs probabilities strictly between 0 and 1; 1 of 2 predictions are not"),
        ("log", [1.0], r"^the log loss needs probabilities .*; 1 of 1 predictions are not \(first: 1\)$"),
        ("log", [-0.5], r"^the log loss needs probabilities .*; 1 of 1 predictions are not \(first: -0\.5\)$"),
        ("squared", [0.5, math.nan], r"^the squared loss needs finite numbers; 1 of 2 predictions are not"),
        ("squared", [1e200], r"^the squared loss must give a finite number for each prediction, .* with 1 not finite$"),
        ("absolute", [math.inf, -math.inf], r"^the absolute loss needs finite numbers; 2 of 2 predictions are not"),
        (lambda f, y: f.sum(), [0.5, 0.5], r"must give a finite number for each prediction, shape \(2,\); got shape"),
        (lambda f, y: np.where(y == 1, f, np.nan), [0.5, 0.5], r"shape \(2,\) with 2 not finite$"),
    ],
)
def test_halves_that_are_not_finite_are_refused_whatever_the_labels_would_have_been(loss, predictions, message):
    check_refusal(lambda: get_loss(loss).halves(np.array(predictions)), PredictionError, message)
