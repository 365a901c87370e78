"""Results as files: the same again to the last bit, and nothing but results."""

from __future__ import annotations

import math
import subprocess
import sys
from io import BytesIO

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

import verirec as vr
from held import held
from verirec.estimation import Estimates
from verirec.resuming import values
from verirec.resuming.values import CannotBeKeptError, DamagedError, as_parts, label_in, value_in

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ARRAYS = arrays.arrays(
    st.sampled_from(["f8", "f4", "i4", "i8", "?", "u1", "c16", "U3", "M8[s]"]),
    arrays.array_shapes(min_dims=0, min_side=0),
)
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.booleans())
TREES = st.recursive(
    PLAIN | ARRAYS | ARRAYS.map(np.asfortranarray) | arrays.from_dtype(np.dtype("f8")),
    lambda inside: st.lists(inside) | st.lists(inside).map(tuple) | st.dictionaries(KEYS, inside),
    max_leaves=12,
)


def as_bytes(value, label=None):
    """All that its file holds."""
    return b"".join(as_parts(label, value))


def from_bytes(content):
    return value_in(BytesIO(content))


def same(one, two):
    """The same types, values and bits, in the same order."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray | np.generic):
        layout = one.flags.fnc == two.flags.fnc
        return layout and (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(two)) or (one == two and math.copysign(1, one) == math.copysign(1, two))
    if isinstance(one, dict):
        return same(list(one.items()), list(two.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


@given(TREES)
def test_what_is_read_is_what_was_written(tree):
    found = from_bytes(as_bytes(tree))
    assert same(found, tree)


@given(st.text(), st.floats(allow_nan=False), TREES)
def test_a_label_is_read_alone(name, seconds, tree):
    opened = BytesIO(as_bytes(tree, (name, seconds)))
    assert label_in(opened) == [name, seconds]
    assert opened.tell() < 300 + 6 * len(name)


@pytest.mark.parametrize("long", [np.arange(60.0)[::-3], np.arange(60).reshape(3, 4, 5).swapaxes(0, 1), np.float32(7)])
def test_arrays_of_several_parts_are_whole(long, monkeypatch):
    monkeypatch.setattr(values, "_PART", 7)
    assert same(from_bytes(as_bytes([long, long])), [long, long])


def test_writing_and_reading_hold_no_array_twice(tmp_path, limited):
    long, file = np.arange(4_000_000.0), tmp_path / "file"

    def write():
        with file.open("wb") as opened:
            opened.writelines(as_parts(None, long))

    def read():
        with file.open("rb") as opened:
            return value_in(opened)

    assert held(write) < long.nbytes / 4
    assert held(read) < long.nbytes / 4  # It is in a file, as what the work made of this length would be.
    assert (read() == long).all()


def test_an_array_is_one_of_its_own():
    found = from_bytes(as_bytes(np.arange(3.0)))
    found[0] = 7
    assert found.tolist() == [7, 1, 2]


def test_results_keep_their_classes_and_are_not_made_anew():
    weak = pytest.warns(vr.exceptions.NoiseRateWarning)
    with weak:
        rates = vr.NoiseRates(0.5, 0.45, covariance=((1e-4, 0), (0, 1e-4)), diagnostics={"source": "an audit"})
    estimate = vr.Estimate(0.5, np.float64(0.1), (0.3, math.inf), diagnostics={"variance": {"noise": 0.0}})
    found = from_bytes(as_bytes({"rates": rates, "estimates": Estimates({"ips": estimate}, "the loss")}))
    assert found["rates"] == rates
    assert found["rates"].source == "an audit"
    assert isinstance(found["estimates"], Estimates)
    assert repr(found["estimates"]["ips"]) == repr(estimate)


@pytest.mark.parametrize(
    "value", [object(), len, lambda: 0, {1}, np.array([object()]), type, vr.LabelModel.fit, np.ma.array([1])]
)
def test_what_bytes_cannot_stand_for_is_refused(value):
    with pytest.raises(CannotBeKeptError):
        as_bytes([value])


def test_what_was_changed_or_cut_short_is_damaged():
    whole = as_bytes((1.5, np.arange(9)))
    places = range(0, len(whole), 7)
    for damaged in (*(whole[:end] for end in places), *(_changed(whole, place) for place in places), b"", whole + b"a"):
        with pytest.raises(DamagedError):
            from_bytes(damaged)
    for place in range(len(as_bytes(0))):
        with pytest.raises(DamagedError):
            from_bytes(_changed(as_bytes(0), place))
        with pytest.raises(DamagedError):
            from_bytes(as_bytes(0)[:place])


def _changed(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "verirec.data:FeedbackLog.select",
        "verirec.resuming.pieces:Pieces",
        "x",
        "verirec.nowhere:Estimate",
        "verirec.__main__:main",
        "verirec..estimation:Estimate",
        "verirec.../os:system",
    ],
)
def test_a_class_that_holds_no_result_is_not_taken_from_a_file(name, monkeypatch):
    monkeypatch.setattr("verirec.resuming.values._written", lambda value, arrays: {name: {}})
    forged = as_bytes(0)
    with pytest.raises(DamagedError):
        from_bytes(forged)


def test_no_module_of_another_package_is_imported_by_a_file(tmp_path, monkeypatch):
    for name in ("hostile.py", "verirec_hostile.py"):
        (tmp_path / name).write_text("raise KeyboardInterrupt\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("hostile", "verirec_hostile", "verirec.hostile", "verirec.estimation.intervals.hostile"):
        with monkeypatch.context() as patched:
            patched.setattr(values, "_written", lambda value, arrays, module=module: {f"{module}:Result": {}})
            forged = as_bytes(0)
        with pytest.raises(DamagedError):
            from_bytes(forged)


def test_a_class_whose_module_is_not_loaded_is_found(tmp_path):
    (tmp_path / "file").write_bytes(as_bytes(vr.Estimate(0.5, 0.1, (0.3, 0.7))))
    code = """
import sys
from verirec.resuming.values import value_in
assert "verirec.estimation.intervals" not in sys.modules
with open(sys.argv[1], "rb") as opened:
    print(value_in(opened))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Estimate(value=0.5, "), done.stderr
