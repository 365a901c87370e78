"""Engines: results in the order of the parts, errors and warnings as they are, lost workers' parts done again."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import socket
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from engine_work import (
    end_always,
    end_host,
    end_once,
    memory,
    recall,
    refuse_five,
    remember,
    squares,
    threads,
    warn_of_two,
)

import verirec
from verirec import scratch
from verirec.data.grid import Grid
from verirec.engine import Processes, Ray, as_engine, current_engine, ray_core, running_on
from verirec.engine.processes import Child
from verirec.engine.ray_core import make_actor, make_task, received
from verirec.engine.worker import Reply, Versions, usable_cores, versions
from verirec.exceptions import DataError, EngineError, OverlapWarning, ParameterError, WorkerEndedError

pytestmark = [
    # What Ray itself warns of is not ours.
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.xdist_group("ray"),
]


def test_results_are_in_the_order_of_the_parts(engine):
    found = list(engine.map(squares, range(30)))
    assert [len(one) for one in found] == list(range(30))
    assert all(np.array_equal(one, squares(part)) for part, one in enumerate(found))
    assert list(engine.map(squares, [])) == []


def test_there_are_as_many_processes_as_threads_by_default(monkeypatch):
    assert usable_cores() >= 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4, 5}, raising=False)
    assert usable_cores() == Processes().workers == Grid((2, 2)).threads == 3


def test_what_a_function_holds_is_sent_with_it(engine):
    held = np.arange(100_000.0)
    assert list(engine.map(lambda part: float(held[part]), [5, 7])) == [5.0, 7.0]


def test_an_error_of_a_part_is_raised_as_it_is_and_the_engine_goes_on(engine):
    with pytest.raises(DataError, match=r"^five is not to be had$"):
        list(engine.map(refuse_five, range(20)))
    assert list(engine.map(refuse_five, range(5))) == list(range(5))


def test_warnings_reach_who_asked(engine):
    with pytest.warns(OverlapWarning, match="two is few"):
        assert list(engine.map(warn_of_two, range(4))) == [0, 1, 2, 3]


def test_warnings_of_a_class_that_no_module_has_reach_who_asked(engine):
    own = type("OwnWarning", (UserWarning,), {"__module__": "__main__"})
    with pytest.warns(UserWarning, match="by hand") as caught:
        assert list(engine.map(lambda part: warnings.warn("by hand", own, stacklevel=1), [0])) == [None]
    # Ray makes a class of its own of what it is sent, by the same name.
    assert [one.category.__name__ for one in caught] == ["OwnWarning"]


def test_a_warning_whose_class_is_not_known_here_is_a_plain_one():
    reply = Reply([pickle.dumps(3)], raised=False, warned=(("odd", b"cnowhere\nOdd\n.", "there.py", 1),))
    with pytest.warns(UserWarning, match="odd"):
        assert reply.result() == 3


def test_a_reply_that_cannot_be_read_is_an_error_and_nobody_waits(monkeypatch):
    def unreadable(child, request):
        raise AttributeError("no such class here")

    monkeypatch.setattr(Child, "ask", unreadable)
    with Processes(1) as engine:
        with pytest.raises(AttributeError, match="no such class here"):
            list(engine.map(squares, [0], waiting=lambda: pytest.fail("nothing came")))
        host = engine.hosts(1)[0]
        with pytest.raises(AttributeError, match="no such class here"):
            host.begin(recall, "a")()
        host.end()


def test_a_lost_workers_part_is_done_again(engine, tmp_path):
    if engine.elsewhere:
        assert list(engine.map(partial(end_once, str(tmp_path / "mark")), range(8))) == [2 * part for part in range(8)]
        assert (tmp_path / "mark").exists()


def test_a_part_that_ends_every_worker_is_named_in_one_line():
    with Processes(1) as engine, pytest.raises(WorkerEndedError, match=r"^a worker was ended.*use fewer workers$"):
        list(engine.map(end_always, [0]))


def test_workers_have_one_thread(engine):
    if engine.elsewhere:
        assert set(engine.map(threads, range(4))) == {(1, "1")}


def test_workers_have_the_limit_of_memory_that_holds_when_they_are_asked(engine, monkeypatch):
    def hold(limit):
        monkeypatch.setattr(scratch._KEEPER, "memory", limit)

    hold(900_000_000)
    # The least counts, and workers of a cluster may have served others before.
    assert all(0 < one <= 900_000_000 for one in engine.map(memory, range(4)))
    hold(800_000_000)
    assert all(0 < one <= 800_000_000 for one in engine.map(memory, range(4)))
    hosts = engine.hosts(2)
    try:
        assert all(0 < host.begin(memory)() <= 800_000_000 for host in hosts)
        hold(700_000_000)
        assert all(0 < host.begin(memory)() <= 700_000_000 for host in hosts)
    finally:
        for host in hosts:
            host.end()


def test_what_cannot_be_sent_is_said_in_one_line(engine):
    lock = threading.Lock()
    if engine.elsewhere:
        with pytest.raises(EngineError, match=r"^the work cannot be sent .*lock.*engine='serial'$"):
            list(engine.map(lambda part: lock, [0]))


def test_hosts_keep_their_state_and_say_when_it_is_lost(engine):
    hosts = engine.hosts(2)
    try:
        assert [host.begin(remember, "a", number)() for number, host in enumerate(hosts)] == [1] * len(hosts)
        assert [host.begin(recall, "a")() for host in hosts] == list(range(len(hosts)))
        with pytest.raises(KeyError):
            hosts[0].begin(recall, "b")()
        if engine.elsewhere:
            with pytest.raises(WorkerEndedError):
                hosts[0].begin(end_host)()
    finally:
        for host in hosts:
            host.end()


def test_ray_refuses_parts_as_long_as_workers_that_keep_a_state_have_its_cores(small_cluster):
    with Ray() as engine:
        hosts = engine.hosts(2)
        for host in hosts:
            with pytest.raises(EngineError, match=r"^Ray's workers keep a state, .*: let go of them first$"):
                list(engine.map(abs, [-1]))
            host.end()
        assert list(engine.map(abs, [-1])) == [1]
        lost = engine.hosts(1)[0]
        with pytest.raises(WorkerEndedError):
            lost.begin(end_host)()
        lost.end()
        assert list(engine.map(abs, [-1])) == [1]


def test_the_engine_in_use_is_the_one_that_was_named_last():
    assert current_engine().name == "serial"
    with running_on("processes", 2) as outer, running_on(None) as inner:
        assert inner is outer is current_engine()
    assert current_engine().name == "serial"


@pytest.mark.parametrize("named", ["threads", "", 3, "processes:2"])
def test_engines_that_are_none_are_refused(named):
    with pytest.raises(ParameterError, match=r'^engine must be "serial"'):
        as_engine(named)


@pytest.mark.parametrize("workers", [0, -1, 1.5, 1_000])
def test_numbers_of_workers_that_are_none_are_refused(workers):
    for name in ("serial", "processes", "ray"):
        with pytest.raises(ParameterError, match=r"^workers must be a whole number from 1 to 256"):
            as_engine(name, workers)


def test_a_ray_address_that_does_not_answer_is_said_at_once():
    pytest.importorskip("ray")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    for address, told in (
        (f"127.0.0.1:{port}", "no Ray cluster answers at"),
        ("nowhere", "a Ray address is HOST:PORT"),
        ("127.0.0.1:²", "a Ray address is HOST:PORT"),
    ):
        with pytest.raises(EngineError, match=f"^{told}"):
            Ray(address)._connect(pytest.importorskip("ray"))
        with pytest.raises(EngineError, match=f"^{told}"):
            as_engine(f"ray:{address}")


def test_ray_that_cannot_be_started_here_is_said_in_one_line(monkeypatch):
    def init(*_, **__):
        raise FileNotFoundError(2, "No such file or directory", "/dev/shm")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(EngineError, match=r"^Ray cannot be started on this machine: .* '/dev/shm'$"):
        Ray()._connect(SimpleNamespace(init=init))


@pytest.mark.parametrize("started", [True, False], ids=["here", "by somebody else"])
def test_a_cluster_that_was_started_here_leaves_no_session_and_others_keep_theirs(tmp_path, monkeypatch, started):
    session, link = tmp_path / "session_1", tmp_path / "session_latest"
    (session / "logs").mkdir(parents=True)
    link.symlink_to(session)
    joined = SimpleNamespace(address_info={"session_dir": str(session)})
    initialised = []
    fake = SimpleNamespace(
        init=lambda *_, **__: initialised.append(1) or joined,
        is_initialized=lambda: bool(initialised),
        shutdown=initialised.clear,
    )
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray_core, "_knock", lambda address: None)
    monkeypatch.setitem(sys.modules, "ray", fake)
    engine = Ray(None if started else "127.0.0.1:6379")
    engine._connected()
    engine.close()
    assert (session.exists(), link.is_symlink()) == (not started, not started)


def test_what_answers_and_is_no_ray_cluster_is_called_so():
    ray = pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(EngineError, match=r"^what answers at .* is no Ray cluster$"):
            Ray(f"127.0.0.1:{server.getsockname()[1]}")._connect(ray)


class FakeRay(SimpleNamespace):
    """Ray as far as a map over parts needs it: what was sent stays under way until it is waited for."""

    exceptions = SimpleNamespace(RayTaskError=LookupError, RayError=OSError)
    is_initialized = staticmethod(lambda: True)
    put = staticmethod(lambda value: value)
    cancel = staticmethod(lambda reference, force: None)

    def remote(self, **_):
        def sent(shared, chunk, memory):
            self.running += 1
            self.most = max(self.most, self.running)
            return chunk

        return lambda task: SimpleNamespace(remote=sent)

    def wait(self, references, timeout):
        self.running -= 1
        return references[:1], references[1:]

    def get(self, reference):
        return [reference], False


@pytest.mark.parametrize("workers", [1, 3])
def test_ray_works_on_no_more_parts_at_once_than_it_was_told(workers):
    engine, fake = Ray(workers=workers), FakeRay(running=0, most=0)
    engine._ray = fake
    assert list(engine.map(squares, range(8), singly=True)) == list(range(8))
    assert fake.most == workers


def test_a_ray_address_that_accepts_and_says_nothing_is_said_soon(monkeypatch):
    monkeypatch.setattr(ray_core, "_ANSWER", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match=rf"^no Ray cluster answers at {address} \(timed out\)$"):
            Ray(address)._connect(pytest.importorskip("ray"))


def package(folder, line):
    """Make a verirec that is this one, but for a line more."""
    shutil.copytree(
        Path(verirec.__file__).parent, folder / "verirec", ignore=shutil.ignore_patterns("__pycache__", "*.nb*")
    )
    with (folder / "verirec" / "__init__.py").open("a") as file:
        file.write(f"\n{line}\n")


OTHERS = [
    ("# other", r"^a worker has verirec \S+ where this process has \S+: start again, with one version$"),
    (
        "raise ImportError('there is none')",
        r"^a worker has no verirec to work with \(there is none\): install it again$",
    ),
]


@pytest.mark.parametrize(("line", "told"), OTHERS)
def test_processes_that_find_another_verirec_or_none_are_refused(line, told, tmp_path, monkeypatch):
    package(tmp_path, line)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with Processes(1) as engine:
        with pytest.raises(EngineError, match=told):
            list(engine.map(squares, [0]))
        with pytest.raises(EngineError, match=told):
            engine.hosts(1)[0].begin(recall, "a")()


def test_ray_tasks_and_actors_say_what_they_have_that_is_not_here():
    other = versions()._replace(verirec="0.0.1+other")
    told = (
        rf"the Ray worker on {socket.gethostname()} has verirec \S+ where this process has 0.0.1\+other: install the "
    )
    assert re.fullmatch(f"{told}same there", make_task(other)([None], b"", None))
    assert re.fullmatch(f"{told}same there", make_actor(other)().call([], None))
    with pytest.raises(EngineError, match=f"^{told}"):
        received(
            SimpleNamespace(get=lambda one: one, exceptions=FakeRay.exceptions), make_task(other)([None], b"", None)
        )


def test_workers_of_another_version_are_named_by_what_differs():
    here = Versions("0.1.0+a", (("numpy", "2.0"), ("torch", "2.6")))
    assert here.difference(here) is None
    assert here.difference(here._replace(verirec="0.1.0+b")) == "verirec 0.1.0+b where this process has 0.1.0+a"
    other = here._replace(libraries=(("numpy", "2.0"), ("torch", "2.5")))
    assert here.difference(other) == "torch 2.5 where this process has 2.6"
    other = here._replace(libraries=(("numpy", "2.0"), ("torch", "not installed")))
    assert here.difference(other) == "torch not installed where this process has 2.6"
