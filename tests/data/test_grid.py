"""The grid: its blocks, its cap, and that nothing else in the library walks over pairs."""

import ast
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from verirec.data.cells import CellValues, DenseCells
from verirec.data.grid import Grid
from verirec.data.predictions import as_predictions
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.places import places
from verirec.exceptions import GridSizeError, PredictionError, PropensityError
from verirec.losses import get_loss
from verirec.nuisance.noise_rates.anchor import grid_quantiles
from verirec.progress import shown_to
from verirec.simulate.selection import draw_by_cell

MATRIX = np.random.default_rng(0).random((30, 50))
HUGE = (1_000_000, 5_000)
SAMPLED = 100_000


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 2000))
def test_blocks_cover_the_grid_exactly_once_in_no_more_cells_than_allowed(n_users, n_items, block_cells):
    visits = np.zeros((n_users, n_items), int)
    for users, items in Grid((n_users, n_items), block_cells).blocks():
        assert 0 < len(users) * len(items) <= block_cells
        visits[users[:, None], items[None, :]] += 1
    assert (visits == 1).all()


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 200))
def test_blocks_go_row_by_row(n_users, n_items, block_cells):
    corners = [(int(users[0]), int(items[0])) for users, items in Grid((n_users, n_items), block_cells).blocks()]
    assert corners == sorted(corners)


