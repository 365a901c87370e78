"""The benchmark's own logic: what counts of the rounds, what is left out, what a file keeps. Nothing is timed."""

from __future__ import annotations

import doctest
import math
import re
from dataclasses import replace

import pytest
from benchmarks.speed import compare, page
from benchmarks.speed import results as files
from benchmarks.speed.__main__ import chosen, results_in
from benchmarks.speed.case import Case, LeftOut, Taken, Target
from benchmarks.speed.cases import CASES
from benchmarks.speed.compare import changes, table
from benchmarks.speed.results import Result, Results, machine, result_of
from benchmarks.speed.run import run_case
from benchmarks.speed.watch import Laps, Memory, Watch
from benchmarks.speed.work import Work


class Inside:
    """A worker in this process, which also writes down who ran."""

    started: list[list[str]]

    def __init__(self, case):
        self.work, self.ran = Work(case), []
        Inside.started.append(self.ran)

    def __call__(self, contender):
        self.ran.append(contender)
        return self.work.round(contender)

    def close(self):
        self.ran.append("closed")


def timed(*cpu):
    """Prepare a contender whose rounds say that they took this much."""

    def prepare():
        left = list(cpu)
        return lambda: Taken(2 * left[0], left.pop(0))

    return prepare


def missing():
    raise LeftOut("no data")


def not_installed():
    import a_library_that_nobody_has  # noqa: F401


def case_of(contenders, **given):
    return Case("group/one", "a title", "a size", contenders, **{"rounds": 2} | given)


def found(contenders, **given):
    Inside.started = []
    return run_case(case_of(contenders, **given), Inside)


def result(ours, theirs=None, name="group/one", targets=()):
    sides = {"ours": ours} | ({} if theirs is None else {"theirs": theirs})
    rounds = {side: {"cpu": cpu, "wall": cpu, "extra_gb": [0.5, 0.1]} for side, cpu in sides.items()}
    return Result(name, "a title", "a size", rounds, {}, list(targets), None, "abc1234")


def results(*of):
    one = Results({"processor": "some", "vectors": "AVX2", "cores": 2, "memory_gb": 8}, {"python": "3.11"})
    for each in of:
        one.add(each)
    return one


def test_contenders_take_turns_in_one_process_or_each_in_its_own():
    both = {"ours": timed(3, 1), "theirs": timed(5, 4)}
    seen = found(both)
    assert Inside.started == [["ours", "theirs", "ours", "theirs", "closed"]]
    assert {name: one["cpu"] for name, one in seen.rounds.items()} == {"ours": [3, 1], "theirs": [5, 4]}
    found(both, apart=True)
    assert Inside.started == [["ours", "ours", "closed"], ["theirs", "theirs", "closed"]]


def test_what_is_not_at_hand_is_left_out_with_a_reason():
    seen = found({"ours": timed(1, 1), "theirs": not_installed})
    assert seen.left_out == {"theirs": "a_library_that_nobody_has is not installed"}
    assert Inside.started == [["ours", "theirs", "ours", "closed"]]
    alone = found({"ours": missing, "theirs": timed(1, 1)})
    assert alone.left_out == {"ours": "no data"}
    into = results()
    into.add(result_of(case_of({"ours": missing}), found({"ours": missing}), "abc"))
    assert into.left_out == {"group/one": "no data"}
    assert not into.cases


def test_a_round_that_says_nothing_is_timed():
    seen = found({"ours": lambda: lambda: sum(range(100_000))})
    assert all(0 < cpu < 60 for cpu in seen.rounds["ours"]["cpu"])


def test_the_least_counts_and_the_largest_of_memory():
    one = result([1.3, 1.0, 1.2], [4.0, 2.0, 2.5])
    assert (one.least("ours", "cpu"), one.least("ours", "extra_gb"), one.ratio("theirs", "cpu")) == (1.0, 0.5, 0.5)
    assert one.noise("ours", "cpu") == pytest.approx(0.2)
    assert math.isnan(result([1.0]).noise("ours", "cpu"))


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target(0.5, "theirs"), True),
        (Target(0.49, "theirs"), False),
        (Target(1.0), True),
        (Target(0.4, measure="extra_gb"), False),
        (Target(0.5, "nobody"), None),
    ],
)
def test_a_target_is_met_missed_or_not_measured(target, met):
    assert result([1.0, 1.1], [2.0, 2.1]).met(target) is met


def test_a_busy_machine_is_told():
    one = result([1.0, 2.0])
    one.rounds["ours"]["others"] = [0.3, 0.0]
    assert results(one, result([1.0], name="group/calm")).busy == ["group/one"]
    assert results(one, result([1.0], name="group/calm")).busiest == one.busy


def test_a_file_keeps_all_and_takes_in_more(tmp_path):
    path = tmp_path / "new" / "bench.json"
    first = results(result([1.0], targets=[Target(0.5, "theirs", "wall")]), result([2.0], name="group/two"))
    first.save(path)
    assert Results.load(path) == first
    again = Results.load(path)
    again.add(replace(result([0.5]), revision="def5678"))
    assert list(again.cases) == ["group/two", "group/one"]
    assert again.revisions == ["abc1234", "def5678"]


def test_a_file_of_another_machine_is_not_added_to(tmp_path, capsys):
    results(result([1.0])).save(tmp_path / "other.json")
    assert not results_in(tmp_path / "other.json").cases
    assert "begun anew" in capsys.readouterr().out
    here = Results.here()
    here.add(result([1.0]))
    here.save(tmp_path / "same.json")
    assert results_in(tmp_path / "same.json").cases


