"""Where an interval cannot hold there is a warning, a refusal, or a wider interval."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import verirec as vr
from verirec.estimation.unobserved import sample_unobserved
from verirec.exceptions import (
    AlikeUsersWarning,
    MisfitWarning,
    NoiseRateWarning,
    OverlapWarning,
    ParameterError,
    PropensityError,
    ScoreWarning,
)


class Drawn:
    """A log of random pairs, by user and item, with labels that are as liked."""

    def __init__(self, seed=0, shape=(60, 50), share=0.2, liked=0.4, clones=1):
        random = np.random.default_rng(seed)
        logits = random.normal(0, 0.5, (shape[0], 1)) + random.normal(0, 0.5, shape[1])
        p = np.clip(share * np.exp(logits) / np.exp(logits).mean(), 0.01, 0.95)
        tastes = np.clip(liked * np.exp(random.normal(0, 0.5, shape)), 0.001, 0.95)
        likes, logged = random.random(shape) < tastes, random.random(shape) < p
        self.p, self.likes, self.logged = (np.repeat(part, clones, axis=0) for part in (p, likes, logged))
        self.f = np.repeat(0.1 + 0.6 * tastes, clones, axis=0)

    @property
    def log(self):
        users, items = np.nonzero(self.logged)
        labels = self.likes[users, items].astype(int)
        return vr.FeedbackLog.from_arrays(users, items, labels, n_users=len(self.p), n_items=self.p.shape[1])

    @property
    def truth(self):
        return float(-np.where(self.likes, np.log(self.f), np.log(1 - self.f)).mean())

    def judged(self, f=None, **options):
        given = {"propensities": self.p, "estimators": ("snips", "dr")} | options
        return vr.estimate(self.f if f is None else f, self.log, **given)


def test_an_ordinary_log_is_not_warned_of():
    for seed in range(20):
        Drawn(seed).judged()
        Drawn(seed).judged(propensities=None)


def test_users_who_are_nearly_the_same_are_warned_of_and_drawn_together_by_a_bootstrap():
    one = Drawn(clones=10, shape=(40, 50))
    with pytest.warns(AlikeUsersWarning, match=r"each row is there (9|10)\.\d times on average"):
        one.judged()
    with pytest.warns(AlikeUsersWarning, match="drawn together as far as they are found"):
        by_groups = one.judged(interval="bootstrap", draws=100)["dr"]
    assert by_groups.diagnostics["groups"] < 60


# Copies make the weights' sum vary as much as everything else.
@pytest.mark.filterwarnings("ignore:the rows' weights add up:verirec.exceptions.MisfitWarning")
@pytest.mark.filterwarnings("ignore::verirec.exceptions.AlikeUsersWarning")
def test_the_bootstrap_of_copied_users_holds_the_truth():
    held = 0
    for seed in range(100):
        one = Drawn(seed, shape=(40, 50), clones=10)
        low, high = one.judged(interval="bootstrap", draws=200, estimators="dr")["dr"].interval
        held += low <= one.truth <= high
    # The standard error of .95 is .022; without the groups it is below .6.
    assert held >= 88


def test_given_groups_are_drawn_as_copies_are_and_need_a_bootstrap():
    one = Drawn(clones=3)
    groups = np.repeat(np.arange(60), 3)
    found = one.judged(interval="bootstrap", user_groups=groups * 7, draws=50)["dr"]
    assert found.diagnostics["groups"] == 60
    assert one.judged(interval="bootstrap", user_groups=groups, draws=50)["dr"] == found
    with pytest.raises(ParameterError, match="they need interval='bootstrap'"):
        one.judged(user_groups=groups)
    with pytest.raises(ParameterError, match="must have 180 entries, one a user; got 2"):
        one.judged(interval="bootstrap", user_groups=[0, 1])


def test_a_complete_block_says_nothing_of_other_pairs():
    one = Drawn()
    one.logged = np.zeros_like(one.logged)
    one.logged[:58, :48] = True
    with pytest.raises(PropensityError, match=r"58 users x 48 items\), and say nothing of the other 216 pairs"):
        one.judged(propensities=None)


def test_a_grid_that_is_all_logged_is_said_to_leave_nothing_open():
    one = Drawn()
    one.logged = np.ones_like(one.logged)
    with pytest.warns(NoiseRateWarning, match="nothing is left to estimate"):
        found = one.judged(propensities=None)["dr"]
    assert found.value == pytest.approx(one.truth, rel=1e-9)


def test_propensities_that_fit_no_user_are_warned_of():
    random = np.random.default_rng(0)
    one = Drawn()
    one.p = np.broadcast_to(np.where(random.random((60, 1)) < 0.5, 0.05, 0.6), one.p.shape)
    one.logged = random.random(one.p.shape) < one.p
    with pytest.warns(MisfitWarning, match="the weights of single users and items"):
        one.judged(propensities=np.full(one.p.shape, one.logged.mean()))


def test_few_rows_of_a_rare_class_are_warned_of():
    with pytest.warns(OverlapWarning, match=r"rows are positive, worth \d+ equally weighted ones"):
        Drawn(liked=0.01).judged()


# These labels have none of that noise.
@pytest.mark.filterwarnings("ignore:ome-dr is estimated at:verirec.exceptions.MisfitWarning")
@pytest.mark.parametrize(
    ("rates", "told"),
    [((0.5, 0.44), r"is 0\.06"), ((0.3, 0.2, ((0.03, 0), (0, 0.03))), r"is 0\.5, and may be as small as 0\.0199")],
)
def test_a_kappa_near_0_is_warned_of_where_it_is_used(rates, told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise = vr.NoiseRates(*rates)
    with pytest.warns(NoiseRateWarning, match=f"{told}.*say next to nothing"):
        Drawn().judged(noise_rates=noise, estimators="ome-dr")


def test_predictions_that_know_the_logged_labels_are_warned_of():
    one = Drawn()
    with pytest.warns(ScoreWarning, match="tell the .* logged labels apart without an error"):
        one.judged(np.where(one.likes, 0.9, 0.1))


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ScoreWarning")
def test_a_loss_below_what_is_possible_is_warned_of():
    one = Drawn()
    with pytest.warns(MisfitWarning, match="below 0, the least that this loss can be"):
        one.judged(np.where(one.likes, 0.99, 0.01), noise_rates=vr.NoiseRates(0.2, 0.1), estimators="ome-dr")


def test_a_small_sample_has_the_quantile_of_its_own_degrees_of_freedom():
    one = Drawn(share=0.5)
    small, large = (one.judged(sample=size, estimators="dr")["dr"] for size in (10, 400))
    reach = [(two.interval[1] - two.value) / two.standard_error for two in (small, large)]
    assert reach[0] > reach[1] + 0.01
    assert reach[1] == pytest.approx(1.96, abs=0.01)


def test_a_users_sampled_sum_does_not_depend_on_how_many_pairs_were_drawn():
    log = Drawn().log
    sample = sample_unobserved(log, 400, np.random.default_rng(0))
    found = sample.totals_by_user(np.full(400, 2.0 * sample.scale))
    assert found == pytest.approx(2.0 * (50 - np.bincount(log.users, minlength=60)))


def test_a_bootstrap_counts_a_samples_error_once():
    one = Drawn(share=0.1)
    spread = []
    for seed in range(60):
        found = one.judged(interval="bootstrap", sample=100, draws=200, estimators="eib", random_state=seed)["eib"]
        spread.append((found.value, found.standard_error))
    values, errors = np.array(spread).T
    by_users = one.judged(interval="bootstrap", draws=4_000, estimators="eib")["eib"].standard_error
    # What varies with the sample, and with the users; neither twice.
    assert errors.mean() == pytest.approx(np.hypot(values.std(), by_users), rel=0.25)
