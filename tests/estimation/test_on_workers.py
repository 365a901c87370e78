"""What an estimate takes where its work goes elsewhere: in this process, and in what is sent."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, SHARES, held_a_row, long_log
from verirec.engine import Serial, running_on
from verirec.engine.worker import in_pieces

RATES = vr.NoiseRates(0.2, 0.1)
RANGE = {"noise_rates": RATES, "selection": vr.SelectionRange(0, 3)}


class Weighing(Serial):
    """This process, taken for others: it notes how many bytes of each function they would be sent."""

    elsewhere, workers = True, 2

    def __init__(self):
        self.sent = []

    def map(self, function, parts, **options):
        """Weigh the function, and apply it."""
        self.sent.append(sum(piece.nbytes for piece in in_pieces(function)))
        return super().map(function, parts, **options)


def factors_of(log, seed=0):
    random = np.random.default_rng(seed)
    return vr.Factors(*(random.normal(0, 0.3, (size, 4)) for size in log.shape))


def survey_of(log):
    users, items = np.divmod(np.random.default_rng(0).choice(log.n_cells, 600, replace=False), log.n_items)
    return vr.SurveySample(users, items, (users + items) % 2)


SENDING = {
    "estimate": lambda log: vr.estimate(factors_of(log), log, noise_rates=RATES),
    "sample": lambda log: vr.estimate(factors_of(log), log, sample=5_000),
    "range": lambda log: vr.estimate(factors_of(log), log, **RANGE),
    "range of a difference": lambda log: vr.compare(factors_of(log), factors_of(log, 1), log, **RANGE),
    "survey": lambda log: vr.estimate(factors_of(log), log, survey=survey_of(log), noise_rates=RATES),
    "bootstrap": lambda log: vr.estimate(factors_of(log), log, interval="bootstrap"),
}


@pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")
@pytest.mark.parametrize("asked", SENDING.values(), ids=SENDING)
def test_no_more_is_sent_of_a_longer_log(asked, in_small_parts):
    engines = []
    for share in SHARES:
        engines.append(Weighing())
        with running_on(engines[-1]):
            asked(long_log(share))
    short, long = (engine.sent for engine in engines)
    assert len(short) == len(long) > 0
    # In words of other numbers, such as a seed's, some bytes more.
    assert max(np.subtract(long, short)) < 4_096


@pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")
@pytest.mark.parametrize("where", [vr.engine.Serial, vr.engine.Processes], ids=["serial", "processes"])
def test_nothing_is_as_long_as_the_log_on_any_engine(where, in_small_parts):
    with where() as engine:

        def work(log):
            given = RANGE | {"propensities": vr.LogisticPropensity().fit(log), "sample": 10_000, "engine": engine}
            return lambda: vr.estimate(factors_of(log), log, **given)

        assert held_a_row(work) < HALF_A_NUMBER
