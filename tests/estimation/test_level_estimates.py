"""Estimates on logs that keep their levels: two of them are binary, and five are right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held_a_row
from refusals import check_refusal
from verirec.exceptions import (
    AuditError,
    LabelError,
    NoiseRateError,
    ParameterError,
    PredictionError,
    ScoreWarning,
    SurveyError,
)

STARS = [1, 2, 3, 4, 5]
BOTH = [0, 1]
RATES = vr.NoiseRates(0.2, 0.1, covariance=((1e-4, 2e-5), (2e-5, 1e-4)))
BAND = vr.TransitionMatrix.band(5, 0.3)
BY_LOG = ["naive", "eib", "ips", "snips", "dr", "mrdr", "sdr", "tdr"]
ALL = [*BY_LOG, "ome", *(f"ome-{name}" for name in BY_LOG[1:]), "audited-dr", "survey", "survey-ppi"]


class Binary:
    """One binary world, and the same as levels 0 and 1."""

    def __init__(self):
        self.world = vr.simulate.world(60, 80, observed=0.2, random_state=0)
        log, random = self.world.log, np.random.default_rng(0)
        self.log = log
        self.graded = graded(log.users, log.items, log.labels, BOTH, log.shape)
        self.f = 0.2 + 0.6 * self.world.preferences
        pairs = np.divmod(random.choice(4800, 300, replace=False), 80)
        rows = random.choice(len(log), 150, replace=False)
        self.surveyed = (*pairs, self.world.true_labels[pairs])
        self.audited = (log.users[rows], log.items[rows], self.world.true_labels[log.users[rows], log.items[rows]])

    def given(self, levels, **more):
        rates = RATES if levels is None else vr.TransitionMatrix.of_rates(RATES)
        return {
            "propensities": self.world.propensities,
            "noise_rates": rates,
            "audit": vr.AuditSample(*self.audited, levels=levels),
            "survey": vr.SurveySample(*self.surveyed, levels=levels, **more),
        }


def graded(users, items, labels, levels, shape):
    return vr.FeedbackLog.from_arrays(users, items, labels, n_users=shape[0], n_items=shape[1], levels=levels)


@pytest.fixture(scope="module")
def binary():
    return Binary()


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, one in expected.items():
        assert found[name].value == pytest.approx(one.value, abs=1e-10), name
        assert found[name].standard_error == pytest.approx(one.standard_error, abs=1e-10), name
        assert found[name].interval == pytest.approx(one.interval, abs=1e-10), name


@pytest.mark.filterwarnings("ignore::verirec.exceptions.OverlapWarning")
@pytest.mark.parametrize("loss", ["squared", "absolute", "log"])
@pytest.mark.parametrize(
    "how",
    [{}, {"imputation": "model"}, {"interval": "bootstrap", "draws": 30}, {"sample": 2_000}, {"exclude": ([0], [0])}],
    ids=lambda how: "-".join(how) or "plain",
)
def test_two_levels_of_0_and_1_give_what_binary_labels_give(binary, loss, how):
    f = np.stack([1 - binary.f, binary.f], axis=-1) if loss == "log" else binary.f
    options = {"estimators": ALL, "loss": loss} | how
    expected = vr.estimate(binary.f, binary.log, **binary.given(None), **options)
    assert_same(vr.estimate(f, binary.graded, **binary.given(BOTH), **options), expected)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.OverlapWarning")
def test_two_levels_are_compared_as_binary_labels_are(binary):
    other = np.full_like(binary.f, 0.4)
    options = {"estimators": ALL, "loss": "squared"}
    expected = vr.compare(binary.f, other, binary.log, **binary.given(None, noisy=True), **options)
    assert_same(vr.compare(binary.f, other, binary.graded, **binary.given(BOTH, noisy=True), **options), expected)


def test_ranked_probabilities_of_two_levels_are_squared_errors(binary):
    f = np.stack([1 - binary.f, binary.f], axis=-1)
    expected = vr.estimate(binary.f, binary.log, **binary.given(None), loss="squared")
    assert_same(vr.estimate(f, binary.graded, **binary.given(BOTH), loss="rps"), expected)


class Stars:
    """A world of five levels, logged by its true ones, with noise between neighbours."""

    def __init__(self, seed=0, shape=(40, 50)):
        random = np.random.default_rng(seed)
        taste = random.normal(size=(shape[0], 1)) + random.normal(size=(1, shape[1])) + random.normal(size=shape)
        self.truth = np.digitize(taste, [-1.5, -0.5, 0.5, 1.5])
        self.p = np.array([0.2, 0.2, 0.3, 0.5, 0.6])[self.truth]
        logged = np.nonzero(random.random(shape) < self.p)
        self.said = BAND.observe(self.truth, random.random(shape))
        self.log = graded(*logged, self.said[logged] + 1, STARS, shape)
        self.f = 3 + 0.7 * taste
        pairs = np.divmod(random.choice(shape[0] * shape[1], 300, replace=False), shape[1])
        self.survey = vr.SurveySample(*pairs, self.truth[pairs] + 1, levels=STARS)
        rows = random.choice(len(self.log), 200, replace=False)
        of_rows = self.log.users[rows], self.log.items[rows]
        self.audit = vr.AuditSample(*of_rows, self.truth[of_rows] + 1, levels=STARS)


@pytest.fixture(scope="module")
def stars():
    return Stars()


def test_weighted_and_corrected_errors_by_a_plain_loop(stars):
    found = vr.estimate(
        stars.f, stars.log, propensities=stars.p, noise_rates=BAND, loss="squared", estimators=["ome-ips", "ome-snips"]
    )
    total = mass = 0.0
    for user, item, said in zip(stars.log.users, stars.log.items, stars.log.labels, strict=True):
        corrected = sum(BAND.inverse[said, j] * (stars.f[user, item] - STARS[j]) ** 2 for j in range(5))
        total, mass = total + corrected / stars.p[user, item], mass + 1 / stars.p[user, item]
    assert found["ome-ips"].value == pytest.approx(total / stars.f.size, abs=1e-10)
    assert found["ome-snips"].value == pytest.approx(total / mass, abs=1e-10)


def test_imputed_distributions_by_a_plain_loop(stars):
    found = vr.estimate(
        stars.f, stars.log, propensities=stars.p, noise_rates=BAND, loss="absolute", estimators=["ome-dr"]
    )["ome-dr"]
    log, w = stars.log, 1 / stars.p[stars.log.users, stars.log.items]
    shares = sum(wi * BAND.inverse[said] for wi, said in zip(w, log.labels, strict=True)) / w.sum()
    losses = np.abs(stars.f[..., None] - np.array(STARS))
    imputed = losses @ shares
    of_rows = losses[log.users, log.items]
    off = (BAND.inverse[log.labels] * of_rows).sum(axis=1) - imputed[log.users, log.items]
    assert found.value == pytest.approx((imputed.sum() + w @ off) / stars.f.size, abs=1e-10)
    np.testing.assert_allclose(found.diagnostics["imputed_label"], np.cumsum(shares[:0:-1])[::-1], atol=1e-12)


def test_an_audit_of_all_rows_takes_all_noise_away(stars):
    log = stars.log
    whole = vr.AuditSample(log.users, log.items, stars.truth[log.users, log.items] + 1, levels=STARS)
    found = vr.estimate(
        stars.f, log, propensities=stars.p, audit=whole, noise_rates=BAND, loss="squared", estimators=["audited-dr"]
    )
    clean = graded(log.users, log.items, stars.truth[log.users, log.items] + 1, STARS, log.shape)
    imputed = lambda users, items: np.full(len(users), 1.5)  # noqa: E731
    options = {"propensities": stars.p, "loss": "squared", "imputation": imputed}
    again = vr.estimate(stars.f, log, audit=whole, noise_rates=BAND, estimators=["audited-dr"], **options)
    assert again["audited-dr"].value == pytest.approx(
        vr.estimate(stars.f, clean, estimators=["dr"], **options)["dr"].value, abs=1e-10
    )
    assert found["audited-dr"].diagnostics["variance"]["audit"] == 0


@pytest.mark.parametrize("loss", ["squared", "absolute", "log", "rps"])
def test_five_levels_are_estimated_about_right(stars, loss):
    f = stars.f
    if loss in ("log", "rps"):
        near = np.exp(-0.5 * (stars.f[..., None] - np.array(STARS)) ** 2)
        f = near / near.sum(axis=-1, keepdims=True)
    by_level = {
        "squared": lambda: (stars.f - 1 - stars.truth) ** 2,
        "absolute": lambda: np.abs(stars.f - 1 - stars.truth),
        "log": lambda: -np.log(np.take_along_axis(f, stars.truth[..., None], -1)),
        "rps": lambda: sum((f[..., c:].sum(axis=-1) - (stars.truth >= c)) ** 2 for c in range(1, 5)),
    }
    truth = by_level[loss]().mean()
    found = vr.estimate(
        f,
        stars.log,
        propensities=stars.p,
        noise_rates=BAND,
        audit=stars.audit,
        survey=stars.survey,
        loss=loss,
        estimators=["ips", "ome-ips", "ome-dr", "audited-dr", "survey", "survey-ppi"],
    )
    for name in ("ome-ips", "ome-dr", "audited-dr", "survey", "survey-ppi"):
        assert abs(found[name].value - truth) < 4 * found[name].standard_error, name
    assert found["survey-ppi"].standard_error <= 1.02 * found["survey"].standard_error
    assert found.headline == "survey-ppi"


def test_an_audit_alone_is_enough(stars):
    found = vr.estimate(stars.f, stars.log, propensities=stars.p, audit=stars.audit, loss="squared")
    truth = ((stars.f - 1 - stars.truth) ** 2).mean()
    assert list(found) == ["naive", "ips", "dr", "ome-ips", "ome-dr", "audited-dr"]
    assert abs(found["audited-dr"].value - truth) < 4 * found["audited-dr"].standard_error


def test_forms_of_predictions_agree(stars):
    near = np.exp(-0.5 * (stars.f[..., None] - np.array(STARS)) ** 2)
    f = near / near.sum(axis=-1, keepdims=True)
    users, items = np.divmod(np.arange(f[..., 0].size), f.shape[1])
    options = {"propensities": stars.p, "noise_rates": BAND, "loss": "rps", "survey": stars.survey}
    expected = vr.estimate(f, stars.log, **options)
    assert_same(vr.estimate(lambda users, items: f[users, items], stars.log, **options), expected)
    assert_same(vr.estimate((users, items, f[users, items]), stars.log, **options), expected)
    options["loss"] = "squared"
    expected = vr.estimate(stars.f, stars.log, **options)
    assert_same(vr.estimate((users, items, stars.f[users, items]), stars.log, **options), expected)


@pytest.mark.filterwarnings("ignore:clip=0 changed")
def test_stars_are_clipped_only_if_asked(stars):
    wild, options = np.where(stars.f > 4, 9.0, stars.f), {"propensities": stars.p, "loss": "squared"}
    kept, clipped = (vr.estimate(wild, stars.log, clip=clip, **options)["ips"] for clip in (None, 0))
    inside = vr.estimate(np.clip(wild, 1, 5), stars.log, **options)["ips"]
    assert clipped.value == pytest.approx(inside.value)
    assert kept.value > 2 * clipped.value
    assert clipped.diagnostics["clipped"] > 0
    with pytest.warns(ScoreWarning, match="outside of the scale, 1, 2, 3, 4, 5, and are judged as they are"):
        vr.estimate(stars.f / 10, stars.log, **options)


def test_probabilities_of_0_are_raised_only_if_asked(stars):
    sure = np.zeros((*stars.f.shape, 5))
    sure[..., 2] = 1
    options = {"propensities": stars.p, "loss": "log", "estimators": ["ips"]}
    check_refusal(lambda: vr.estimate(sure, stars.log, **options), PredictionError, "clip=1e-6 would raise them")
    with pytest.warns(ScoreWarning, match="changed the predictions"):
        assert vr.estimate(sure, stars.log, clip=1e-3, **options)["ips"].value > 1


def test_rows_known_by_heart_are_warned_of(stars):
    with pytest.warns(ScoreWarning, match="cannot judge it"):
        vr.estimate(stars.said + 1.0, stars.log, propensities=stars.p, loss="squared")


GOOD = {"loss": "squared"}
BAD = {
    "noise rates of two classes": (
        {"noise_rates": RATES},
        ParameterError,
        "must be a TransitionMatrix or a TransitionRegion; got NoiseRates",
    ),
    "a region": ({"noise_rates": vr.NoiseRegion(0.1, 0.1)}, ParameterError, "TransitionRegion; got NoiseReg"),
    "a smaller matrix": (
        {"noise_rates": vr.TransitionMatrix.band(3, 0.1)},
        ParameterError,
        "a row for each of the log's 5 levels; got 3",
    ),
    "a binary survey": (
        {"survey": vr.SurveySample([0, 1, 2], [0, 1, 2], [0, 1, 1])},
        SurveyError,
        "the survey must have labels on the log's scale, levels 1, 2, 3, 4, 5; its are 0/1",
    ),
    "an audit on another scale": (
        {"audit": vr.AuditSample([0], [0], [0.5], levels=[0.5, 1])},
        AuditError,
        "the audit must have labels on the log's scale",
    ),
    "a range of selection": (
        {"selection": vr.SelectionRange(0, 2), "noise_rates": BAND},
        LabelError,
        "binary labels are needed here; the log has 5 levels",
    ),
    "a line of one delta": ({"estimators": ["delta-dr"]}, LabelError, "binary labels are needed here"),
    "an unknown loss": ({"loss": "hinge"}, ParameterError, "must be one of absolute, log, rps, squared"),
    "distributions for a loss of stars": (
        {"predictions": np.full((40, 50, 5), 0.2)},
        PredictionError,
        "the squared loss judges predicted stars, one number a pair",
    ),
    "stars for a loss of distributions": ({"loss": "log"}, PredictionError, "judges predicted distributions over 5"),
    "factors for a loss of distributions": (
        {"loss": "rps", "predictions": vr.Factors(np.zeros((40, 2)), np.zeros((50, 2)))},
        PredictionError,
        "judges predicted distributions over 5 levels.*got Factors",
    ),
    "distributions that do not add up": (
        {"loss": "log", "predictions": np.full((40, 50, 5), 0.3)},
        PredictionError,
        "add up to 1; of 2,000 of 2,000 pairs they do not",
    ),
    "a function of another shape": (
        {"loss": "log", "predictions": lambda users, items: np.full((len(users), 4), 0.25)},
        PredictionError,
        "must be a probability a level",
    ),
    "a clip as wide as the scale": ({"clip": 2.5}, ParameterError, "clip must be"),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD.values(), ids=BAD)
def test_what_levels_refuse(stars, change, error, message):
    given = {"propensities": stars.p, "survey": stars.survey, "predictions": stars.f} | GOOD | change
    check_refusal(lambda: vr.estimate(log=stars.log, **given), error, message)


def test_a_binary_log_refuses_a_transition_matrix(binary):
    check_refusal(
        lambda: vr.estimate(binary.f, binary.log, noise_rates=vr.TransitionMatrix.of_rates(RATES)),
        ParameterError,
        "got TransitionMatrix, which is for a log that keeps its levels",
    )


SAMPLES = {
    "a label that is no level": (
        lambda: vr.SurveySample([0], [0], [6], levels=STARS),
        SurveyError,
        "1 of 1 rows are not",
    ),
    "an audited one": (lambda: vr.AuditSample([0, 1], [0, 1], [6, 2], levels=STARS), AuditError, "rows are not: 6"),
    "stars without levels": (
        lambda: vr.SurveySample([0], [0], [3]),
        SurveyError,
        r"must be 0/1; 1 are not: .* levels=\[1, 2, 3, 4, 5\]",
    ),
    "levels out of order": (lambda: vr.AuditSample([0], [0], [3], levels=[3, 1]), ParameterError, "ascending order"),
    "two answers": (
        lambda: vr.SurveySample([0, 0], [0, 0], [3, 4], levels=STARS),
        SurveyError,
        "1 pairs have different ones",
    ),
    "a matrix without inverse": (lambda: vr.TransitionMatrix(np.full((5, 5), 0.2)), NoiseRateError, "condition number"),
}


@pytest.mark.parametrize(("function", "error", "message"), SAMPLES.values(), ids=SAMPLES)
def test_what_samples_of_levels_refuse(function, error, message):
    check_refusal(function, error, message)


def test_samples_keep_their_levels(stars):
    assert repr(stars.survey).startswith("SurveySample(300 pairs, 5 levels with a mean of ")
    assert stars.survey.select([0, 1]).label_values.tolist() == stars.survey.label_values[:2].tolist()
    part = stars.audit.select(np.array([3, 4]))
    assert part.true_labels.tolist() == stars.audit.true_labels[3:5].tolist()
    assert "5 levels" in stars.audit._repr_html_()
    few = vr.SurveySample(np.arange(40), np.zeros(40, int), [3] * 36 + [1, 2, 4, 5], levels=STARS)
    assert few.lacking.startswith("only 4 of 40 surveyed pairs are of other levels than the commonest")


def test_a_frame_of_stars_is_judged_as_its_rows_are():
    random = np.random.default_rng(0)
    users, items = (side.ravel() for side in np.indices((12, 10)))
    stars = random.uniform(1, 5, 120)
    log = graded(users[::2], items[::2], random.integers(1, 6, 60), STARS, (12, 10))
    options = {"loss": "rmse", "estimators": "naive"}
    found = vr.estimate(pd.DataFrame({"user": users, "item": items, "score": stars}), log, **options)
    assert found["naive"].value == vr.estimate((users, items, stars), log, **options)["naive"].value


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_sample_of_the_unobserved_pairs_stands_for_all(loss):
    world = vr.simulate.stars(60, 50, random_state=0)
    stars = 0.5 + 0.8 * world.true_values
    options = {"propensities": world.propensities, "estimators": ("dr", "eib"), "loss": loss}
    whole = vr.estimate(stars, world.log, **options)
    draws = [vr.estimate(stars, world.log, sample=1_000, random_state=seed, **options) for seed in range(20)]
    for name in ("dr", "eib"):
        values = np.array([one[name].value for one in draws])
        assert abs(values.mean() - whole[name].value) < 4 * values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.filterwarnings("ignore::verirec.exceptions.AlikeUsersWarning")
@pytest.mark.parametrize(
    ("noise", "more"), [(None, {}), (BAND, {"clip": 0.1}), (BAND, {"survey": True})], ids=["true", "noise", "survey"]
)
def test_nothing_is_as_long_as_the_log(noise, more, in_small_parts):
    def work(log):
        random = np.random.default_rng(0)
        given = {"propensities": vr.LogisticPropensity().fit(log), "noise_rates": noise, "loss": "rmse"} | more
        stars = vr.Factors(*(random.uniform(0.6, 1, (size, 4)) for size in log.shape), link="identity")
        if "survey" in more:
            users, items = random.integers([[log.n_users], [log.n_items]], size=(2, 600))
            given["survey"] = vr.SurveySample(users, items, random.choice(STARS, 600), levels=STARS)
        return lambda: vr.estimate(stars, log, sample=10_000, **given)

    assert held_a_row(work, levels=STARS) < HALF_A_NUMBER
