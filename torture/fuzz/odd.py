"""Changes of a call: odd forms of what an argument is, values just beyond what it may be, and things it can never be."""

from __future__ import annotations

from torture.fuzz.calls import Call, Random, one

JUNK = one(
    *("None", "True", "False", "-1", "0", "1", "2", "7", "2**31", "2**63", "-2**63", "10**400", "0.5", "1e-320"),
    *(
        "1e308",
        "-0.0",
        "nan",
        "inf",
        "-inf",
        "1j",
        "np.float16(.1)",
        "np.int8(3)",
        "np.bool_(True)",
        "np.uint64(2**63)",
    ),
    *("''", "'a'", "'log'", "'all'", "'\\0'", "'a\\nb'", "'x' * 5000", "'\\ud800'", "b'a'", "'../..'", "'1'", "'=1+1'"),
    *("[]", "()", "{}", "set()", "[[]]", "[None]", "[nan]", "[[1], [1, 2]]", "['a', 1]", "[0]", "[1, 0]", "{'a': 1}"),
    *("np.array([])", "np.array(nan)", "np.array('naive')", "np.zeros((2, 2, 2))", "np.zeros((0, 3))", "np.eye(3)"),
    *("np.array(['a', 'b'])", "np.array([1, None], dtype=object)", "np.array(['2020-01-01'], 'M8[s]')"),
    *("np.ma.masked_array([1, 0], [True, False])", "np.array([(1, 2.0)], dtype=[('a', int), ('b', float)])"),
    *("pd.NA", "pd.NaT", "pd.Series([1, None])", "pd.DataFrame({'a': [1]})", "pd.DataFrame()", "pd.Index(['a'])"),
    *("pa.array([1, None])", "pa.table({'a': [1]})", "scipy.sparse.eye(3)", "pathlib.Path('a')", "pathlib.Path('/')"),
    *("Decimal('NaN')", "Decimal(1)", "Fraction(1, 3)", "datetime.datetime(2020, 1, 1)", "object()"),
    *(
        "lambda *given: given",
        "iter([1, 0])",
        "(value for value in [0, 1])",
        "range(3)",
        "slice(2)",
        "...",
        "memoryview(b'ab')",
    ),
    *("vr", "log_of(2, 2, 3)", "vr.NoiseRates(.1, .2)", "Broken()", "Nested()"),
)
"""Expressions of what no argument, or only another one, takes."""

SAME = (
    *("list({})", "tuple({})", "np.asarray({}).tolist()", "np.asarray({}).astype(object)", "pd.Series({})"),
    *("pa.array(np.asarray({}))", "np.asarray({}).astype('>f8')", "np.asarray({}, dtype=np.float32)"),
    *(
        "np.asfortranarray({})",
        "frozen({})",
        "strided({})",
        "np.asarray({}).astype('>i4')",
        "np.asarray({}, dtype=np.float16)",
    ),
    *(
        "str({})",
        "np.array({})",
        "np.asarray({}).astype(np.uint8)",
        "np.matrix({})",
        "np.asarray({}).astype(np.longdouble)",
    ),
    *("pl.Series(np.asarray({}).tolist())", "np.asarray({}).view(np.ndarray)", "torch.as_tensor({})"),
)
"""The same values in another form."""

NEAR = (
    *("-np.asarray({})", "np.asarray({})[:-1]", "np.asarray({})[::-1]", "np.asarray({}) * 1e300", "spoilt({}, nan)"),
    *(
        "spoilt({}, inf)",
        "spoilt({}, -1)",
        "spoilt({}, 2**40)",
        "spoilt({}, .5)",
        "np.append({}, 0)",
        "[{}, {}]",
        "({},)",
    ),
    *(
        "np.asarray({})[None]",
        "np.asarray({})[..., None]",
        "np.asarray({}).ravel()",
        "np.asarray({}) * 0",
        "np.asarray({}) + 1",
    ),
    *(
        "np.ma.masked_equal({}, 1)",
        "{{0: {}}}",
        "np.asarray({}) / 0.0",
        "np.asarray({}).T",
        "[]",
        "np.asarray({}) * 1e-320",
    ),
)
"""Values beside those that are right."""


def changed(call: Call, random: Random) -> Call:
    """Leave a valid call as it is, or change one argument of it or some."""
    times = random.choice([0, 1, 2], p=[0.45, 0.45, 0.1])
    for _ in range(times):
        names = [*call.arguments]
        if names:
            name = names[random.integers(len(names))]
            call = call.with_argument(name, _other(call.arguments[name], random))
    return call


def _other(text: str, random: Random) -> str:
    """Return another expression for an argument: the same in another form, one beside it, or junk."""
    kind = random.random()
    if kind < 0.3:
        return JUNK(random)
    template = SAME[random.integers(len(SAME))] if kind < 0.65 else NEAR[random.integers(len(NEAR))]
    return template.format(*[text] * template.count("{}"))
