"""Entries of the log, its ids, its splits and its frames."""

from __future__ import annotations

from torture.fuzz.calls import either, entry, filled, one, real, whole
from torture.fuzz.entries import pools

_LABELS = one(
    "[1, 0, 1, 0]", "np.array([0., 1, 1, 0])", "np.array([True, False, True, True])", "[0, 0, 0, 0]", "[0, 1, 0, 1]"
)
_IDS = one(
    *("['a', 'b', 'c']", "[3, 1, 2]", "np.array([2**40, 1, 5])", "pd.Series(['x', 'y', 'z'])", "pa.array([7, 8, 9])"),
    *("['', ' ', 'a']", "[True, False, True]", "['1', 'a', '2']", "[1.0, 2.0, 3.0]", "pd.Categorical(['a', 'b', 'c'])"),
    *("np.array(['2020-01-01', '2021-01-01', '2022-01-01'], 'M8[D]')", "[b'a', b'b', b'c']", "['é', 'e\\u0301', 'x']"),
)
_FRAME_PARTS = {
    "u": one(
        "['a', 'b', 'a', 'c']",
        "[1, 2, 1, 3]",
        "['a', 'a', 'a', 'a']",
        "['é', ' ', ' x', '<b>']",
        "['a', 'b', 'c', 'c']",
    ),
    "i": one("[1, 2, 3, 4]", "[1, 1, 2, 1]", "['x', 'y', 'z', 'x']", "[10**18, -5, 0, 7]"),
    "r": one(
        "[1, 0, 1, 0]",
        "[0, 1, 1, 0]",
        "[1, 1, 1, 1]",
        "[.0, 1, 0, 1]",
        "[1, None, 0, 1]",
        "[True, False, True, False]",
        "['1', '0', '1', '1']",
    ),
    "t": one("[1, 2, 3, 4]", "[0, 0, 0, 0]", "pd.date_range('2020-01-01', periods=4).tolist()", "[1.5, 2.5, None, 0]"),
    "p": one("[.1, .5, 1, .2]", "[.1, .1, .1, .1]", "[0, .5, 1, .2]", "[1e-300, 1, 1, 1]"),
}
_FRAME = filled(
    "{kind}({{'user': {u}, 'item': {i}, 'rating': {r}, 't': {t}, 'p': {p}}})",
    kind=one("pd.DataFrame", "pd.DataFrame", "pl.DataFrame", "pa.table"),
    **_FRAME_PARTS,
)
_DUPLICATES = one("'error'", "'first'", "'last'", "'highest'", "'latest'")
_FEATURES = one(
    "pd.DataFrame({'user': ['a', 'b', 'c'], 'x': [1, 2, 3]})",
    "pd.DataFrame({'user': [1, 2, 3], 'x': ['p', 'q', 'p|q']})",
    "pl.DataFrame({'user': ['a', 'b', 'c'], 'x': [True, False, None]})",
    "np.eye(3)",
)
_LOG = {"log": pools.log}
_SETTING_IDS = {
    "ids": one(
        "vr.IdMap.of(['a', 'b', 'c'])", "vr.IdMap.of([3, 1, 2])", "vr.IdMap(3)", "vr.IdMap.in_order(['1', 'a', '2'])"
    )
}

