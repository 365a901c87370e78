"""Pieces of a job: done once, whatever stopped it in between, and never another job's."""

from __future__ import annotations

import errno
import warnings

import numpy as np
import pytest

from verirec.atomic_write import temporary_prefix
from verirec.exceptions import OverlapWarning, ParameterError, ReusedWorkWarning, UnkeptWorkWarning
from verirec.resuming import Checkpoint, apart, kept, pieces, values, within


@pytest.fixture(autouse=True)
def _all_is_kept(monkeypatch):
    monkeypatch.setattr(pieces, "WORTH_KEEPING", 0.0)


class Job:
    """A job that counts what it works out, and is stopped before a piece."""

    def __init__(self, folder, of="job"):
        self.folder, self.of, self.done = folder, of, []

    def piece(self, name, compute=lambda: 1):
        def counted():
            if name == self.stopped_at:
                raise KeyboardInterrupt
            self.done.append(name)
            return compute()

        return kept(name, counted)

    def run(self, stopped_at=None, work=None):
        """Run it; give what it found and what it worked out."""
        self.stopped_at, self.done = stopped_at, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedWorkWarning)
            with Checkpoint(self.folder, "a test", {"of": self.of}):
                return (work or self.work)(), self.done

    def work(self):
        first = self.piece("first", lambda: np.arange(3))
        second = self.piece("second", lambda: self.piece("inner", lambda: 2) + self.piece("last", lambda: 3))
        return first.tolist(), second


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path / "work")


def stop(job, at):
    with pytest.raises(KeyboardInterrupt):
        job.run(at)
    return sorted(path.name for path in job.folder.glob("*/*"))


WHOLE = ([0, 1, 2], 5)


@pytest.mark.parametrize(
    ("at", "again"),
    [
        ("first", ["first", "second", "inner", "last"]),
        ("inner", ["second", "inner", "last"]),
        ("last", ["second", "last"]),
    ],
)
def test_what_is_finished_is_not_done_again(job, at, again):
    stop(job, at)
    assert job.run() == (WHOLE, again)
    assert not job.folder.exists()


def test_parts_of_a_finished_piece_are_removed(job):
    def work():
        job.work()
        return job.piece("end")

    with pytest.raises(KeyboardInterrupt):
        job.run("end", work)
    assert len(list(job.folder.glob("*/*"))) == 2
    assert job.run(work=work) == (1, ["end"])


def test_what_is_reused_is_told_with_the_work_in_it(job, monkeypatch):
    now = iter(range(0, 6_000, 60))
    monkeypatch.setattr(pieces.time, "monotonic", lambda: float(next(now)))
    stop(job, "last")
    with pytest.warns(ReusedWorkWarning, match="^going on from an earlier run: 2 finished parts, 2 min of work$"):  # noqa: SIM117
        with Checkpoint(job.folder, "a test", {"of": "job"}):
            pass


def test_a_damaged_piece_is_done_again(job):
    for name in stop(job, "last"):
        (file,) = job.folder.glob(f"*/{name}")
        file.write_bytes(file.read_bytes()[:-1])
    assert job.run() == (WHOLE, ["first", "second", "inner", "last"])


def test_of_a_piece_that_is_not_asked_for_its_label_alone_is_read(job, monkeypatch):
    stop(job, "last")
    monkeypatch.setattr(pieces, "value_in", lambda opened: pytest.fail("read"))
    with pytest.warns(ReusedWorkWarning, match="2 finished parts"), Checkpoint(job.folder, "a test", {"of": "job"}):
        pass


@pytest.mark.parametrize("at", [20, -1])
def test_a_changed_piece_is_done_again(job, at):
    for name in stop(job, "last"):
        (file,) = job.folder.glob(f"*/{name}")
        content = bytearray(file.read_bytes())
        content[at] ^= 1
        file.write_bytes(content)
    assert job.run() == (WHOLE, ["first", "second", "inner", "last"])


def test_a_piece_in_the_place_of_another_is_not_taken(job):
    one, two = stop(job, "last")
    (folder,) = job.folder.iterdir()
    (folder / one).replace(folder / "kept")
    (folder / two).replace(folder / one)
    (folder / "kept").replace(folder / two)
    assert job.run() == (WHOLE, ["first", "second", "inner", "last"])


def test_another_job_takes_nothing_and_leaves_nothing(job, tmp_path):
    stop(job, "last")
    (tmp_path / "work" / "mine.txt").write_text("mine")
    (tmp_path / "work" / "empty").mkdir()
    assert Job(job.folder, of="other").run() == (WHOLE, ["first", "second", "inner", "last"])
    assert sorted(path.name for path in job.folder.iterdir()) == ["empty", "mine.txt"]


def test_what_a_killed_process_left_half_written_is_removed(job):
    (name, _) = stop(job, "last")
    (folder,) = job.folder.iterdir()
    (folder / f"{temporary_prefix(name)}0123").write_text("half")
    assert job.run() == (WHOLE, ["second", "last"])
    assert not job.folder.exists()


def test_pieces_that_are_called_the_same_are_told_apart_by_their_order(job):
    def work():
        return [job.piece("a", lambda: 1), job.piece("a", lambda: 2), job.piece("b", lambda: 3)]

    with pytest.raises(KeyboardInterrupt):
        job.run("b", work=work)
    assert job.run(work=work) == ([1, 2, 3], ["b"])


def test_a_slash_in_a_name_parts_nothing(job):
    def work():
        inside = job.piece("a", lambda: job.piece("b", lambda: 1))
        return [inside, *(job.piece(name, lambda: 2) for name in ("a/b", "a%2Fb", "a%b")), job.piece("end")]

    with pytest.raises(KeyboardInterrupt):
        job.run("end", work)
    assert job.run(work=work) == ([1, 2, 2, 2, 1], ["end"])


