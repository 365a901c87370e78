"""Rates that are learnt along the way, with rows at workers: one that is lost, whenever, changes no bit."""

from __future__ import annotations

import pytest
from sharded_fits import LOGS, fitted

from verirec.engine.base import Engine, Host
from verirec.exceptions import WorkerEndedError

pytestmark = pytest.mark.filterwarnings("ignore:learnt noise rates came out at max_rate")


class MortalHost(Host):
    """This process as a worker, which is lost when it is asked for something for the n-th time."""

    def __init__(self, last=None):
        self.state, self.last, self.asked, self.lost = {}, last, [], False

    def begin(self, function, *given):
        self.asked.append(function.__name__)
        self.lost |= self.last == (function.__name__, self.asked.count(function.__name__))
        found = None if self.lost else function(self.state, *given)
        return self._raise if self.lost else lambda: found

    def _raise(self):
        raise WorkerEndedError("a worker was ended")

    def end(self):
        self.state = {}


class TwoHosts(Engine):
    """Two workers in this process, of which the first may be lost."""

    name, workers = "two", 2

    def __init__(self, last=None):
        self.started = [MortalHost(last), MortalHost()]

    def map(self, function, parts, **_):
        return map(function, parts)

    def hosts(self, count):
        return list(self.started)

    def close(self):
        """Do nothing: no worker was started."""


def learnt(engine, name, anchors):
    return fitted(name, LOGS[130, 60], engine, None, anchors=anchors, refresh_after=1, refit=False)


@pytest.mark.parametrize("name", ["ome-dr", "ome-eib", "ome-ips"])
@pytest.mark.parametrize("anchors", ["fixed", "batch", "epoch"])
def test_workers_give_the_bits_of_one_machine_when_rates_are_learnt(anchors, name, small_shards):
    assert learnt(TwoHosts(), name, anchors) == learnt(None, name, anchors)


# Each worker has four shards: the fifth to eighth labels are those of the first rates that were learnt.
LAST = [("label", 5), ("label", 8), ("label", 14), ("descend", 2), ("descend", 3), ("place_users", 2)]


@pytest.mark.parametrize("last", [*LAST, ("along", 3), ("users_on_grid", 3), ("items_on_grid", 3)])
@pytest.mark.parametrize("anchors", ["batch", "epoch"])
def test_a_worker_lost_when_rates_are_learnt_changes_no_bit(anchors, last, small_shards):
    whole, disturbed = TwoHosts(), TwoHosts(last)
    expected = learnt(whole, "ome-dr", anchors)
    assert whole.started[0].asked.count("label") > 4
    assert learnt(disturbed, "ome-dr", anchors) == expected
    assert disturbed.started[0].lost


@pytest.mark.parametrize("last", [("label", 14), ("descend", 3), ("along", 3)])
def test_a_worker_lost_when_nothing_is_imputed_changes_no_bit(last, small_shards):
    disturbed = TwoHosts(last)
    assert learnt(disturbed, "ome-ips", "batch") == learnt(TwoHosts(), "ome-ips", "batch")
    assert disturbed.started[0].lost
