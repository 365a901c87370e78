import math

import numpy as np
import pytest

from verirec.checks import one_of, real_number, whole_number
from verirec.exceptions import ParameterError


@pytest.mark.parametrize("value", [1, 5, 10, np.int8(5), np.uint64(10)])
def test_whole_number_gives_a_python_int_with_both_ends_included(value):
    number = whole_number("k", value, min=1, max=10)
    assert number == value
    assert type(number) is int


@pytest.mark.parametrize("value", [0, 11, -1, 5.0, np.float64(5), "5", True, np.True_, None, [5], math.nan])
def test_whole_number_refuses_and_names_argument_range_and_value(value):
    with pytest.raises(ParameterError) as caught:
        whole_number("k", value, min=1, max=10)
    assert str(caught.value) == f"k must be a whole number from 1 to 10; got {value!r}"


def test_whole_number_without_upper_end_takes_anything_from_the_lower():
    assert whole_number("k", 10**30, min=0) == 10**30
    with pytest.raises(ParameterError, match=r"^k must be a whole number of at least 0; got -1$"):
        whole_number("k", -1, min=0)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(-3), -1e300])
def test_real_number_gives_a_python_float(value):
    number = real_number("x", value)
    assert number == value
    assert type(number) is float


@pytest.mark.parametrize(("closed", "taken"), [(True, [0, 0.5, 1]), (False, [0.5])])
def test_real_number_includes_its_ends_only_if_closed(closed, taken):
    for value in (-0.1, 0, 0.5, 1, 1.1):
        if value in taken:
            assert real_number("x", value, above=0, below=1, closed=closed) == value
        else:
            with pytest.raises(ParameterError):
                real_number("x", value, above=0, below=1, closed=closed)


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (math.nan, {}, "x must be a finite number; got nan"),
        (math.inf, {}, "x must be a finite number; got inf"),
        (-math.inf, {"below": 1}, "x must be a finite number below 1; got -inf"),
        ("1", {}, "x must be a finite number; got '1'"),
        (None, {}, "x must be a finite number; got None"),
        (True, {}, "x must be a finite number; got True"),
        (np.True_, {}, "x must be a finite number; got np.True_"),
        (0, {"above": 0}, "x must be a finite number above 0; got 0"),
        (1, {"above": 0, "below": 1}, "x must be a finite number above 0 and below 1; got 1"),
        (2, {"above": 0, "below": 1, "closed": True}, "x must be a finite number at least 0 and at most 1; got 2"),
        pytest.param(
            10**400, {}, f"x must be a finite number; got 1{'0' * 59}... (401 characters)", id="beyond float64"
        ),
        (np.complex128(1), {}, "x must be a finite number; got np.complex128(1+0j)"),
    ],
)
def test_real_number_refuses_and_names_argument_bounds_and_value(value, bounds, message):
    with pytest.raises(ParameterError) as caught:
        real_number("x", value, **bounds)
    assert str(caught.value) == message


def test_one_of_takes_a_choice_and_names_all_of_them_otherwise():
    assert one_of("by", "time", ("time", "random")) == "time"
    for value in ("Time", "", None, 1, ["time"]):
        with pytest.raises(ParameterError) as caught:
            one_of("by", value, ("time", "random"))
        assert str(caught.value) == f"by must be one of random, time; got {value!r}"
