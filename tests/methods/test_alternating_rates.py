"""Algorithm 1: where rates come from if nobody gives them, and in which order everything is learnt."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from method_worlds import CORRECTED, RATES, SOME, fit, fitted, matrix, method_of, small_world
from method_worlds import validate_often as validate_often

import verirec as vr
from verirec.data.predictions import as_predictions
from verirec.exceptions import NoiseRateWarning
from verirec.methods import catalogue
from verirec.training.learner import Learners
from verirec.training.schedule import AlternatingRates

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")
"""These worlds are too small to tell rates."""


H = np.random.default_rng(8).uniform(0.08, 0.88, (30, 40))
"""P(r = 1) of all pairs."""
LOG = small_world().log
GIVEN = {"propensities": small_world().propensities}


def watched(name, see, **parameters):
    """Train with h given; `see(schedule, what, value)` hears of epochs, of all steps of models, and of new rates."""
    with pytest.MonkeyPatch.context() as patch:
        begin, after, use = (getattr(AlternatingRates, name) for name in ("begin_epoch", "after_prediction", "use"))
        minimise, begun = Learners.minimise, []

        def beginning(self, epoch, model):
            begun.append(self)
            begin(self, epoch, model)
            see(self, "epoch", (epoch, model))

        def batch_done(self, model, make_batch):
            after(self, model, make_batch)
            see(self, "batch", (make_batch(), model))

        def new_rates(self, rates):
            use(self, rates)
            if begun:
                see(self, "rates", rates)

        def step(self, loss, names, logits):
            given = minimise(self, loss, names, logits)
            see(begun[-1], names[0], None)
            return given

        patch.setattr(AlternatingRates, "begin_epoch", beginning)
        patch.setattr(AlternatingRates, "after_prediction", batch_done)
        patch.setattr(AlternatingRates, "use", new_rates)
        patch.setattr(Learners, "minimise", step)
        return method_of(name, h=H, **{"refresh_after": 0, **parameters}).fit(LOG, **GIVEN)


def bounded(rho01, rho10, most=0.3):
    return min(rho01, most), min(rho10, most)


@pytest.mark.parametrize("name", CORRECTED)
def test_rates_start_from_the_extremes_of_h(name):
    starts = []

    def see(schedule, what, value):
        if what == "epoch" and value[0] == 0:
            starts.append((schedule.rates.rho01, schedule.rates.rho10))

    watched(name, see)
    assert starts == [pytest.approx((1 - H.max(), H.min()))]


@pytest.mark.parametrize("name", ["ome", "ome-dr"])
def test_h_is_by_default_a_debiased_model_of_the_labels(name):
    """Of the rows that are trained on, not of those that validate."""
    rows, _ = vr.split(LOG, 0.2, by="random", random_state=np.random.default_rng([0, 3]))
    p = GIVEN["propensities"] * len(rows) / len(LOG)
    h = vr.LabelModel().fit(rows, 1 / p[rows.users, rows.items]).block(np.arange(30), np.arange(40))
    method = fit(name, anchors="fixed", max_rate=0.45, epochs=1)
    expected = bounded(1 - h.max(), h.min(), 0.45)
    assert (method.noise_rates_.rho01, method.noise_rates_.rho10) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("anchors", ["epoch", "batch", "fixed"])
def test_learnt_rates_are_cut_off_with_a_warning(anchors):
    h = np.full((30, 40), 0.4)
    with pytest.warns(NoiseRateWarning, match="came out at max_rate=0.15, where they are cut off"):
        method = fit("ome-dr", h=h, anchors=anchors, max_rate=0.15)
    assert (method.noise_rates_.rho01, method.noise_rates_.rho10) == (0.15, 0.15)


@pytest.mark.parametrize("name", CORRECTED)
def test_by_epoch_h_is_taken_where_f_is_smallest_and_largest_of_all_pairs(name):
    compared = []

    def see(schedule, what, value):
        if what != "epoch" or value[0] == 0:
            return
        with torch.no_grad():
            f = value[1].grid(torch.arange(30), torch.arange(40)).numpy()
        low, high = (np.unravel_index(end, f.shape) for end in (f.argmin(), f.argmax()))
        expected = bounded(1 - H[high], H[low])
        compared.append(((schedule.rates.rho01, schedule.rates.rho10), expected))

    method = watched(name, see, anchors="epoch")
    assert len(compared) == 3
    for found, expected in compared:
        assert found == pytest.approx(expected)
    history = [(entry["rho01"], entry["rho10"]) for entry in method.report_.history]
    assert history[1:] == [found for found, _ in compared]
    assert history[0] == pytest.approx((1 - H.max(), H.min()))
    assert history[-1] == (method.noise_rates_.rho01, method.noise_rates_.rho10)


@pytest.mark.parametrize("name", CORRECTED)
def test_by_batch_h_is_taken_where_f_was_smallest_and_largest_in_the_epoch_so_far(name):
    seen, compared, epochs = [], [], []

    def see(schedule, what, value):
        if what == "epoch":
            seen.clear()
            epochs.append(value[0])
        if what != "batch" or epochs[-1] == 0:
            return
        batch, model = value
        with torch.no_grad():
            if catalogue[name].needs_grid:
                f = model.grid(batch.grid_users, batch.grid_items).numpy()
                pairs = [(u, i) for u in batch.grid_users.tolist() for i in batch.grid_items.tolist()]
            else:
                f = model(batch.users, batch.items).numpy()
                pairs = list(zip(batch.users.tolist(), batch.items.tolist(), strict=True))
        seen.extend(zip(f.ravel().tolist(), pairs, strict=True))
        low, high = min(seen, key=lambda one: one[0])[1], max(seen, key=lambda one: one[0])[1]
        compared.append(((schedule.rates.rho01, schedule.rates.rho10), bounded(1 - H[high], H[low])))

    method = watched(name, see, anchors="batch", grid_cells=200, solver="gradient")
    assert len(compared) == 3 * 7
    assert len({found for found, _ in compared}) > 2
    for found, expected in compared:
        assert found == pytest.approx(expected)
    assert (method.noise_rates_.rho01, method.noise_rates_.rho10) == compared[-1][0]


@pytest.mark.parametrize("anchors", ["epoch", "batch"])
def test_rates_stay_where_they_start_until_f_has_learnt_something(anchors):
    start = (1 - H.max(), H.min())
    method = fit("ome-dr", h=H, anchors=anchors, refresh_after=2)
    history = [(entry["rho01"], entry["rho10"]) for entry in method.report_.history]
    assert history[:2] == [pytest.approx(start)] * 2
    assert history[2] != pytest.approx(start)


@pytest.mark.parametrize("name", CORRECTED)
def test_fixed_rates_stay_at_the_extremes_of_h(name):
    events = []
    method = watched(name, lambda schedule, what, value: events.append(what), anchors="fixed")
    assert "rates" not in events
    assert {(entry["rho01"], entry["rho10"]) for entry in method.report_.history} == {(1 - H.max(), H.min())}


def test_a_batch_trains_f_then_renews_the_rates_then_trains_g():
    events = []
    watched("ome-dr", lambda schedule, what, value: events.append(what), anchors="batch", solver="gradient")
    first = ["epoch", *["prediction", "batch", "imputation"] * 7]
    assert events == first + ["epoch", *["prediction", "rates", "batch", "imputation"] * 7] * 3


@pytest.mark.parametrize("name", ["ome", "ome-ips"])
def test_without_g_a_batch_trains_f_then_renews_the_rates(name):
    events = []
    watched(name, lambda schedule, what, value: events.append(what), anchors="batch", solver="gradient")
    first = ["epoch", *["prediction", "batch"] * 7]
    assert events == first + ["epoch", *["prediction", "rates", "batch"] * 7] * 3


def test_by_epoch_rates_are_renewed_before_each_epoch_but_the_first():
    events = []
    watched("ome-dr", lambda schedule, what, value: events.append(what), anchors="epoch", solver="gradient")
    one_epoch = ["epoch", *["prediction", "batch", "imputation"] * 7]
    assert events == one_epoch + (["rates", *one_epoch]) * 3


@pytest.mark.parametrize("anchors", ["epoch", "batch", "fixed"])
@pytest.mark.parametrize("name", CORRECTED)
def test_given_rates_stay(name, anchors):
    method = method_of(name, anchors=anchors, h=H).fit(LOG, noise_rates=RATES, **GIVEN)
    assert method.noise_rates_ == RATES
    assert len(method.report_.history) == 4
    assert all((entry["rho01"], entry["rho10"]) == (0.2, 0.1) for entry in method.report_.history)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.SmallAuditWarning")
@pytest.mark.parametrize("name", CORRECTED)
def test_audited_rates_stay(name):
    truth = small_world().true_labels[LOG.users, LOG.items]
    audit = vr.AuditSample(LOG.users[:200], LOG.items[:200], truth[:200])
    method = fit(name, LOG, fit={"audit": audit, **GIVEN})
    said, true = LOG.labels[:200], truth[:200]
    expected = (said[true == 1] == 0).mean(), said[true == 0].mean()
    assert (method.noise_rates_.rho01, method.noise_rates_.rho10) == pytest.approx(expected, abs=0.03)
    assert method.noise_rates_.covariance is not None
    assert len({(entry["rho01"], entry["rho10"]) for entry in method.report_.history}) == 1


@pytest.mark.parametrize("name", [name for name in SOME if method_of(name).correction == "none"])
def test_methods_that_do_not_correct_for_noise_are_only_validated_with_rates(name):
    with_rates = fit(name, fit={"noise_rates": RATES}, validation_estimator="naive", epochs=2)
    without = fit(name, validation_estimator="naive", epochs=2)
    assert with_rates.noise_rates_ == RATES
    assert without.noise_rates_ is None
    assert with_rates.report_.history == without.report_.history
    assert "rho01" not in with_rates.report_.history[0]


@pytest.mark.parametrize(
    "form",
    [
        H,
        lambda users, items: H[users, items],
        vr.Factors(np.zeros((30, 1)), np.zeros((40, 1)), constant=-2.0),
        "a trained method",
    ],
    ids=["matrix", "function", "factors", "method"],
)
def test_h_may_have_any_form_of_predictions(form):
    given = fitted("mf").predictions if isinstance(form, str) else form
    dense = matrix(fitted("mf")) if isinstance(form, str) else as_predictions(form, 30, 40).block(range(30), range(40))
    method = fit("ome-dr", h=given, anchors="fixed", epochs=1)
    expected = bounded(1 - dense.max(), dense.min())
    assert (method.noise_rates_.rho01, method.noise_rates_.rho10) == pytest.approx(expected, abs=1e-6)


def test_held_out_rows_are_validated_with_the_rates_that_training_started_from():
    """The default estimator is ome-dr, as with given rates, so that validations of different epochs can be compared."""
    learnt = fit("ome-dr", h=H, anchors="fixed")
    given = fit("ome-dr", fit={"noise_rates": vr.NoiseRates(1 - H.max(), H.min())})
    assert learnt.report_.validation_error == given.report_.validation_error


def test_rates_come_near_the_truth_where_weak_separability_holds():
    world = vr.simulate.world(150, 200, observed=0.3, random_state=2)
    options = {"batch_size": 2_000, "epochs": 30, "penalty_factors": 30.0, "dim": 2}
    method = fit("ome-dr", world.log, fit={"propensities": world.propensities}, **options)
    assert method.noise_rates_.rho01 == pytest.approx(0.2, abs=0.1)
    assert method.noise_rates_.rho10 == pytest.approx(0.1, abs=0.1)