ENTRIES = [
    entry(
        "vr.FeedbackLog.from_arrays",
        {
            "users": one("[0, 1, 0, 2]", "np.array([0, 1, 2, 2])", "[0, 0, 0, 0]"),
            "items": one("[0, 1, 1, 2]", "np.array([3, 1, 1, 2], np.uint8)", "[0, 1, 2, 3]"),
            "labels": _LABELS,
            "n_users": one("3", "3", "100", "2**31 - 1", "np.int64(3)"),
            "n_items": one("4", "4", "5", "2**31 - 1"),
        },
        {
            "positive_from": one("1", ".5"),
            "duplicates": _DUPLICATES,
            "user_ids": _IDS,
            "item_ids": one("['a', 'b', 'c', 'd']", "[1, 2, 3, 4]", "None"),
            "timestamps": one(
                "[1, 2, 3, 4]", "np.array(['2020', '2021', '2022', '2023'], 'M8[Y]')", "[.5, .5, .5, .5]"
            ),
            "propensities": one("[.1, .5, 1, .2]", "[1e-300, 1, 1, 1]"),
            "weights": one("[1, 2, 3, 0]", "[1e-300, 1e300, 1, 1]"),
            "unbiased": one("[True, False, False, True]", "[1, 0, 0, 1]"),
            "user_features": one("np.eye(3)", "[[1], [2], [3]]", "scipy.sparse.eye(3)", "np.zeros((3, 0))"),
            "item_features": one("np.eye(4)", "np.full((4, 2), 1e300)"),
        },
        weight=4,
    ),
    entry(
        "vr.FeedbackLog.from_frame",
        {"frame": _FRAME},
        {
            "user": one("'user'", "None"),
            "item": one("'item'", "None"),
            "rating": one("'rating'", "None"),
            "positive_from": one("1", "None"),
            "duplicates": _DUPLICATES,
            "timestamp": one("'t'", "None"),
            "propensity": one("'p'", "None"),
            "weight": one("'p'", "None"),
            "unbiased": one("'rating'", "None"),
            "user_features": _FEATURES,
        },
        weight=4,
    ),
    entry(
        "vr.FeedbackLog.from_sparse",
        {
            "matrix": filled(
                "scipy.sparse.{kind}_array(np.eye(4) * {by})",
                kind=one("csr", "csc", "coo", "lil", "dok"),
                by=one("1", "0"),
            )
        },
        {"duplicates": one("'error'", "'first'")},
    ),
    entry(
        "vr.FeedbackLog",
        {
            "users": one("[0, 1]"),
            "items": one("[0, 1]"),
            "labels": one("[0, 1]"),
            "n_users": one("2"),
            "n_items": one("2"),
        },
        {"user_ids": one("vr.IdMap(2)", "None"), "ratings": one("[1., 2.]"), "weights": one("[1, 2]")},
    ),
    entry(
        "log.select",
        {"rows": one("[0]", "log.labels == 1", "np.arange(len(log))", "slice(None)", "[0, 0]")},
        setting=_LOG,
    ),
    entry("log.with_labels", {"labels": one("1 - log.labels", "log.labels", "log.labels.astype(bool)")}, setting=_LOG),
    entry("log.with_noise", {"rates": pools.rates}, {"random_state": pools.seed}, setting=_LOG),
    entry("log.to_frame", {}, {"backend": one("'pandas'", "'polars'", "'pyarrow'")}, setting=_LOG),
    entry("log.equals", {"other": pools.log}, setting=_LOG),
    entry("vr.IdMap.of", {"ids": _IDS}, {"from_text": one("True", "False")}),
    entry("vr.IdMap.in_order", {"ids": _IDS}),
    entry("vr.IdMap", {"ids": one("3", "pa.array(['a', 'b'])")}),
    entry("ids.find", {"ids": _IDS}, setting=_SETTING_IDS),
    entry("ids.positions", {"ids": either(_IDS, one("ids.ids()"))}, setting=_SETTING_IDS),
    entry("ids.ids", {}, {"positions": one("[0, 1]", "[]", "None", "[2, 0, 2]")}, setting=_SETTING_IDS),
    entry(
        "vr.split",
        {"log": pools.same_log},
        {
            "held_out": real(0.05, 0.9),
            "by": one("'random'", "'time'", "'user'", "'within-user'"),
            "before": one("3", "5.5", "None"),
            "random_state": pools.seed,
        },
        setting={"log": pools.log_with("timestamps")},
        weight=2,
    ),
    entry("vr.split_unbiased", {"log": pools.log_with("unbiased")}),
    entry("vr.SurveySample.from_unbiased", {"log": pools.log_with("unbiased")}),
    entry(
        "vr.SurveySample",
        {
            "users": one("[0, 1, 2]", "np.array([4, 1, 1])"),
            "items": one("[0, 1, 2]", "[3, 3, 1]"),
            "labels": one("[0, 1, 1]", "np.array([True, False, True])"),
        },
        {
            "probabilities": one("[.1, .2, .3]", "[1e-9, 1, 1]", "[5, 6, 7]"),
            "clusters": one("[0, 0, 1]", "[9, -9, 3]"),
            "noisy": one("True", "False"),
            "frame": one("[0, 1, 2, 3, 4]", "None"),
            "best": one("True", "False"),
        },
    ),
    entry(
        one("vr.AuditSample", "vr.AuditSample"),
        {"users": one("[0, 1, 2]"), "items": one("[0, 1, 2]"), "true_labels": one("[0, 1, 1]", "[1., 0., 1.]")},
        {"probabilities": one("[.1, .2, 1]", "[1e-9, 1, 1]")},
    ),
    entry("vr.ReaskSample", {"users": one("[0, 1, 2]"), "items": one("[0, 1, 2]"), "labels": one("[0, 1, 1]")}),
    entry(
        "sample.select",
        {"rows": one("[0]", "[0, 1]", "np.array([True] * len(sample))")},
        setting=_LOG | {"sample": either(pools.audit, pools.survey)},
    ),
    entry("sample.rows_in", {"log": pools.same_log}, setting=_LOG | {"sample": pools.audit}),
    entry(
        "vr.Factors",
        {
            "user_factors": one("np.eye(3)", "np.ones((3, 3), np.float32)"),
            "item_factors": one("np.eye(3)", "np.ones((3, 3), int)"),
        },
        {
            "user_constants": one("np.zeros(3)", "[1, 2, 3]", "None"),
            "item_constants": one("np.zeros(3)", "None"),
            "constant": real(-5, 5),
            "link": one("'logistic'", "'identity'"),
        },
    ),
    entry(
        "vr.load_dataset",
        {"name": one("'coat'", "'yahoo-r3'", "'nothing'"), "data_home": one("'/nonexistent'", "str(FOLDER)")},
        {"positive_from": whole(1, 5), "download": one("False")},
        weight=0.3,
    ),
]
