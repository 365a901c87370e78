"""A world is one truth, however it is read, and its draws have the probabilities it states."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import bins_of, fits, z_scores
from plain_formulas import inaccuracy
from refusals import check_refusal
from verirec import Factors, NoiseRates, simulate
from verirec.exceptions import MemoryBudgetError, ParameterError, PositionError, PredictionError
from verirec.simulate.selection import LogisticSelection

SHAPE = (60, 80)
BYTES_PER_CELL = 19
FIELDS = ("preferences", "true_labels", "propensities", "observed", "noisy_labels")
MAKERS = {
    "separable": lambda seed, **rest: simulate.world(*SHAPE, random_state=seed, **rest),
    "narrow": lambda seed, **rest: simulate.world(*SHAPE, weak_separability=False, random_state=seed, **rest),
    "matrix": lambda seed, **rest: simulate.on_matrix(
        np.random.default_rng(5).random(SHAPE), random_state=seed, **rest
    ),
    "levels": lambda seed, **rest: simulate.on_levels(
        np.random.default_rng(5).integers(1, 6, SHAPE), random_state=seed, **rest
    ),
}


@pytest.fixture(params=MAKERS, scope="module")
def make(request):
    return MAKERS[request.param]


@pytest.fixture(scope="module")
def world(make):
    return make(0)


@pytest.fixture(scope="module")
def crowd():
    """Enough cells for rates to be told apart."""
    return simulate.world(
        400, 500, noise_rates=NoiseRates(0.25, 0.1), observed=0.15, selectivity=2, rank=4, random_state=11
    )


def whole(world):
    return simulate.WorldCells(*(getattr(world, field) for field in FIELDS))


def assert_same_cells(left, right):
    """Expect the same draws exactly, and the same probabilities but for how a sum was rounded."""
    for field in ("true_labels", "observed", "noisy_labels"):
        np.testing.assert_array_equal(getattr(left, field), getattr(right, field), err_msg=field)
    for field in ("preferences", "propensities"):
        np.testing.assert_allclose(getattr(left, field), getattr(right, field), rtol=1e-10, atol=1e-14, err_msg=field)


def pieces(cuts, size):
    return np.split(np.arange(size), sorted(cuts))


# The same truth, however it is read.


@pytest.mark.parametrize("state", [lambda: 3, lambda: np.int64(3), lambda: np.random.default_rng(3)])
def test_the_same_seed_makes_the_same_world(make, state):
    first, second = make(3), make(state())
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
    for column in ("users", "items", "labels"):
        np.testing.assert_array_equal(getattr(first.log, column), getattr(second.log, column))


def test_another_seed_makes_another_world(make):
    first, second = make(3), make(4)
    for field in ("true_labels", "observed", "noisy_labels"):
        assert (getattr(first, field) != getattr(second, field)).any(), field


def test_no_seed_makes_a_new_world_each_time(make):
    assert (make(None).observed != make(None).observed).any()


@given(
    user_cuts=st.sets(st.integers(1, SHAPE[0] - 1), max_size=4),
    item_cuts=st.sets(st.integers(1, SHAPE[1] - 1), max_size=4),
)
def test_any_partition_into_blocks_gives_the_whole_matrices(world, user_cuts, item_cuts):
    rows = [
        [world.block(users, items) for items in pieces(item_cuts, SHAPE[1])] for users in pieces(user_cuts, SHAPE[0])
    ]
    assembled = [np.block([[getattr(part, field) for part in row] for row in rows]) for field in FIELDS]
    assert_same_cells(simulate.WorldCells(*assembled), whole(world))


@given(st.lists(st.tuples(st.integers(0, SHAPE[0] - 1), st.integers(0, SHAPE[1] - 1)), min_size=1, max_size=60))
def test_single_pairs_in_any_order_and_repeated_agree_with_the_whole_matrices(world, pairs):
    users, items = map(list, zip(*pairs, strict=True))
    assert_same_cells(
        world.at(users, items), simulate.WorldCells(*(getattr(world, name)[users, items] for name in FIELDS))
    )


@given(
    users=st.lists(st.integers(0, SHAPE[0] - 1), min_size=1, max_size=9),
    items=st.lists(st.integers(0, SHAPE[1] - 1), min_size=1, max_size=9),
)
def test_blocks_of_scattered_users_and_items_agree_with_the_whole_matrices(world, users, items):
    place = np.ix_(users, items)
    assert_same_cells(world.block(users, items), simulate.WorldCells(*(getattr(world, name)[place] for name in FIELDS)))


def test_the_log_is_the_noisy_labels_of_the_observed_pairs_in_order(world):
    users, items = np.nonzero(world.observed)
    np.testing.assert_array_equal(world.log.users, users)
    np.testing.assert_array_equal(world.log.items, items)
    np.testing.assert_array_equal(world.log.labels, world.noisy_labels[users, items])


def test_a_grid_of_several_blocks_has_one_log_in_order():
    world = simulate.world(1_100, 1_000, observed=0.01, random_state=0)
    users, items = np.nonzero(world.observed)
    np.testing.assert_array_equal(world.log.users, users)
    np.testing.assert_array_equal(world.log.items, items)
    np.testing.assert_array_equal(world.log.labels, world.noisy_labels[users, items])


def test_the_whole_matrices_have_the_stated_shape_and_kind_and_cannot_be_written_to(world):
    for field, kind in zip(FIELDS, (np.float64, np.int8, np.float64, np.bool_, np.int8), strict=True):
        matrix = getattr(world, field)
        assert (matrix.shape, matrix.dtype) == (SHAPE, np.dtype(kind)), field
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 0


@pytest.mark.parametrize(
    "kind",
    [
        "separable",
        "narrow",
        "matrix",
        "levels",
    ],
)
def test_writing_to_what_a_block_gave_does_not_change_the_world(kind):
    world, untouched = MAKERS[kind](0), MAKERS[kind](0)
    for field in world.block(np.arange(4), np.arange(4)):
        if field.flags.writeable:
            field[...] = 0
    assert_same_cells(world.block([0, 1, 2], [0, 2, 3]), untouched.block([0, 1, 2], [0, 2, 3]))


def test_the_levels_of_a_world_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        MAKERS["levels"](0).levels[0, 0] = 5


def test_a_world_says_its_size_its_share_and_its_rates():
    assert repr(MAKERS["separable"](0)).startswith("World(60 users x 80 items, ")
    assert "rho01=0.2, rho10=0.1" in repr(MAKERS["separable"](0))


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda world: world.at([-1], [0]), PositionError),
        (lambda world: world.block([0], [-1]), PositionError),
        (lambda world: world.at([SHAPE[0]], [0]), PositionError),
        (lambda world: world.block([0], [SHAPE[1]]), PositionError),
        (lambda world: world.at([0.5], [0]), PositionError),
        (lambda world: world.at(0, 0), PositionError),
        (lambda world: world.at([0, 1], [0]), ParameterError),
        (lambda world: world.at([0, 1], [0, 1, 2]), ParameterError),
        (lambda world: world.block(0, [0]), (ParameterError, PositionError)),
    ],
)
def test_positions_outside_the_world_are_refused_in_one_line(read, error):
    check_refusal(lambda: read(MAKERS["separable"](0)), error, r"users|items")


# The draws have the stated probabilities.


def test_true_labels_are_drawn_with_their_preference(crowd):
    assert fits(z_scores(crowd.true_labels, crowd.preferences, bins_of(crowd.preferences, 20)))


def test_sure_preferences_are_never_drawn_otherwise(crowd):
    assert (crowd.true_labels[crowd.preferences == 0] == 0).all()
    assert (crowd.true_labels[crowd.preferences == 1] == 1).all()


def test_pairs_are_observed_with_their_propensity(crowd):
    assert fits(z_scores(crowd.observed, crowd.propensities, bins_of(crowd.propensities, 20)))


def test_each_user_and_each_item_is_observed_as_often_as_its_propensities_say(crowd):
    users, items = np.indices(crowd.propensities.shape)
    assert fits(z_scores(crowd.observed, crowd.propensities, users))
    assert fits(z_scores(crowd.observed, crowd.propensities, items))


@pytest.mark.parametrize("where", ["everywhere", "observed"])
@pytest.mark.parametrize(("true_label", "rate"), [(1, 0.25), (0, 0.1)])
def test_labels_flip_at_their_rate_whatever_the_preference(crowd, where, true_label, rate):
    cells = crowd.true_labels == true_label
    if where == "observed":
        cells = cells & crowd.observed
    flipped = (crowd.noisy_labels != crowd.true_labels)[cells]
    z = z_scores(flipped, np.full(flipped.size, rate), bins_of(crowd.preferences[cells], 10))
    assert fits(z)


@pytest.mark.parametrize(
    ("rates", "error_of_class"), [((0, 0), (0, 0)), ((0.3, 0), (1, 0)), ((0, 0.3), (0, 1)), ((0.4, 0.4), (1, 1))]
)
def test_a_rate_of_zero_flips_no_label_of_its_class(rates, error_of_class):
    world = simulate.world(*SHAPE, noise_rates=NoiseRates(*rates), random_state=0)
    for true_label, expected in zip((1, 0), error_of_class, strict=True):
        cells = world.true_labels == true_label
        assert (world.noisy_labels[cells] != true_label).any() == bool(expected)


def residuals(world):
    """Standardise the three draws of each cell."""
    flip_rate = np.where(world.true_labels == 1, world.noise_rates.rho01, world.noise_rates.rho10)
    flips = world.noisy_labels != world.true_labels
    draws = ((world.true_labels, world.preferences), (world.observed, world.propensities), (flips, flip_rate))
    with np.errstate(invalid="ignore"):
        return [np.nan_to_num((drawn - p) / np.sqrt(p * (1 - p))) for drawn, p in draws]


def correlation_z(left, right):
    products = np.ravel(left * right)
    return products.sum() / np.sqrt((products**2).sum())


def test_label_observation_and_flip_of_a_cell_are_drawn_independently(crowd):
    labels, observations, flips = residuals(crowd)
    assert fits([correlation_z(labels, observations), correlation_z(labels, flips), correlation_z(observations, flips)])


@pytest.mark.parametrize("lag", [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0)])
def test_neighbouring_cells_are_drawn_independently(crowd, lag):
    down, right = lag
    z = [
        correlation_z(draws[down:, right:], other[: draws.shape[0] - down, : draws.shape[1] - right])
        for draws in residuals(crowd)
        for other in residuals(crowd)
    ]
    assert fits(z)


# Size.


@pytest.fixture(scope="module")
def large():
    """A world, how many cells were visited to make it, and the most memory that it took."""
    cells, logits = [0], LogisticSelection.logits

    def counted(selection, users, items):
        found = logits(selection, users, items)
        cells[0] += found.size
        return found

    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogisticSelection, "logits", counted)
        world = simulate.world(300_000, 50_000, observed=2e-5, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return world, cells[0], peak


def test_a_large_world_takes_memory_and_work_by_its_log_and_not_by_its_grid(large):
    world, cells, peak = large
    assert peak < 4e8  # a dense matrix of bytes would be 15e9
    assert cells < 10 * len(world.log)  # of 15e9
    assert len(world.log) == pytest.approx(300_000 * 50_000 * 2e-5, rel=0.02)


def test_a_large_world_knows_its_own_log_and_its_blocks(large):
    world = large[0]
    rows = np.random.default_rng(0).integers(len(world.log), size=2_000)
    logged = world.at(world.log.users[rows], world.log.items[rows])
    assert logged.observed.all()
    np.testing.assert_array_equal(logged.noisy_labels, world.log.labels[rows])
    users, items = np.arange(299_900, 300_000), np.arange(49_900, 50_000)
    block = world.block(users, items)
    assert_same_cells(simulate.WorldCells(*(field[:, 7] for field in block)), world.at(users, np.full(100, items[7])))
    in_block = (world.log.users >= 299_900) & (world.log.items >= 49_900)
    assert block.observed.sum() == in_block.sum()


@pytest.mark.parametrize("field", FIELDS)
def test_whole_matrices_beyond_the_budget_are_refused_in_one_line(large, field):
    check_refusal(
        lambda: getattr(large[0], field), MemoryBudgetError, r"285\.0 GB, above the memory_budget of 1\.1 GB.*at\("
    )


def test_the_memory_budget_is_kept_to_the_byte(make):
    size = SHAPE[0] * SHAPE[1] * BYTES_PER_CELL
    assert make(0, memory_budget=size).preferences.shape == SHAPE
    with pytest.raises(MemoryBudgetError):
        _ = make(0, memory_budget=size - 1).preferences


def test_a_world_beyond_its_budget_still_gives_blocks_and_its_inaccuracy(make):
    small, usual = make(0, memory_budget=1), make(0)
    assert_same_cells(small.block(np.arange(9), np.arange(9)), usual.block(np.arange(9), np.arange(9)))
    half = np.full(SHAPE, 0.4)
    assert small.true_inaccuracy(half) == usual.true_inaccuracy(half)


def test_the_budgets_message_shows_that_the_need_is_larger_than_the_budget():
    with pytest.raises(MemoryBudgetError) as caught:
        _ = MAKERS["separable"](0, memory_budget=10_000).preferences
    needed, budget = re.findall(r"([\d.]+ [kMG]?B)", str(caught.value))
    assert needed != budget


# The true inaccuracy.


def forms_of_one_prediction():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(SHAPE[0], 3)), random.normal(size=(SHAPE[1], 3))
    constants = random.normal(size=SHAPE[0]), random.normal(size=SHAPE[1])
    matrix = np.array(inaccuracy.logistic_factors(*vectors, *constants))
    cells = random.permutation(matrix.size)
    users, items = np.divmod(cells, SHAPE[1])
    return {
        "dense": matrix,
        "nested lists": matrix.tolist(),
        "function": lambda users, items: matrix[users, items],
        "triples": (users, items, matrix[users, items]),
        "factors": Factors(*vectors, *constants),
        "tuple of factors": (*vectors, *constants),
        "identity factors": Factors(matrix, np.eye(SHAPE[1]), link="identity"),
        "factors with a constant": Factors(*vectors, constants[0] - 2, constants[1], constant=2.0),
    }


FORMS = forms_of_one_prediction()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", inaccuracy.LOSSES)
def test_true_inaccuracy_is_the_double_loop_for_every_form_of_prediction(world, form, loss):
    expected = inaccuracy.true_inaccuracy(FORMS["dense"], world.true_labels, inaccuracy.LOSSES[loss])
    assert world.true_inaccuracy(FORMS[form], loss=loss) == pytest.approx(expected, rel=1e-10)


def test_true_inaccuracy_takes_a_loss_of_ones_own(world):
    def hinge(f, y):
        return np.maximum(0, 1 - (2 * y - 1) * f)

    expected = inaccuracy.true_inaccuracy(FORMS["dense"], world.true_labels, hinge)
    assert world.true_inaccuracy(FORMS["dense"], loss=hinge) == pytest.approx(expected, rel=1e-10)


def test_true_inaccuracy_of_the_truth_is_zero_and_of_its_opposite_one(world):
    for loss in ("squared", "absolute"):
        assert world.true_inaccuracy(world.true_labels, loss=loss) == 0
        assert world.true_inaccuracy(1 - world.true_labels, loss=loss) == 1


def test_true_inaccuracy_of_a_grid_of_several_blocks_is_the_mean_over_all_of_it():
    world = simulate.world(1_100, 1_000, random_state=0)
    predictions = np.random.default_rng(0).random((1_100, 1_000))
    assert world.true_inaccuracy(predictions, loss="squared") == pytest.approx(
        ((predictions - world.true_labels) ** 2).mean(), rel=1e-10
    )


def with_cells(value, *cells):
    predictions = np.full(SHAPE, 0.5)
    for cell in cells:
        predictions[cell] = value
    return predictions


@pytest.mark.parametrize(
    ("predictions", "loss", "error", "message"),
    [
        (np.full((80, 60), 0.5), "log", PredictionError, r"shape \(60, 80\); got \(80, 60\)"),
        (with_cells(0.0, (0, 0), (5, 7), (59, 79)), "log", PredictionError, r"strictly between 0 and 1; 3 of 4,800"),
        (with_cells(1.0, (5, 7)), "log", PredictionError, r"strictly between 0 and 1; 1 of 4,800 .*first: 1\)"),
        (with_cells(1.5, (5, 7), (6, 8)), "log", PredictionError, r"strictly between 0 and 1; 2 of 4,800"),
        (with_cells(np.nan, (0, 1)), "squared", PredictionError, r"finite; 1 of 4,800 are not"),
        (np.full(SHAPE, "a"), "squared", PredictionError, "must be a dense array of numbers"),
        (FORMS["triples"][:2], "log", PredictionError, "user_factors must be a matrix"),
        (tuple(part[1:] for part in FORMS["triples"]), "log", PredictionError, "do not cover 1 of the 4,800 pairs"),
        ((1, 2, 3, 4, 5), "log", PredictionError, "got 5 parts"),
        (lambda users, items: 0.5, "log", PredictionError, "one number a pair"),
        (lambda users, items: np.full(len(users), np.inf), "squared", PredictionError, "must be finite"),
        (np.full(SHAPE, 0.5), "hinge", ParameterError, "absolute, log, squared or a function.*got 'hinge'"),
        (np.full(SHAPE, 0.5), None, ParameterError, "absolute, log, squared or a function.*got None"),
    ],
)
def test_predictions_that_cannot_be_judged_are_refused_in_one_line(predictions, loss, error, message):
    world = MAKERS["separable"](0)
    check_refusal(lambda: world.true_inaccuracy(predictions, loss=loss), error, message)


def test_wrong_probabilities_are_counted_over_the_whole_grid():
    world = simulate.world(1_100, 1_000, observed=0.01, random_state=0)
    predictions = np.full((1_100, 1_000), 0.5)
    predictions[[0, -1], 0] = 0
    check_refusal(lambda: world.true_inaccuracy(predictions), PredictionError, r"2 of 1,100,000 predictions")


def test_a_sampled_truth_is_near_the_whole_truth_and_repeatable():
    world = simulate.world(200, 300, random_state=0)
    whole = world.true_inaccuracy(lambda users, items: 0.2 + 0.6 * (items % 2))
    sampled = [
        world.true_inaccuracy(lambda users, items: 0.2 + 0.6 * (items % 2), sample=20_000, random_state=seed)
        for seed in (0, 0, 1)
    ]
    assert sampled[0] == sampled[1] != sampled[2]
    assert abs(sampled[0] - whole) < 4 * np.log(4) / np.sqrt(20_000)
