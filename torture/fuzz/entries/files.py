"""Entries of the readers: files of every form, sound, odd and damaged."""

from __future__ import annotations

from torture.fuzz.calls import Pool, Random, either, entry, filled, one, whole
from torture.fuzz.entries import pools

_USERS = (
    "ann",
    "bob",
    "1",
    "007",
    "",
    " x ",
    "é",
    '"a,b"',
    '"a\nb"',
    "=1+1",
    "\u202e",
    "-5",
    "1e5",
    "NA",
    "null",
    "x" * 300,
)
_HEADS = (
    *("user,item,rating", "userId,movieId,rating,timestamp", "user_id,item_id,label", "u,i,r", "USER,ITEM,RATING"),
    *(
        "user,item",
        "user,item,rating,user",
        "\ufeffuser,item,rating",
        '"user","item","rating"',
        "",
        "a" * 5000 + ",item,rating",
    ),
    *("user,item,rating,propensity", "user\titem\trating", "user;item;rating", "user,item,true_label,kind,probability"),
    *("user,item,score", "user,item,answer", "user,item,true_label,person,cluster"),
)
_ENDS = ("\n", "\r\n", "\r", "\n\n")


def _field(random: Random, place: int) -> str:
    if place < 2:
        few = random.random() < 0.7
        return f"{'ui'[place]}{random.integers(4)}" if few else _USERS[random.integers(len(_USERS))]
    return str(
        random.choice(
            ["0", "1", "1", "0", "5", "3.5", ".5", "", "nan", "-1", "1e400", "true", "logged", "x"],
            p=[0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.02, 0.02, 0.02, 0.02, 0.04, 0.04, 0.04],
        )
    )


def text(random: Random, column: str = "rating") -> bytes:
    """Make a text file of pairs: mostly regular, with something odd now and then."""
    head = f"user,item,{column}" if random.random() < 0.8 else _HEADS[random.integers(len(_HEADS))]
    delimiter = "\t" if "\t" in head else ";" if ";" in head else ","
    width = head.count(delimiter) + 1
    end = _ENDS[0] if random.random() < 0.8 else _ENDS[random.integers(len(_ENDS))]
    rows = []
    regular = random.random() < 0.7
    for row in range(random.integers(2, 12)):
        fields = [_field(random, place) for place in range(width)]
        if regular:
            fields[:3] = [f"u{row % 4}", f"i{row // 4}", str(row % 2)][:width]
        if random.random() < 0.003:
            fields = fields[:-1]
        rows.append(delimiter.join(fields))
    content = end.join([head, *rows]) + (end if random.random() < 0.9 else "")
    encoding = "utf-8" if random.random() < 0.95 else random.choice(["latin-1", "utf-16", "utf-8-sig"])
    raw = content.encode(encoding, "replace")
    return _hurt(raw, random) if random.random() < 0.2 else raw


def _hurt(raw: bytes, random: Random) -> bytes:
    place = random.integers(0, len(raw) + 1)
    return raw[:place] + random.choice([b"\0", b"\xff", b'"', b"\r", b",", b"\n", b"'", b"=", b"\\"]) + raw[place:]


def _text_file(column: str, *endings: str) -> Pool:
    def draw(random: Random) -> str:
        content, ending = text(random, column), endings[random.integers(len(endings))]
        if ending in (".tsv", ".inter"):
            content = content.replace(b",", b"\t")
        if ending.endswith(".gz"):
            cut = one("", "", "", "[:-5]", "[:12]", " + b'x'")(random)
            return f"written('a{ending}', gzip.compress({content!r}, 1){cut})"
        return f"written('a{ending}', {content!r})"

    return draw


_COLUMNS = {
    "u": one(
        "['a', 'b', 'a', 'c']",
        "[1, 2, 1, 3]",
        "pa.array(['a', 'b', 'a', 'c']).dictionary_encode()",
        "[1.5, 2, 1, 3]",
        "pa.array([1, 2, None, 3])",
        "[b'a', b'b', b'a', b'c']",
        "[['a'], ['b'], [], None]",
        "pa.array([1, 2, 1, 3], pa.uint64())",
        "pa.array(['a', 'b', 'a', 'c'], pa.large_string())",
        "['u0', 'u1', 'u2', 'u0']",
    ),
    "i": one(
        "[1, 2, 3, 4]", "['x', 'y', 'z', 'x']", "[1, 1, 1, 1]", "['i0', 'i0', 'i1', 'i1']", "[True, False, True, False]"
    ),
    "r": one(
        "[1, 0, 1, 0]",
        "[.5, .1, .9, .3]",
        "[1, None, 0, 1]",
        "[nan, 1., 0., 1.]",
        "['1', '0', '1', '0']",
        "pa.array([1, 0, 1, 0], pa.int8())",
        "pa.array([1, 0, 1, 0]).cast(pa.decimal128(5, 2))",
        "[True, False, True, False]",
    ),
}
_HURT_PARQUET = filled(
    "written('a.parquet', hurt(parquet({{'user': {u}, 'item': {i}, 'rating': {r}}}), {seed}))",
    seed=whole(0, 10**6),
    **_COLUMNS,
)