def verdicts(old, new):
    return {one.name: one.verdict for one in changes(old, new)}


def test_a_change_is_told_from_noise():
    old = results(result([1.0, 1.01]), result([1.0, 1.3], name="group/noisy"))
    new = results(result([1.2, 1.21]), result([1.2, 1.2], name="group/noisy"))
    assert verdicts(old, new) == {"group/one": "slower", "group/noisy": "same"}
    assert verdicts(new, old) == {"group/one": "faster", "group/noisy": "same"}
    assert "slower" in table(changes(old, new)).splitlines()[1]


def test_contenders_of_other_names_are_not_compared():
    old, new = results(result([1.0])), results(result([0.5]))
    new.cases["group/one"].rounds["fewer"] = new.cases["group/one"].rounds.pop("ours")
    assert verdicts(old, new) == {}
    target = Target(2.0)
    goals = page.goals(results(replace(new.cases["group/one"], targets=[target])), old)
    assert [(one.now, one.before) for one in goals] == [(0.5, None)]


def test_beside_a_contender_a_slow_day_is_no_change():
    old, new = results(result([1.0, 1.0], [2.0, 2.0])), results(result([1.5, 1.5], [3.0, 3.0]))
    assert verdicts(old, new) == {"group/one": "same"}


def test_machines_are_compared_by_ratios_alone():
    old = results(result([1.0, 1.0], [2.0, 2.0]), result([1.0, 1.0], name="group/alone"))
    new = replace(results(*[replace(one) for one in old.cases.values()]), machine={"processor": "another"})
    assert verdicts(old, new) == {"group/one": "same"}


def test_the_page_says_what_the_file_has():
    now = results(result([0.25, 0.3], [1.0, 1.0], targets=[Target(0.2, "theirs"), Target(7.0)]))
    before = results(result([0.5, 0.6], [1.0, 1.0]))
    text = page.rendered("{{ targets }}\n\n{{ table('group') }}\n", now, before)
    assert "| a title, a size | CPU s / theirs | 0.2 | 0.5 | 0.25 | **missed** |" in text
    assert "| a title, a size | CPU s | 7.00 | 0.5 | 0.25 | met |" in text
    assert "|  | theirs | 1.00 | 1.00 | 0.5 | 0.25 | 0.5 |" in text
    far = results(result([0.25], [20.0], targets=[Target(1 / 60, "theirs")]))
    assert "| 1/60 |  | 1/80 | met |" in page.rendered("{{ targets }}", far, None)
    elsewhere = replace(before, machine={"processor": "another"})
    assert "| CPU s | 7.00 |  | 0.25 | met |" in page.rendered("{{ targets }}", now, elsewhere)


def test_a_picture_is_drawn(tmp_path):
    now = results(result([0.25], [1.0], targets=[Target(0.2, "theirs"), Target(7.0), Target(1, "nobody")]))
    page.draw(now, None, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 1_000


def test_cases_are_chosen_by_group_and_name():
    assert all(case.group == "sweep" and not case.large for case in chosen(["sweep"], large=False))
    assert [case.name for case in chosen(["sweep/31M-1"], large=False)] == ["sweep/31M-1"]
    assert len(chosen(None, large=True)) == len(CASES)


def test_every_target_is_of_a_contender_of_its_case():
    for case in CASES.values():
        assert {one.of for one in case.targets} <= {None, *case.contenders}, case.name


def test_clocks_start_at_nought_and_the_first_lap_is_left_out():
    assert all(0 <= figure < 60 for figure in Watch().taken())
    laps = Laps()
    laps.seen = [Taken(0.1, 0.1), Taken(3.0, 2.0), Taken(2.0, 3.0)]
    assert laps.least() == Taken(2.0, 2.0)
    assert not Memory().extra() > 1


def test_a_machine_has_no_name():
    assert set(machine()) == {"processor", "vectors", "cache", "cores", "memory_gb", "system"}


@pytest.mark.parametrize("module", [compare, page, files])
def test_examples_hold(module):
    assert doctest.testmod(module).attempted
    assert not doctest.testmod(module).failed


def test_prose_has_ratios_of_any_two_contenders_and_figures_by_row():
    rounds = {name: {"cpu": [cpu], "wall": [1.0]} for name, cpu in (("a", 3.08), ("b", 2.0), ("c", 0.5))}
    found = results(replace(result([1.0], name="plan/rates"), rounds=rounds))
    text = """{{ ratio("plan/rates", "b", "c") }} {{ ratio("plan/rates", "b", "d") }} {{ nanoseconds("plan/rates") }}"""
    assert page.rendered(text, found, None) == "4.00 ? 1,000"


def test_cases_that_prose_divides_say_by_what():
    asked = re.findall(r'nanoseconds\("([^"]+)"\)', (page.ROOT / "benchmarks/speed/speed.md.jinja").read_text())
    assert asked
    assert all(CASES[name].units > 1 for name in asked)


def test_what_was_not_measured_is_null_in_the_file_and_not_a_number_when_read(tmp_path):
    rounds = {"ours": {"cpu": [1.0], "wall": [1.0], "extra_gb": [float("nan")], "others": [float("nan")]}}
    results = Results({}, {})
    results.add(Result("a/b", "", "", rounds, {}, [], None, "abc"))
    results.save(tmp_path / "bench.json")
    assert "NaN" not in (tmp_path / "bench.json").read_text()
    read = Results.load(tmp_path / "bench.json").cases["a/b"]
    assert math.isnan(read.least("ours", "extra_gb"))
    assert read.busy == 0.0