def test_names_are_of_where_the_work_is(job):
    def work():
        found = [job.piece("a", lambda: 1)]
        for number in range(2):
            with within(f"b{number}"):
                found.append(job.piece("a", lambda number=number: number))
        return [*found, job.piece("end")]

    with pytest.raises(KeyboardInterrupt):
        job.run("end", work)
    assert job.run(work=work) == ([1, 0, 1, 1], ["end"])


def test_what_is_done_apart_outlives_the_piece_that_asked_first(job):
    def shared():
        with apart("shared"):
            return job.piece("a", lambda: 7)

    def work(asks):
        found = [job.piece(name, shared if name == asks else lambda: 0) for name in ("one", "two")]
        return [*found, job.piece("end")]

    with pytest.raises(KeyboardInterrupt):
        job.run("two", lambda: work("one"))
    (folder,) = job.folder.iterdir()
    assert len(list(folder.iterdir())) == 2
    assert job.run(work=lambda: [job.piece("other"), shared()]) == ([1, 7], ["other"])


def models(job, of):
    with apart("models"):
        return job.piece("fit", lambda: of)


def test_two_works_that_are_done_apart_must_not_be_called_the_same(job):
    def work():
        return [job.piece(name, lambda of=name: models(job, of)) for name in ("log", "survey")]

    with pytest.raises(RuntimeError, match=r"^two pieces of work are done apart as 'models'"):
        job.run(work=work)


def test_what_is_done_apart_is_told_from_other_pieces_and_by_where_it_is(job):
    def work():
        found = []
        for number in range(2):
            with within(f"corner {number}"):
                found.append(job.piece("a", lambda number=number: models(job, number)))
        found += [job.piece("models", lambda: job.piece("fit", lambda: 7)), job.piece("b", lambda: models(job, 8))]
        return [*found, job.piece("end")]

    with pytest.raises(KeyboardInterrupt):
        job.run("end", work)
    assert job.run(work=work) == ([0, 1, 7, 8, 1], ["end"])


def test_warnings_are_said_again(job):
    def work():
        job.piece("outer", lambda: job.piece("inner", warn))
        job.piece("end")

    def warn():
        warnings.warn("few rows", OverlapWarning, stacklevel=1)
        warnings.warn("careful", RuntimeWarning, stacklevel=1)

    said = []
    for stopped_at in ("end", None):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if stopped_at:
                with pytest.raises(KeyboardInterrupt):
                    job.run(stopped_at, work)
            else:
                assert job.run(None, work)[1] == ["end"]
        said.append([(one.category, str(one.message)) for one in caught])
    assert said[0] == said[1] == [(OverlapWarning, "few rows"), (RuntimeWarning, "careful")]


def test_a_warning_is_said_where_the_work_fails(job):
    def work():
        def fails():
            warnings.warn("few rows", OverlapWarning, stacklevel=1)
            raise ParameterError("no")

        job.piece("a", fails)

    with pytest.warns(OverlapWarning, match="few rows"), pytest.raises(ParameterError, match=r"^no$"):
        job.run(work=work)
    assert not job.folder.exists()


@pytest.mark.parametrize("where", [(pieces, "replace_file"), (pieces.Path, "mkdir")], ids=lambda where: where[1])
def test_a_full_disk_fails_no_job_and_leaves_nothing(job, monkeypatch, where):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def work():
        with monkeypatch.context() as patched:
            patched.setattr(*where, refuse)
            return job.work()

    with pytest.warns(UnkeptWorkWarning, match=r"^finished parts could not all be kept in '.*work': No space") as told:
        assert job.run(work=work) == (WHOLE, ["first", "second", "inner", "last"])
    assert len(told) == 1
    assert not job.folder.exists()


def test_short_work_and_what_is_as_long_as_a_log_touch_no_disk(job, monkeypatch):
    monkeypatch.setattr(values, "MOST_BYTES", 10)
    assert len(stop(job, "last")) == 1  # of an array, and of a number
    Job(job.folder).run()
    monkeypatch.setattr(pieces, "WORTH_KEEPING", 1e6)
    assert stop(job, "last") == []
    assert not job.folder.exists()


def test_a_result_that_no_file_can_hold_is_worked_out_again(job):
    def work():
        job.piece("outer", lambda: [job.piece("inner"), object()])
        job.piece("end")

    with pytest.raises(KeyboardInterrupt):
        job.run("end", work)
    assert job.run(work=work)[1] == ["outer", "end"]


def test_a_second_job_is_refused_meanwhile(job):
    def work():
        Job(job.folder).run()

    with pytest.raises(
        ParameterError, match=r"another run is writing to '.*work': wait for it, or name another folder"
    ):
        job.run(work=work)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ParameterError, match=r"^cannot write to '.*file'"):
        Job(tmp_path / "file").run()


def test_without_a_checkpoint_work_is_done():
    with within("a"), apart("b"):
        assert kept("a", lambda: kept("a", lambda: 1)) == 1


def test_pieces_of_another_job_are_none_of_this_one_wherever_they_lie(job, tmp_path):
    other = Job(tmp_path / "other", of="another job")
    stop(other, "inner")
    stop(job, "second")
    own = next(job.folder.glob("*/*"))
    own.write_bytes(next(other.folder.glob("*/*")).read_bytes())
    assert job.run()[1] == ["first", "second", "inner", "last"]


def test_pieces_of_another_job_stay_until_one_is_done(job, tmp_path):
    stop(job, "second")
    other = Job(job.folder, of="another job")
    stop(other, "first")
    assert job.run()[1] == ["second", "inner", "last"]
    assert not job.folder.exists()