def test_a_grid_of_one_block_is_one_block():
    assert [(len(users), len(items)) for users, items in Grid((1000, 1000)).blocks()] == [(1000, 1000)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("parallel", [True, False])
def test_results_come_in_the_order_of_the_blocks_whatever_the_threads(threads, parallel):
    grid = Grid(MATRIX.shape, 70, threads=threads)
    found = list(grid.map_blocks(lambda block: MATRIX[np.ix_(*block)].sum(), parallel=parallel))
    for ((users, items), result), (expected_users, expected_items) in zip(found, grid.blocks(), strict=True):
        assert users.tolist() == expected_users.tolist()
        assert items.tolist() == expected_items.tolist()
        assert result == MATRIX[np.ix_(users, items)].sum()


@pytest.mark.parametrize("block_cells", [1, 7, 50, 1 << 20])
def test_totals_means_and_extremes_are_those_of_the_matrix(block_cells):
    grid, cells = Grid(MATRIX.shape, block_cells), DenseCells(MATRIX)
    assert grid.total(cells.cells) == pytest.approx(MATRIX.sum(), rel=1e-13)
    assert grid.mean(cells.cells) == pytest.approx(MATRIX.mean(), rel=1e-13)
    assert grid.extremes(cells) == (MATRIX.min(), MATRIX.max())


def test_progress_counts_cells_up_to_all_of_them():
    said = []
    grid = Grid((5, 4), 8)
    with shown_to(lambda task: said.append((task.done, task.total, task.unit))):
        list(grid.map_blocks(lambda block: None))
        list(grid.map_cells(lambda users, items: users + items))
    assert said == 2 * [(done, 20, "pairs") for done in (0, 8, 16, 20, 20)]


def test_a_sample_is_of_pairs_all_over_the_grid():
    users, items = Grid((3, 7)).sample(20_000, np.random.default_rng(0))
    counts = np.bincount(users * 7 + items, minlength=21)
    assert abs(counts - 20_000 / 21).max() < 5 * np.sqrt(20_000 / 21)


# Beyond the cap


def test_a_larger_grid_is_walked_by_random_rectangles_or_refused_in_one_line():
    grid = Grid((3_000, 4_000), max_cells=11_999_999, sample_cells=3_000_000)
    drawn = list(grid.blocks(np.random.default_rng(0)))
    assert [(len(users), len(items)) for users, items in drawn] == [(1_000, 1_000)] * 3
    assert all(users.max() < 3_000 and items.max() < 4_000 for users, items in drawn)
    assert max(users.max() for users, _ in drawn) > 2_900
    with pytest.raises(GridSizeError) as caught:
        grid.blocks()
    assert str(caught.value) == (
        "3,000 users x 4,000 items are 12,000,000 pairs, above the 11,999,999 that may all be visited"
    )


def test_a_narrow_grid_has_narrow_rectangles_of_as_many_cells():
    grid = Grid((100_000, 20), max_cells=1_000_000, sample_cells=200_000)
    assert [(len(users), len(items)) for users, items in grid.blocks(np.random.default_rng(0))] == [(1_000, 20)] * 10


def test_totals_means_and_extremes_of_a_sample_are_near_those_of_all():
    random = np.random.default_rng(1)
    matrix = random.random((500, 600)) * random.random(600)
    grid, cells = Grid(matrix.shape, 10_000, max_cells=299_999, sample_cells=100_000), DenseCells(matrix)
    error = 4 * matrix.std() / np.sqrt(100_000)
    assert grid.mean(cells.cells) == pytest.approx(matrix.mean(), abs=error)
    assert grid.mean(cells.cells) != matrix.mean()
    assert grid.total(cells.cells) == pytest.approx(matrix.sum(), abs=error * matrix.size)
    low, high = grid.extremes(cells)
    assert matrix.min() <= low < 0.01
    assert 0.95 < high <= matrix.max()


class Counting(CellValues):
    """Values near a half that count the cells they are asked for."""

    def __init__(self, shape=HUGE):
        self.shape, self.visited = shape, 0

    def cells(self, users, items):
        shape = np.broadcast_shapes(users.shape, items.shape)
        self.visited += int(np.prod(shape))
        return np.broadcast_to(np.asarray(0.25 + 0.5 * ((users % 7) / 7)), shape)


@pytest.fixture(scope="module")
def huge():
    """A log of a few rows on a grid of 5 billion cells."""
    random = np.random.default_rng(0)
    users, items = random.choice(HUGE[0], 200, replace=False), random.integers(HUGE[1], size=200)
    return vr.FeedbackLog.from_arrays(users, items, np.arange(200) % 2, n_users=HUGE[0], n_items=HUGE[1])


@pytest.fixture
def quick(monkeypatch):
    """Let samples of large grids be small: that there are any is what is tested."""
    for module in [module for module in sys.modules.values() if getattr(module, "Grid", None) is Grid]:
        monkeypatch.setattr(module, "Grid", partial(Grid, sample_cells=SAMPLED))


class Wrong(Counting):
    """Probabilities of which some are 1."""

    def cells(self, users, items):
        return np.where(users % 1000 == 0, 1.0, super().cells(users, items))


WALKS = {
    "inverse_total": lambda cells, log: vr.GivenPropensity(cells).inverse_total,
    "extremes": lambda cells, log: Grid(cells.shape).extremes(cells),
    "anchor extremes": lambda cells, log: anchors(cells, log, "extremes"),
    "anchor quantiles": lambda cells, log: grid_quantiles(cells, 0.01),
    "diagnostics": lambda cells, log: vr.GivenPropensity(cells).diagnostics(log),
    "estimate": lambda cells, log: vr.estimate(cells, log, propensities=cells, estimators=["dr", "ips"]),
    "estimate with given errors": lambda cells, log: vr.estimate(
        cells, log, propensities=cells, estimators=["dr"], imputation=cells
    ),
    "ranking": lambda cells, log: places(cells, log, 5, max_cells=500_000),
}


def anchors(cells, log, rule):
    return vr.AnchorNoiseRates(rule=rule).fit(log, propensities=Counting(), h=cells)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")
@pytest.mark.parametrize("walk", WALKS)
def test_every_walk_over_five_billion_cells_is_capped(huge, quick, walk):
    cells = Counting()
    WALKS[walk](cells, huge)
    assert 0 < cells.visited <= 5 * SAMPLED


def test_checks_of_predictions_over_five_billion_cells_are_capped(quick):
    cells = Wrong()
    with pytest.raises(PredictionError, match=r"of 100,000 predictions are not"):
        CellLosses(cells, get_loss("log")).check_grid()
    assert cells.visited <= 3 * SAMPLED


class NoPeople:
    """Opinions of nobody in particular, of a world of any size."""

    def true_labels(self, users, items):
        return np.broadcast_to((users + items) % 2, np.broadcast_shapes(users.shape, items.shape))


@pytest.mark.parametrize("kind", [Counting, Wrong])
def test_the_true_inaccuracy_in_five_billion_cells_is_that_of_a_sample(huge, quick, kind):
    world, cells = vr.simulate.World(huge, NoPeople(), Counting()), kind()
    if kind is Wrong:
        with pytest.raises(PredictionError, match=r"of 100,000 predictions are not"):
            world.true_inaccuracy(cells)
    else:
        assert world.true_inaccuracy(cells, "absolute") == pytest.approx(0.5, abs=5e-3)
    assert cells.visited <= 3 * SAMPLED


def test_what_must_visit_all_pairs_refuses_five_billion_in_one_line(huge):
    random, cells = np.random.default_rng(0), Counting()
    with pytest.raises(GridSizeError, match=r"^1,000,000 users x 5,000 items are 5,000,000,000 pairs, above"):
        draw_by_cell(cells, *HUGE, random)
    features = vr.FeedbackLog.from_arrays(
        huge.users,
        huge.items,
        huge.labels,
        n_users=HUGE[0],
        n_items=HUGE[1],
        user_features=random.random((HUGE[0], 1)),
        item_features=random.random((HUGE[1], 1)),
    )
    with pytest.raises(PropensityError, match=r"visits all 5,000,000,000 pairs.*features=False$"):
        vr.LogisticPropensity().fit(features)
    assert cells.visited == 0


def test_users_ranked_beyond_the_cap_stand_for_the_others():
    world = vr.simulate.world(400, 60, observed=0.2, random_state=0)
    scores = as_predictions(world.preferences, 400, 60)
    everyone, some = places(scores, world.log, 60), places(scores, world.log, 60, max_cells=100 * 60 + 59)
    ranked = np.unique(world.log.users[np.isfinite(some.above)])
    assert some.scale == len(np.unique(world.log.users)) / 100
    assert len(ranked) == 100
    of_ranked = np.isin(world.log.users, ranked)
    assert some.above[of_ranked].tolist() == everyone.above[of_ranked].tolist()
    assert some.tied.tolist() == np.where(of_ranked, everyone.tied, 1).tolist()
    assert not np.isfinite(some.above[~of_ranked]).any()


def test_a_ranking_of_some_users_is_estimated_without_bias_and_with_its_own_error():
    world = vr.simulate.world(3_000, 40, observed=0.3, random_state=0)
    everyone = vr.estimate_ranking(world.preferences, world.log, propensities=world.propensity_values)
    known = {"propensities": world.propensity_values}
    some = vr.estimate_ranking(world.preferences, world.log, max_scores=750 * 40, **known)
    assert some["auc"].value == everyone["auc"].value
    for name in ("dcg@5", "ndcg@5", "precision@5", "recall@5"):
        # A quarter of the users: twice the error, of which that of everyone is a part.
        assert 1.5 < some[name].standard_error / everyone[name].standard_error < 2.5
        assert abs(some[name].value - everyone[name].value) < 3 * some[name].standard_error


# The only walk


SOURCE = Path(vr.__file__).parent


def walks_by_hand(tree):
    """Find loops and comprehensions over `range(start, stop, step)`: how a walk in blocks is written by hand."""
    for node in ast.walk(tree):
        looped = [node.iter] if isinstance(node, ast.For | ast.comprehension) else []
        for over in looped:
            if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "range" and len(over.args) == 3:
                yield over.lineno


def test_no_module_but_grid_walks_over_pairs_on_its_own():
    others = (
        "data/grid.py",
        # Long flat arrays, also as bytes and in files, messages to workers, and runs of a study.
        "data/parts.py",
        "scratch.py",
        "resuming/",
        "engine/base.py",
        "losses/looked_up.py",
        "studies/",
        "cli/",
        # One side at a time, against a sample of the other.
        "training/solvers/sweep/",
        # Top lists of the users that were asked for.
        "training/recommendations.py",
    )
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(others):
            assert not list(walks_by_hand(ast.parse(path.read_text(encoding="utf-8")))), name
