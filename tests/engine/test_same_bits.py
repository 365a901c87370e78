"""Every result is the same bits on every engine, for any number of workers."""

from __future__ import annotations

import contextlib
import json
import tempfile

import numpy as np
import pytest

import verirec as vr
from verirec.engine import Processes, Ray
from verirec.studies.semi_synthetic import Population, run_plan, table1_plan

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.xdist_group("ray"),
]

WORLD = vr.simulate.world(1_500, 900, observed=0.02, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)
SMALL = vr.simulate.world(80, 60, observed=0.3, random_state=0)


def factors(seed):
    random = np.random.default_rng(seed)
    return vr.Factors(random.normal(0, 0.1, (1_500, 8)), random.normal(0, 0.1, (900, 8)))


def bits(predictions):
    return [getattr(predictions, name).tobytes() for name in ("user_factors", "item_factors", "item_constants")]


def estimated(engine):
    options = {"noise_rates": vr.NoiseRates(0.2, 0.1), "estimators": ["dr", "ome-dr", "eib"], "engine": engine}
    delta = vr.estimate(factors(0), WORLD.log, **options)
    drawn = vr.estimate(factors(0), WORLD.log, interval="bootstrap", draws=120, **options)
    sampled = vr.estimate(factors(0), WORLD.log, sample=1_100_000, **options)
    both = vr.compare(factors(0), factors(1), WORLD.log, **options)
    return [one.to_dict() for found in (delta, drawn, sampled, both) for one in found.values()]


def tuned(engine):
    found = vr.methods.tune(vr.methods.MF(epochs=5, dim=4), SMALL.log, trials=3, folds=3, engine=engine)
    return found.report_.search["trials"], bits(found.predictions)


def searched(engine):
    found = vr.methods.Auto(trials=3, folds=2).fit(SMALL.log, engine=engine)
    return found.report_.search["trials"], bits(found.predictions)


def assessed(engine):
    options = {"noise_rates": vr.NoiseRates(0.2, 0.1), "sample": 1_100_000, "random_state": 0}
    found = vr.assess(WORLD.log, {"a": factors(0), "b": factors(1)}, engine=engine, **options)
    return json.dumps(found.summary)


def planned(engine):
    two = {"a": factors(0), "b": factors(1)}
    plan = vr.plan_labels(WORLD.log, two, budget=100, purpose="ndcg@5", random_state=0, engine=engine)
    return plan.to_frame().to_csv()


def studied(engine):
    """The folder is named from where this process is, which other machines' processes are not in."""
    levels = np.random.default_rng(0).choice(5, (60, 80), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return run_plan(table1_plan("printed"), Population(levels), seeds=2, folder="results", engine=engine)


JOBS = {
    "estimate": estimated,
    "assess": assessed,
    "plan": planned,
    "tune": tuned,
    "auto": searched,
    "study": studied,
}
EXPECTED: dict[str, object] = {}


@pytest.fixture(params=["processes-1", "processes-3", "ray"])
def workers(request):
    if request.param == "ray":
        request.getfixturevalue("small_cluster")
    with Ray() if request.param == "ray" else Processes(int(request.param[-1])) as engine:
        yield engine


@pytest.mark.parametrize("job", JOBS)
def test_a_job_gives_the_same_bits_wherever_it_runs(job, workers):
    if job not in EXPECTED:
        EXPECTED[job] = JOBS[job]("serial")
    assert JOBS[job](workers) == EXPECTED[job]