def _table(column: str) -> Pool:
    """Draw a file of pairs, the third column of which has this name."""
    as_text = _text_file(column, ".csv", ".csv", ".csv", ".tsv", ".inter", ".csv.gz")
    parquet = filled(
        "written('a.parquet', parquet({{'user': {u}, 'item': {i}, {name}: {r}}}{options}))",
        name=one(*[repr(column)] * 5, "'label'"),
        options=one("", ", row_group_size=1", ", compression='gzip'", ", use_dictionary=False", ", version='1.0'"),
        **_COLUMNS,
    )
    return either(as_text, as_text, as_text, as_text, parquet, parquet, _HURT_PARQUET)


_ARRAY = one(
    *(
        "np.full(log.shape, .5)",
        "np.zeros((2, 2))",
        "np.array(['a'])",
        "np.array([None])",
        "scores_of(log, 1)",
        "np.array(3.)",
    ),
    *("scores_of(log, 1).astype('>f4')", "np.full(log.shape, nan)", "scores_of(log, 1).astype(complex)"),
)
_FACTORS = one(
    "user_factors=np.ones((log.n_users, 2)), item_factors=np.ones((log.n_items, 2))",
    "user_factors=np.ones((log.n_users, 2)), item_factors=np.ones((log.n_items, 2)), constant=1, link='identity'",
    "user_factors=np.ones((log.n_users, 2)), item_factors=np.ones((log.n_items, 3))",
    "user_factors=np.ones((log.n_users, 0)), item_factors=np.ones((log.n_items, 0)), user_constants=np.ones(log.n_users)",
    "user_factors=np.ones((2, 1)), item_factors=np.ones((3, 1)), user_ids=log.user_ids.ids([0, 0]), item_ids=[1, 2, 3]",
    "user_factors=np.ones((1, 1)), item_factors=np.ones((3, 1)), user_ids=log.user_ids.ids([0]), item_ids=log.item_ids.ids()[:3]",
    "user_factors=np.array([object()]), item_factors=[1]",
    "nothing=1",
)
_PREDICTIONS = either(
    _table("score"),
    _table("score"),
    filled("written('a.npy', npy({array}))", array=_ARRAY),
    filled("written('a.npy', hurt(npy({array}), {seed}))", array=_ARRAY, seed=whole(0, 10**6)),
    filled("written('a.npz', npz({parts}))", parts=_FACTORS),
    filled("written('a.npz', hurt(npz({parts}), {seed}))", parts=_FACTORS, seed=whole(0, 10**6)),
)
_ROWS = b"user,item,rating\n" + b"".join(b"u%d,i%d,%d\n" % (row % 4, row // 4, row % 2) for row in range(12))
_SOUND_LOG = one(f"written('l.csv', {_ROWS!r})")
_NAMED = {"log": filled("vr.read_log({file})", file=_SOUND_LOG)}
_COLUMN = one("None", "'user'", "None", "'u'")
_FEATURE_ROWS = one(
    *(
        "b'user,x,y\\nu0,1,a\\nu1,2,b\\nu2,3,c\\nu3,,d\\n'",
        "b'user,x\\nu0,a|b\\nu1,\\nu2,b\\nu3,c\\n'",
        "b'user\\nu0\\n'",
    ),
    *(
        "b'id,x\\n1,2\\n'",
        "b'user,x\\nu0,1\\nu0,2\\nu1,1\\nu2,1\\nu3,1\\n'",
        "b'user,x,x\\nu0,1,1\\nu1,1,2\\nu2,1,1\\nu3,3,3\\n'",
    ),
    *("b'user,x\\nu0,1e999\\nu1,0\\nu2,0\\nu3,1\\n'", "b''", "b'\\xff\\xfe'", "b'user,x\\n'", "b'user,\"x\\nu0,1\\n'"),
)

_HOW_READ = {
    "delimiter": one("','", "None", "None", "';'"),
    "columns": one("['user', 'item', 'rating']", "None", "None", "None"),
    "user": one("'user'", "None"),
    "positive_from": one("1", "1", ".5"),
    "duplicates": one("'first'", "'last'", "'highest'", "'error'"),
    "drop_missing": one("True", "False"),
    "clean_ids": one("True"),
    "scale": one("(0, 1)", "(1, 5)", "(5, 1)"),
    "levels": one("[0, 1]", "[1, 2, 3]"),
    "encoding": one("'utf-8'", "'utf-16'", "'no'"),
}
_MEMORY = {"memory": one("'1GB'", "10**9", "'10MB'", "1", "'much'")}
_PARTS = filled("[{one}, {other}]", one=_table("rating"), other=_SOUND_LOG)

ENTRIES = [
    entry(
        "vr.read_log",
        {"path": _table("rating")},
        {
            "delimiter": one("','", "None", "None", "';'"),
            "columns": one("['user', 'item', 'rating']", "None", "None", "None"),
            "user": one("'user'", "None"),
            "item": one("'item'", "None"),
            "rating": one("'rating'", "None"),
            "positive_from": one("1", "1", ".5"),
            "duplicates": one("'first'", "'last'", "'highest'", "'error'"),
            "propensity": one("'rating'", "None", "None", "None"),
        },
        weight=10,
    ),
    entry(
        "vr.read_log",
        {"path": _SOUND_LOG},
        {
            "user_features": filled(
                "written('f{end}', {rows})", end=one(".csv", ".csv", ".csv", ".tsv"), rows=_FEATURE_ROWS
            ),
            "all_users": one(
                "written('u.txt', b'u0\\nu1\\nu2\\nu3\\nu9\\n')",
                "written('u.txt', b'u0\\n')",
                "written('u.txt', b'\\xff\\n')",
                "written('u.txt', b'')",
                "written('u.txt', b'\\xef\\xbb\\xbfu0\\r\\nu1\\r\\nu2\\r\\nu3')",
                "FOLDER / 'none.txt'",
            ),
            "all_items": one("written('i.txt', b'i0\\ni1\\ni2\\n')", "['i0', 'i1', 'i2', 'i3']"),
        },
        weight=3,
    ),
    entry(
        "vr.read_predictions",
        {"path": _PREDICTIONS, "log": pools.same_log},
        {"user": _COLUMN, "score": one("None", "'score'")},
        setting=_NAMED,
        weight=6,
    ),
    entry(
        "vr.SurveySample.from_file",
        {"path": _table("true_label"), "log": pools.same_log},
        {"user": _COLUMN, "true_label": one("None", "'true_label'")},
        setting=_NAMED,
        weight=4,
    ),
    entry(
        "vr.AuditSample.from_file",
        {"path": _table("true_label"), "log": pools.same_log},
        {"item": one("None", "'item'"), "true_label": one("None", "'true_label'")},
        setting=_NAMED,
        weight=4,
    ),
    entry(
        "vr.ReaskSample.from_file",
        {"path": _table("answer"), "log": pools.same_log},
        {"answer": one("None", "'answer'")},
        setting=_NAMED,
        weight=3,
    ),
    entry(
        "vr.prepare_log",
        {"paths": either(_PARTS, _table("rating"), _SOUND_LOG), "out": one("FOLDER / 'log'", "FOLDER", "'a/b'", "''")},
        _HOW_READ | _MEMORY,
        weight=1.5,
    ),
    entry("vr.scan_log", {"paths": either(_PARTS, _table("rating"), _SOUND_LOG)}, _HOW_READ | _MEMORY, weight=1.5),
    entry("vr.check_file", {"path": _table("rating")}, _HOW_READ, weight=2),
    entry(
        "lambda **given: vr.read_limits(**given).__enter__()",
        {},
        {name: one("1", "10**9", "1.5", "0") for name in ("rows", "columns", "field_bytes", "expansion", "memory")},
        weight=0.2,
    ),
    entry(
        "vr.adapt",
        {
            "model": one(
                "Scorer()",
                "Broken()",
                "pd.DataFrame({'user': ['u0', 'u0', 'u1'], 'item': ['i0', 'i1', 'i0'], 'rank': [1, 2, 1]})",
                "pd.DataFrame({'user': ['u0', 'x'], 'item': ['i0', 'i1'], 'score': [1., nan]})",
                "trained()",
                "(np.ones((4, 2)), np.ones((3, 2)))",
            ),
            "log": one("log"),
        },
        {
            "features": one("lambda users, items: np.ones((len(users), 2))", "lambda users, items: [1]"),
            "user_ids": one("log.user_ids.ids()", "['u0']"),
            "item_ids": one("log.item_ids.ids()", "['i0']"),
        },
        setting=_NAMED,
        weight=1,
    ),
]
