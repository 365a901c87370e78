"""The studies: the printed table reproduces, the sound one is right, and people's own preferences stay theirs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from refusals import check_refusal
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import DataError, ParameterError, VerirecWarning
from verirec.simulate import LEVEL_PROPORTIONS, prediction_matrices
from verirec.studies.semi_synthetic import load_population, run_seed, tables
from verirec.studies.semi_synthetic.plans import Plan, Setting, figure1_plan, robustness_plan, table1_plan
from verirec.studies.semi_synthetic.populations import Population, block_of_ratios, has_population, of_people
from verirec.studies.semi_synthetic.rates import SOURCES, FittedRates
from verirec.studies.semi_synthetic.seeds import given_propensities, true_inaccuracies


@pytest.fixture(scope="module")
def population():
    random = np.random.default_rng(0)
    return Population(random.choice(5, (200, 300), p=LEVEL_PROPORTIONS).astype(np.int8) + 1)


def run_table1(plan, population, seeds):
    return tables.table1(tables.as_frame(run_seed(plan, population, seed) for seed in range(seeds)), plan)


def check_printed(table):
    gaps = tables.gaps(table)
    assert gaps.cells == 66
    assert gaps.rmse <= 0.003
    assert gaps.largest <= 0.006
    assert gaps.reproduces


@pytest.mark.long
def test_the_printed_table_reproduces_over_twenty_seeds_and_the_sound_one_is_right(real_data):
    population = load_population("movielens-100k", real_data("movielens-100k"))
    check_printed(run_table1(table1_plan("printed"), population, 20))
    sound = run_table1(table1_plan("sound"), population, 20)
    right = sound[(sound.method == "ome-dr") & (sound.rho == "true")]
    assert right["mean"].max() <= 0.008
    assert right.coverage.min() >= 0.8
    audited = sound[(sound.method == "ome-dr") & (sound.rho == "audit-500")]
    assert audited.coverage.min() >= 0.75


def test_the_sound_table_is_right_where_it_claims_to_be(population):
    table = run_table1(table1_plan("sound"), population, 8)
    mean = table.groupby(["method", "rho"])["mean"].mean()
    assert mean["ome-dr", "true"] < 0.5 * mean["dr", "none"]
    assert mean["ome-ips", "true"] < 0.5 * mean["ips", "none"]
    covered = table.groupby(["method", "rho"]).coverage.mean()
    assert covered["ome-dr", "true"] > 0.8
    assert covered["naive", "none"] < 0.2


def test_a_seed_gives_the_same_records_twice_and_another_seed_others(population):
    plan = table1_plan("sound")
    assert run_seed(plan, population, 1) == run_seed(plan, population, 1)
    assert run_seed(plan, population, 1) != run_seed(plan, population, 2)


def test_the_truth_of_all_is_the_worlds_of_each(population):
    world = population.draw(Setting("a"), np.random.default_rng(0))
    matrices = prediction_matrices(population.levels, random_state=0)
    assert true_inaccuracies(world, matrices) == {name: world.true_inaccuracy(one) for name, one in matrices.items()}


def test_every_source_of_rates_gives_some(population):
    world = population.draw(Setting("a"), np.random.default_rng(0))
    # A score tells nothing of these levels, which are drawn at random: at most seeds its tails are refused.
    fitted = FittedRates(world, given_propensities(Setting("a"), world), 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VerirecWarning)
        found = {source: fitted.of(source) for source in SOURCES}
    assert (found["true"].rho01, found["true"].rho10) == (0.2, 0.1)
    assert found["audit-500"].diagnostics["audited"] == 500
    assert all(rates.kappa > 0 for rates in found.values())


def test_people_keep_their_preferences_whatever_is_logged():
    truth = (np.random.default_rng(0).random((60, 80)) < 0.3).astype(np.int8)
    population = of_people(truth)
    world = population.draw(Setting("a", rho01=0.0, rho10=0.0), np.random.default_rng(1))
    assert (world.true_labels == truth).all()
    assert (world.log.labels == truth[world.log.users, world.log.items]).all()
    shares = np.bincount(population.levels.ravel(), minlength=6)[1:] / truth.size
    assert shares == pytest.approx(LEVEL_PROPORTIONS, abs=1e-3)
    noisy = population.draw(Setting("a"), np.random.default_rng(1))
    assert (noisy.true_labels == truth).all()
    assert 0 < (noisy.log.labels != truth[noisy.log.users, noisy.log.items]).mean() < 0.3


def test_levels_of_people_rise_with_how_much_is_liked(real_data):
    population = load_population("kuairec", real_data("kuairec"))
    liked = [population.true_labels[population.levels == level].mean() for level in range(1, 6)]
    assert liked == sorted(liked)
    assert population.true_labels.sum() == 217_175


def ratios(shape, absent=0):
    """Make a log of watch ratios that lacks some pairs."""
    values = np.random.default_rng(0).choice([0.0, 1.0, 2.0, 2.001, 5.0], shape)
    users, items = (axis.ravel()[absent:] for axis in np.indices(shape))
    n_users, n_items = shape
    log = FeedbackLog.from_arrays(users, items, values[users, items], n_users=n_users, n_items=n_items, positive_from=1)
    return values, log


def test_published_ratios_make_the_block_and_absent_pairs_are_not_liked():
    values, log = ratios((40, 50), absent=20)
    expected = values > 2
    expected[0, :20] = False
    assert (block_of_ratios(log) == expected).all()


def test_a_block_that_lacks_more_is_refused():
    check_refusal(lambda: block_of_ratios(ratios((40, 50), absent=21)[1]), DataError, "21 of 2,000 are without one")


def test_the_published_matrix_is_a_population(tmp_path):
    values, log = ratios((20, 30))
    rows = (f"{user},{item},{values[user, item]}" for user, item in zip(log.users, log.items, strict=True))
    (tmp_path / "small_matrix.csv").write_text("\n".join(["user_id,video_id,watch_ratio", *rows]))
    assert has_population("kuairec", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VerirecWarning)  # of another number of rows than was published
        population = load_population("kuairec", tmp_path)
    assert (population.true_labels == (values > 2)).all()


def test_what_is_not_at_hand_is_no_population(tmp_path):
    assert not has_population("kuairec", tmp_path)
    check_refusal(lambda: has_population("kuairec", tmp_path / "nowhere"), DataError, "no data folder")


def test_a_seed_gives_the_plans_cells_and_no_other(population):
    for plan in (table1_plan("printed"), table1_plan("sound"), figure1_plan()):
        few = Plan(**(vars(plan) | {"settings": plan.settings[-1:]}))
        records = run_seed(few, population, 0)
        cells = [(one.setting, one.method, one.rho, one.matrix) for one in records]
        assert len(cells) == len(set(cells))
        assert set(cells) == few.cells


def test_fingerprints_tell_populations_apart(population):
    other = population.levels.copy()
    other[0, 0] = 1 + other[0, 0] % 5
    labelled = Population(population.levels, np.ones_like(population.levels))
    assert len({one.fingerprint for one in (population, Population(other), labelled)}) == 3
    assert population.fingerprint == Population(population.levels.copy()).fingerprint


def test_figure1_and_robustness_run_on_small_worlds(population):
    for plan, summarise in (
        (figure1_plan(), lambda frame: tables.figure1(frame, figure1_plan())),
        (robustness_plan(), tables.robustness),
    ):
        few = Plan(**(vars(plan) | {"settings": plan.settings[2:4], "sources": ("true", "audit-200")}))
        table = summarise(tables.as_frame(run_seed(few, population, seed) for seed in range(2)))
        assert table["mean"].between(0, 2).all()
        assert (table.seeds == 2).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: table1_plan("best"), "variant must be one of printed, sound; got 'best'"),
        (lambda: table1_plan(preferences="coat"), "preferences must be one of kuairec, movielens-100k; got 'coat'"),
        (lambda: table1_plan(propensity_error=2), "propensity_error must be a finite number at least 0 and at most 1"),
        (lambda: table1_plan("sound", aliased=False), "aliased=False is for variant printed"),
        (lambda: robustness_plan(-1), "propensity_error must be"),
        (lambda: figure1_plan("coat"), "preferences must be one of"),
        (lambda: load_population("coat"), "preferences must be one of"),
    ],
)
def test_wrong_plans_are_refused(call, message):
    check_refusal(call, ParameterError, message)
