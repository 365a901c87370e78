"""Which pairs get logged: the stated propensities, and two ways of drawing that cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import chi2

from draws import fits, largest_z, z_scores
from verirec import simulate
from verirec.data.cells import DenseCells
from verirec.simulate import selection as selection_module
from verirec.simulate.selection import LogisticSelection, draw_by_cell

TINY = (6, 8)
DRAWS = 12_000


def tiny_selection(observed=0.15, selectivity=2.0):
    random = np.random.default_rng(3)
    preferences = np.round(random.random(TINY), 1)
    return LogisticSelection(DenseCells(preferences), TINY, observed, selectivity, random)


def refuse_to_draw_by_cell(*_):
    raise AssertionError("drawn cell by cell")


def by_thinning(selection, random):
    return selection.draw(random)


def by_cell(selection, random):
    return draw_by_cell(selection, *TINY, random)


def inclusions(draw, selection):
    """Draw many times; shape (DRAWS, cells)."""
    drawn = np.zeros((DRAWS, np.prod(TINY)), bool)
    random = np.random.default_rng(17)
    for row in drawn:
        users, items = draw(selection, random)
        row[users * TINY[1] + items] = True
    return drawn


@pytest.fixture(scope="module", params=[2.0, 0.0, -3.0])
def tiny(request):
    return tiny_selection(selectivity=request.param)


@pytest.fixture(scope="module", params=[by_thinning, by_cell])
def drawn(request, tiny):
    with pytest.MonkeyPatch.context() as patch:
        if request.param is by_thinning:
            patch.setattr(selection_module, "draw_by_cell", refuse_to_draw_by_cell)
        return inclusions(request.param, tiny)


def propensities(selection):
    return selection.block(np.arange(TINY[0]), np.arange(TINY[1])).ravel()


def test_both_ways_of_drawing_observe_each_cell_with_its_propensity(tiny, drawn):
    p = propensities(tiny)
    assert p.max() > 0.3  # where 1 - exp(-lambda) and lambda differ
    z = (drawn.mean(axis=0) - p) / np.sqrt(p * (1 - p) / DRAWS)
    assert fits(z)
    assert chi2.sf((z**2).sum(), z.size) > 1e-3


def test_both_ways_of_drawing_observe_cells_independently(tiny, drawn):
    p = propensities(tiny)
    centred = (drawn - p) / np.sqrt(p * (1 - p))
    correlations = (centred.T @ centred / DRAWS)[np.triu_indices(p.size, 1)]
    assert fits(correlations * np.sqrt(DRAWS))


def test_the_number_of_observed_pairs_varies_as_independent_draws_do(tiny, drawn):
    p = propensities(tiny)
    variance = drawn.sum(axis=1).var()
    assert variance == pytest.approx((p * (1 - p)).sum(), rel=4 * np.sqrt(2 / DRAWS))


def test_where_thinning_would_be_more_work_every_cell_is_visited():
    crowded = tiny_selection(observed=0.9)
    p = propensities(crowded)
    counts = inclusions(by_thinning, crowded).sum(axis=0)
    assert fits((counts - DRAWS * p) / np.sqrt(DRAWS * p * (1 - p)))


@pytest.mark.parametrize("units", [1, 7, 64])
def test_drawing_in_many_small_parts_changes_nothing_but_the_parts(monkeypatch, units):
    monkeypatch.setattr(selection_module, "BLOCK_CELLS", units)
    world = simulate.world(120, 150, observed=0.1, random_state=5)
    users, items = np.nonzero(world.observed)
    np.testing.assert_array_equal(world.log.users, users)
    np.testing.assert_array_equal(world.log.items, items)
    assert fits(z_scores(world.observed, world.propensities, np.indices((120, 150))[0]))


def test_drawn_pairs_are_int32_positions_in_order_and_each_once():
    for users, items in (
        tiny_selection().draw(np.random.default_rng(0)),
        draw_by_cell(tiny_selection(), *TINY, np.random.default_rng(0)),
    ):
        assert users.dtype == items.dtype == np.int32
        assert (np.diff(users.astype(int) * TINY[1] + items) > 0).all()


@given(observed=st.floats(0.001, 0.999), selectivity=st.floats(-20, 20))
def test_the_mean_propensity_is_the_share_that_was_asked_for(observed, selectivity):
    assert propensities(tiny_selection(observed, selectivity)).mean() == pytest.approx(observed, abs=1e-8)


@pytest.mark.parametrize("shape", [(200, 300), (1_000, 1_000)])
@pytest.mark.parametrize("observed", [0.01, 0.2, 0.97])
def test_the_log_has_the_share_that_was_asked_for(shape, observed):
    world = simulate.world(*shape, observed=observed, random_state=2)
    assert world.propensities.mean() == pytest.approx(observed, rel=0.02)
    cells = shape[0] * shape[1]
    assert abs(len(world.log) - world.propensities.sum()) < largest_z(1) * np.sqrt(cells * observed * (1 - observed))


def double_differences(matrix):
    """Give what is left of a matrix without its row and column constants."""
    return matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean()


@pytest.mark.parametrize("selectivity", [-3.0, 0.0, 0.7, 5.0])
def test_log_odds_are_a_user_constant_an_item_constant_and_selectivity_times_preference(selectivity):
    world = simulate.world(50, 70, selectivity=selectivity, random_state=0)
    rest = logit(world.propensities) - selectivity * world.preferences
    np.testing.assert_allclose(double_differences(rest), 0, atol=1e-10)
    assert rest.std() > 0.5  # users and items do differ


def test_without_selectivity_observation_does_not_depend_on_preference_given_user_and_item():
    world = simulate.world(400, 500, observed=0.2, selectivity=0, random_state=1)
    p = world.propensities
    taste = double_differences(world.preferences)
    z = ((world.observed - p) * taste).sum() / np.sqrt((p * (1 - p) * taste**2).sum())
    assert abs(z) < largest_z(1)


@pytest.mark.parametrize("seed", range(3))
def test_the_more_selective_the_log_the_more_it_holds_of_what_is_liked(seed):
    gaps = []
    for selectivity in (-6, -3, -1, 0, 1, 3, 6):
        world = simulate.world(200, 300, selectivity=selectivity, random_state=seed)
        gaps.append(world.preferences[world.observed].mean() - world.preferences.mean())
    assert (np.diff(gaps) > 0).all()
    assert gaps[0] < -0.1
    assert gaps[-1] > 0.1


def test_a_selective_log_of_complaints_holds_less_of_what_is_liked_than_there_is():
    for selectivity, sign in ((4, 1), (-4, -1)):
        world = simulate.on_matrix(
            np.random.default_rng(0).integers(2, size=(150, 200)), selectivity=selectivity, random_state=0
        )
        assert sign * (world.true_labels[world.observed].mean() - world.true_labels.mean()) > 0.2
