"""What the arguments of many entries are drawn from."""

from __future__ import annotations

from torture.fuzz.calls import Pool, Random, either, filled, one, real, whole
from torture.fuzz.material import IDS

_PARTS = ("propensities", "timestamps", "unbiased", "user_features", "item_features", "ratings")
_ODD = ("one class", "block", "skewed", "weights")
_SIZES = (0.03, 0.04, 0.08, 0.2, 0.25, 0.25, 0.15)


def log(random: Random) -> str:
    """Draw a log: small, of any shape, with some of what a log may have."""
    return log_with()(random)


def log_with(*always: str) -> Pool:
    """Draw a log that has these parts, and maybe others."""

    def draw(random: Random) -> str:
        users, items = (int(side) for side in random.choice([1, 2, 3, 5, 8, 13, 17], 2, p=_SIZES))
        rows = int(random.integers(max(1, users * items // 4), users * items, endpoint=True))
        parts = [*always, *(part for part in _PARTS if part not in always and random.random() < 0.1)]
        parts += [part for part in _ODD if random.random() < 0.04]
        named = "" if random.random() < 0.6 else f", ids={random.choice([*IDS])!r}"
        listed = "".join(f", {part!r}" for part in parts)
        return f"log_of({users}, {items}, {rows}, {random.integers(1000)}{listed}{named})"

    return draw


seed: Pool = either(whole(0, 5), one("None", "np.random.default_rng(3)"))
probabilities = filled(
    "scores_of(log, {seed}, {form})",
    seed=whole(0, 99),
    form=one(
        "'dense'", "'single'", "'half'", "'near ends'", "'ties'", "'factors'", "'tuple'", "'function'", "'columns'"
    ),
)
odd_scores = filled(
    "scores_of(log, {seed}, {form})",
    seed=whole(0, 99),
    form=one("'ends'", "'scores'", "'identity'", "'large factors'", "'rows'", "'all pairs'"),
)
scores = either(probabilities, probabilities, odd_scores)
survey = filled(
    "survey_of(log, {pairs}, {seed}{parts})",
    pairs=either(whole(1, 9), whole(10, 60)),
    seed=whole(0, 99),
    parts=one("", "", "", ", 'probabilities'", ", 'clusters'", ", 'noisy'", ", 'best'", ", 'frame'", ", 'one class'"),
)
audit = filled("asked_of(vr.AuditSample, log, {pairs}, {seed})", pairs=whole(1, 40), seed=whole(0, 99))
reask = filled("asked_of(vr.ReaskSample, log, {pairs}, {seed})", pairs=whole(1, 60), seed=whole(0, 99))
rates = filled("vr.NoiseRates({a}, {b})", a=real(0, 0.4), b=real(0, 0.4))
grouped = one(
    "vr.GroupedNoiseRates((vr.NoiseRates(.1, .2), vr.NoiseRates(0, .3)), user_groups=np.arange(log.n_users) % 2)",
    "vr.GroupedNoiseRates((vr.NoiseRates(.1, .2),), item_groups=np.zeros(log.n_items, int))",
)
region = one("vr.NoiseRegion(.2, .1)", "vr.NoiseRegion(0, 0)", "vr.NoiseRegion(.45, .45)")
noise = either(rates, rates, grouped, region, one("None"))
propensities = one(
    "None",
    "vr.ConstantPropensity().fit(log)",
    "vr.LogisticPropensity().fit(log)",
    "vr.PopularityPropensity().fit(log)",
    "vr.NaiveBayesPropensity(unbiased=log_of(*log.shape, 99)).fit(log)",
    "vr.GivenPropensity(scores_of(log, 1))",
    "scores_of(log, 2)",
    "vr.LogisticPropensity()",
    "vr.GivenPropensity(scores_of(log, 1), known=False)",
    "vr.LogisticPropensity(l2=.1, floor=.05).fit(log)",
)
loss = one("'log'", "'squared'", "'absolute'")
clip = one("None", ".01", ".3", "1e-12")
confidence = one(".95", ".5", ".999", "1e-3")
exclude = one("None", "(log.users[:2], log.items[:2])", "log.select([0])", "log_of(*log.shape, 3)")
selection = one("None", "vr.SelectionRange()", "vr.SelectionRange(0, 0)", "vr.SelectionRange(1, 9)")
sample = one("None", "2", "5", "10**6")
estimators = one(
    *(
        "None",
        "None",
        "'all'",
        "'all'",
        "'naive'",
        "'dr'",
        "['ips', 'snips']",
        "['ome-dr']",
        "['sdr', 'tdr', 'mrdr']",
        "'survey'",
    ),
    *("['survey-ppi', 'delta-dr']", "['audited-dr']", "np.array(['naive', 'ips'])", "('eib', 'ome')"),
)
same_log: Pool = one("log")
