"""Predictions from files: tables by id, matrices, factors, and what is refused."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusals import check_refusal
from verirec import FeedbackLog, IdMap, read_log, read_predictions
from verirec.data.predictions import Factors, as_predictions
from verirec.exceptions import (
    ColdStartWarning,
    ColumnError,
    EmptyLogError,
    FileFormatError,
    IdError,
    MissingValueError,
    ParameterError,
    PredictionError,
    ScoreWarning,
    UnknownIdError,
    UnknownIdWarning,
)

USERS, ITEMS = ["ann", "bob", "cy"], [10, 20]
SCORES = {("cy", 10): 0.25, ("ann", 20): 0.5, ("bob", 10): 0.75}


@pytest.fixture(scope="module")
def log():
    return FeedbackLog.from_arrays(
        [0, 1, 2], [0, 1, 1], [1, 0, 1], n_users=3, n_items=2, user_ids=IdMap.of(USERS), item_ids=IdMap.of(ITEMS)
    )


@pytest.fixture
def save(tmp_path):
    """Write bytes, text, an Arrow table, a matrix or a dictionary of arrays, by the file's ending."""

    def save_file(name, content):
        file = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, file)
        elif isinstance(content, dict):
            np.savez(file, **content)
        elif isinstance(content, np.ndarray):
            np.save(file, content)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return save_file


def table(delimiter=",", names=("user", "item", "score"), scores=None):
    lines = [names, *((user, item, score) for (user, item), score in (scores or SCORES).items())]
    return "".join(delimiter.join(map(str, line)) + "\n" for line in lines)


def arrow():
    return pa.table(
        {"user": [user for user, _ in SCORES], "item": [item for _, item in SCORES], "score": list(SCORES.values())}
    )


# Tables


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.csv", table()),
        ("scores.CSV", table()),
        ("scores.tsv", table("\t")),
        ("scores.inter", table("\t", ("user_id:token", "item_id:token", "score:float"))),
        ("scores.csv.gz", gzip.compress(table().encode())),
        ("scores.parquet", arrow()),
        ("other.csv", "note,score,item,user\n" + "".join(f"x,{s},{i},{u}\n" for (u, i), s in SCORES.items())),
    ],
    ids=["csv", "CSV", "tsv", "inter", "csv.gz", "parquet", "other columns"],
)
def test_every_format_of_table_gives_positions_and_scores(save, log, name, content):
    users, items, scores = read_predictions(save(name, content), log)
    assert (users.tolist(), items.tolist(), scores.tolist()) == ([2, 0, 1], [0, 1, 0], [0.25, 0.5, 0.75])


@pytest.mark.parametrize("name", ["score", "scores", "prediction", "Predictions", "predicted", "probability", "rating"])
def test_the_usual_names_of_scores_are_found(save, log, name):
    assert read_predictions(save("s.csv", table(names=("user_id", "movieId", name))), log)[2].tolist() == [
        0.25,
        0.5,
        0.75,
    ]


def test_columns_can_be_named(save, log):
    file = save("s.csv", table(names=("who", "what", "how")))
    assert read_predictions(file, log, user="who", item="what", score="how")[2].tolist() == [0.25, 0.5, 0.75]


def test_a_path_may_be_a_string(save, log):
    assert len(read_predictions(str(save("s.csv", table())), log)[0]) == 3


def test_scores_may_be_whole_numbers(save, log):
    scores = read_predictions(save("s.csv", table(scores={("ann", 10): 3, ("bob", 20): -1})), log)[2]
    assert as_predictions(([0, 1], [0, 1], scores), 3, 2).at([0, 1], [0, 1]).tolist() == [3, -1]


def test_leading_zeros_are_kept_as_in_the_log(save):
    log = read_log(save("log.csv", "user,item,label\n007,1,1\n7,2,0\n07,2,1\n"))
    users, _, scores = read_predictions(save("s.csv", "user,item,score\n7,1,0.1\n007,1,0.2\n07,1,0.3\n"), log)
    assert log.user_ids.ids(users).tolist() == ["7", "007", "07"]
    assert scores.tolist() == [0.1, 0.2, 0.3]


def test_plain_integers_are_those_of_the_log(save):
    log = read_log(save("log.csv", "user,item,label\n10,1,1\n9,2,0\n"))
    assert read_predictions(save("s.csv", "user,item,score\n9,2,0.1\n10,1,0.2\n"), log)[0].tolist() == [0, 1]


def test_a_log_by_position_takes_positions(save):
    log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=3)
    assert read_predictions(save("s.csv", "user,item,score\n1,2,0.1\n"), log)[1].tolist() == [2]


def test_some_of_a_logs_text_ids_may_all_look_like_integers(save):
    log = read_log(save("log.csv", "user,item,label\n007,1,1\n12,2,0\n"))
    assert read_predictions(save("s.csv", "user,item,score\n12,1,0.1\n12,2,0.2\n"), log)[0].tolist() == [1, 1]


def test_a_logs_strings_of_digits_are_found_in_a_text_file(save):
    log = read_log(save("log.parquet", pa.table({"user": ["1", "2"], "item": ["5", "6"], "label": [0, 1]})))
    assert read_predictions(save("s.csv", "user,item,score\n1,5,0.1\n2,6,0.2\n"), log)[0].tolist() == [0, 1]


# Matrices and factors


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int8, bool, ">f8"])
def test_a_matrix_is_read_as_it_is(save, log, kind):
    matrix = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)
    read = read_predictions(save("m.npy", matrix), log)
    assert as_predictions(read, 3, 2).block([0, 1, 2], [0, 1]).tolist() == matrix.tolist()


def factors(random=None):
    random = random or np.random.default_rng(0)
    return {"user_factors": random.normal(size=(3, 4)), "item_factors": random.normal(size=(2, 4))}


def full(random=None):
    random = random or np.random.default_rng(0)
    return factors(random) | {
        "user_constants": random.normal(size=3),
        "item_constants": random.normal(size=2),
        "constant": 0.3,
        "link": "identity",
    }


def dense(read):
    return as_predictions(read, 3, 2).block([0, 1, 2], [0, 1])


@pytest.mark.parametrize("parts", [factors(), full(), full() | {"link": "logistic"}], ids=["bare", "all", "logistic"])
def test_factors_are_read_with_whatever_constants_there_are(save, log, parts):
    read = read_predictions(save("f.npz", parts), log)
    assert isinstance(read, Factors)
    assert (dense(read) == dense(Factors(**parts))).all()


def test_compressed_factors_are_read_too(tmp_path, log):
    np.savez_compressed(tmp_path / "f.npz", **full())
    assert (dense(read_predictions(tmp_path / "f.npz", log)) == dense(Factors(**full()))).all()


@pytest.mark.parametrize("sides", [("user",), ("item",), ("user", "item")], ids=" and ".join)
def test_factors_in_the_order_of_their_ids_are_brought_into_the_logs(save, log, sides):
    parts, shuffled = full(), full()
    for side, ids, order in (("user", np.array(USERS), [2, 0, 1]), ("item", np.array(ITEMS), [1, 0])):
        if side in sides:
            shuffled[f"{side}_ids"] = ids[order]
            for name in (f"{side}_factors", f"{side}_constants"):
                shuffled[name] = parts[name][order]
    assert (dense(read_predictions(save("f.npz", shuffled), log)) == dense(Factors(**parts))).all()


def test_factors_of_ids_that_the_log_does_not_have_are_left_out(save, log):
    parts = full()
    more = parts | {
        "user_ids": np.array(["zoe", *USERS]),
        "user_factors": np.vstack([np.full(4, 99.0), parts["user_factors"]]),
        "user_constants": np.append(99.0, parts["user_constants"]),
    }
    with pytest.warns(UnknownIdWarning) as told:
        read = read_predictions(save("f.npz", more), log)
    assert [str(one.message) for one in told] == [
        "f.npz: factors are left out, of 1 user (first: 'zoe') that the log does not have; to have them counted, read "
        "the log with all_users=..."
    ]
    assert (dense(read) == dense(Factors(**parts))).all()


def test_factors_must_be_there_for_all_ids_of_the_log(save, log):
    fewer = full() | {"user_ids": np.array(USERS[:2])}
    message = (
        r"^f\.npz: user_ids lack 1 of the log's 3 users \(first: 'cy'\); missing='mean' scores them as its mean user$"
    )
    check_refusal(lambda: read_predictions(save("f.npz", fewer), log), UnknownIdError, message)


# What the file does not have, scored by means


def test_factors_of_users_that_a_file_lacks_are_those_of_its_mean_user(save, log):
    parts = full()
    known = {name: parts[name][:2] for name in ("user_factors", "user_constants")}
    with pytest.warns(
        ColdStartWarning, match=r"^f\.npz: user_ids lack 1 of the log's 3 users \(first: 'cy'\): they are"
    ):
        read = read_predictions(save("f.npz", parts | known | {"user_ids": np.array(USERS[:2])}), log, missing="mean")
    expected = {name: np.vstack([part, part.mean(axis=0)]) for name, part in known.items() if part.ndim == 2}
    expected["user_constants"] = np.append(known["user_constants"], known["user_constants"].mean())
    assert dense(read) == pytest.approx(dense(Factors(**parts | expected)))


def test_pairs_that_a_table_lacks_get_the_mean_of_their_item(save, log):
    given = "user,item,score\nann,10,0.25\nbob,10,0.75\nann,20,0.5\n"
    with pytest.warns(ScoreWarning) as told:
        read = read_predictions(save("s.csv", given), log, missing="mean")
    assert dense(read).tolist() == [[0.25, 0.5], [0.75, 0.5], [0.5, 0.5]]
    assert [str(one.message) for one in told] == [
        "s.csv has no score of 3 of the 6 pairs, among them all of 1 of the log's 3 users (first: 'cy'): they are "
        "scored as the mean of their item, or of all"
    ]


def test_a_table_of_all_pairs_needs_no_means(save, log):
    lines = [f"{user},{item},0.{item}" for user in USERS for item in ITEMS]
    file = save("s.csv", "\n".join(["user,item,score", *lines]))
    assert (dense(read_predictions(file, log, missing="mean")) == dense(read_predictions(file, log))).all()


def test_a_file_that_knows_nobody_is_refused_whatever_is_done_about_the_missing(save, log):
    strangers = save("f.npz", full() | {"user_ids": np.array(["x", "y", "z"])})
    message = r"^f\.npz: user_ids lack 3 of the log's 3 users \(first: 'ann', 'bob', 'cy'\)$"
    for missing in ("error", "mean"):
        check_refusal(
            lambda missing=missing: read_predictions(strangers, log, missing=missing), UnknownIdError, message
        )
    check_refusal(lambda: read_predictions(strangers, log, missing="zero"), ParameterError, "^missing must be one of")


# What the log does not have


FULL = "user,item,score\nzoe,10,0.1\nann,10,0.2\nann,77,0.3\nzoe,77,0.4\nyan,20,0.5\ncy,20,0.6\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_ids_that_the_log_does_not_have_are_left_out_with_one_warning(save, log, ending):
    content = FULL
    if ending == "parquet":
        lines = [line.split(",") for line in FULL.split()[1:]]
        users, items, scores = zip(*lines, strict=True)
        content = pa.table({"user": users, "item": list(map(int, items)), "score": list(map(float, scores))})
    with pytest.warns(UnknownIdWarning) as told:
        users, items, scores = read_predictions(save(f"s.{ending}", content), log)
    assert (users.tolist(), items.tolist(), scores.tolist()) == ([0, 2], [0, 1], [0.2, 0.6])
    assert [str(one.message) for one in told] == [
        f"s.{ending}: 4 of 6 rows are left out, of 2 users (first: 'zoe', 'yan') and 1 item (first: 77) that the log "
        "does not have; to have them counted, read the log with all_users=... and all_items=..."
    ]


def test_ids_of_another_kind_among_those_of_the_log_are_left_out_too(save, log):
    with pytest.warns(UnknownIdWarning, match=r"1 of 4 rows are left out, of 1 item \(first: 'new'\)"):
        _, items, _ = read_predictions(save("s.csv", table() + "ann,new,0.5\n"), log)
    assert items.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("zoe,10,1\nyan,20,1\n", r"^s\.csv: user is not in the log in 2 of 2 rows \(first: 0, 1,.*first is 'zoe'$"),
        ("ann,30,1\n", r"^s\.csv: item is not in the log in 1 of 1 rows .*first is 30$"),
        ("zoe,10,1\nann,30,1\n", r"^s\.csv: no row has both a user and an item of the log$"),
    ],
)
def test_a_file_that_has_nothing_of_the_log_is_refused(save, log, rows, message):
    check_refusal(lambda: read_predictions(save("s.csv", f"user,item,score\n{rows}"), log), UnknownIdError, message)


def test_with_all_users_and_items_nothing_is_left_out(save, tmp_path):
    (tmp_path / "users.txt").write_text("ann\nbob\ncy\nzoe\nyan\n")
    log = read_log(
        save("log.csv", "user,item,label\nann,10,1\nbob,20,0\n"),
        all_users=tmp_path / "users.txt",
        all_items=[10, 20, 77],
    )
    assert len(read_predictions(save("s.csv", FULL), log)[0]) == 6


@pytest.mark.parametrize("names", [("who", "what"), ("who", "item"), ("user", "item")], ids=" ".join)
def test_the_logs_own_columns_are_looked_for_before_the_usual_ones(save, log, names):
    file = save("s.csv", table(names=(*names, "score")))
    read = read_predictions(file, log, log_columns={"user": "who", "item": "what"})
    assert read[2].tolist() == [0.25, 0.5, 0.75]


# What is refused


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


@pytest.mark.parametrize("name", ["bomb.npy", "bomb.npz"])
def test_pickled_objects_are_refused_and_not_run(tmp_path, log, name):
    file, place = tmp_path / name, tmp_path / "exploded"
    bomb = np.array([Bomb(place)], dtype=object)
    if name.endswith("npz"):
        np.savez(file, user_factors=bomb, item_factors=bomb)
    else:
        np.save(file, bomb)
    check_refusal(lambda: read_predictions(file, log), FileFormatError, r"^bomb\.np[yz] is not a readable np[yz] file")
    assert not place.exists()


def test_a_bare_pickle_is_refused_and_not_run(tmp_path, log):
    (tmp_path / "bomb.npy").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    check_refusal(
        lambda: read_predictions(tmp_path / "bomb.npy", log), FileFormatError, r"^bomb\.npy is not a readable"
    )
    assert not (tmp_path / "exploded").exists()


def bytes_of(saved, **parts):
    sink = io.BytesIO()
    saved(sink, **parts) if parts else saved(sink, np.ones((3, 2)))
    return sink.getvalue()


NPY, NPZ = bytes_of(np.save), bytes_of(np.savez, **full())

BAD = [
    ("cut.npy", NPY[:-1], FileFormatError, r"^cut\.npy is not a readable npy file of numbers$"),
    ("cut.npy", NPY[:20], FileFormatError, r"^cut\.npy is not a readable"),
    ("empty.npy", b"", FileFormatError, r"^empty\.npy is not a readable"),
    ("text.npy", table(), FileFormatError, r"^text\.npy is not a readable"),
    ("rotten.npz", NPZ[:200] + b"\xff" * 50 + NPZ[250:], FileFormatError, r"^rotten\.npz is not a readable"),
    ("empty.npz", b"", FileFormatError, r"^empty\.npz is not a readable"),
    ("none.npz", {}, FileFormatError, r"must have user_factors and item_factors"),
    ("one.npz", {"user_factors": np.ones((3, 2))}, FileFormatError, r"must have user_factors .*; got user_factors$"),
    (
        "extra.npz",
        full() | {"biases": np.ones(3)},
        FileFormatError,
        r"^extra\.npz must have .* only constant, item_constants,.*; got biases, constant, item_constants",
    ),
    ("ids.npz", full() | {"user_ids": ["ann", "bob", "bob"]}, IdError, r"^user_ids must be distinct; 1 occur more"),
    (
        "ids.npz",
        full() | {"user_ids": ["ann", "bob", "dan"]},
        UnknownIdError,
        r"^ids\.npz: user_ids lack 1 of the log's 3 users \(first: 'cy'\); missing='mean' scores them as its mean",
    ),
    ("ids.npz", full() | {"user_ids": [1, 2, 3]}, UnknownIdError, r"^ids\.npz: user_ids: integers .* has strings$"),
    ("ids.npz", full() | {"item_ids": [10.0, 20.0]}, IdError, r"^item_ids holds 2 floats"),
    ("ids.npz", full() | {"item_ids": [[10], [20]]}, IdError, r"^item_ids must hold strings or integers"),
    ("ids.npz", full() | {"item_ids": 20}, IdError, r"^item_ids must be a sequence of ids"),
    (
        "link.npz",
        full() | {"link": "probit"},
        ParameterError,
        r"^link must be one of identity, logistic; got 'probit'$",
    ),
    ("nan.npz", full() | {"constant": np.nan}, PredictionError, r"^constant must be a finite number"),
    ("nan.npz", full() | {"user_constants": [0, np.nan, 0]}, PredictionError, r"^user_constants must be finite"),
    (
        "rank.npz",
        full() | {"item_factors": np.ones((2, 3))},
        PredictionError,
        r"^item_factors must have shape \(2, 4\)",
    ),
    ("flat.npz", full() | {"item_factors": np.ones(2)}, PredictionError, r"^item_factors must be a matrix"),
    ("text.npz", full() | {"item_factors": [["a"]]}, PredictionError, r"^item_factors must be numbers"),
    ("short.npz", full() | {"user_constants": np.ones(2)}, PredictionError, r"^user_constants must have shape \(3,\)"),
    ("header.csv", "user,item,score\n", EmptyLogError, r"^header\.csv is empty"),
    ("none.parquet", arrow().slice(0, 0), EmptyLogError, r"^none\.parquet is empty"),
    ("empty.csv", "", FileFormatError, r"^empty\.csv is empty$"),
    ("short.csv", table() + "ann\n", FileFormatError, r"^short\.csv is not a readable csv file: .*Expected 3 columns"),
    ("text.parquet", table(), FileFormatError, r"^text\.parquet is not a readable parquet file"),
    ("word.csv", table() + "ann,10,high\n", FileFormatError, r"^word\.csv: score must be numbers; got string$"),
    ("gap.csv", table() + "ann,10,\n", MissingValueError, r"^gap\.csv: score has missing values in 1 of 4 rows"),
    ("nan.csv", table() + "ann,10,NaN\n", MissingValueError, r"^nan\.csv: score has missing values in 1 of 4 rows"),
    ("gap.csv", table() + ",10,0.5\n", MissingValueError, r"^gap\.csv: user has missing values in 1 of 4 rows"),
    ("kind.csv", "user,item,score\nann,x,0.5\n", UnknownIdError, r"item: strings .* the catalogue has integers$"),
    ("float.csv", "user,item,score\nann,10.0,0.5\n", IdError, r"^float\.csv: item holds 1 floats"),
    ("no.csv", "user,item\nann,10\n", ColumnError, r"^no\.csv: cannot tell which column is the score \(none has"),
    ("two.csv", "user,item,score,rating\nann,10,1,1\n", ColumnError, r"several could be it: score, rating"),
    ("twice.csv", "user,item,score,score\nann,10,1,1\n", ColumnError, r"^twice\.csv has a column twice"),
    (
        "one.csv",
        "user;item;score\nann;10;1\n",
        ColumnError,
        r"^one\.csv: .*the only column is .*, write it with commas",
    ),
    ("s.xlsx", table(), ParameterError, r"must end in .*; got 's\.xlsx'$"),
    ("s", table(), ParameterError, r"must end in .*; got 's'$"),
]


@pytest.mark.parametrize(("name", "content", "error", "message"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_file_is_refused_in_one_line_that_says_what_is_wrong(save, log, name, content, error, message):
    check_refusal(lambda: read_predictions(save(name, content), log), error, message)


def read_cut_archive(save, log, content):
    """Read a truncated archive, and give the warnings of what it leaves open."""
    file = save("cut.npz", content)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_refusal(
            lambda: read_predictions(file, log), FileFormatError, r"^cut\.npz is not a readable npz file of numbers$"
        )
        gc.collect()
    return [one for one in told if one.category is ResourceWarning]


@pytest.mark.parametrize("length", [len(NPZ) // 2, len(NPZ) - 1])
def test_a_truncated_archive_is_refused(save, log, length):
    read_cut_archive(save, log, NPZ[:length])


def test_a_truncated_archive_is_not_left_open(save, log):
    assert read_cut_archive(save, log, NPZ[:-1]) == []


def test_a_named_column_that_is_not_there_is_told(save, log):
    file = save("s.csv", table())
    for change, message in (
        ("f", r"^s\.csv: no column 'f' \(for score\); the col"),
        ("item", r"^s\.csv: column 'item' cannot be both the score and"),
    ):
        check_refusal(lambda score=change: read_predictions(file, log, score=score), ColumnError, message)


MISSING = ["missing.csv", "missing.parquet", "folder.csv"]
MISSING_ARRAYS = ["missing.npy", "missing.npz", "folder.npy", "folder.npz"]


def check_missing(tmp_path, log, name):
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    place = re.escape(str(tmp_path / name))
    check_refusal(lambda: read_predictions(tmp_path / name, log), FileFormatError, rf"^no file '?{place}'?$")


@pytest.mark.parametrize("name", MISSING)
def test_a_table_that_is_not_there_is_named(tmp_path, log, name):
    check_missing(tmp_path, log, name)


@pytest.mark.parametrize("name", MISSING_ARRAYS)
def test_an_array_that_is_not_there_is_named(tmp_path, log, name):
    check_missing(tmp_path, log, name)


@pytest.mark.parametrize("name", MISSING_ARRAYS)
def test_an_array_that_is_not_there_is_refused(tmp_path, log, name):
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    check_refusal(lambda: read_predictions(tmp_path / name, log), FileFormatError, re.escape(name))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"user_factors": np.ones((2, 4)), "user_ids": USERS},
            FileFormatError,
            r"^f\.npz: user_factors must have a row for each of the 3 user_ids$",
        ),
        (
            {"user_ids": USERS, "user_factors": np.ones((4, 4))},
            FileFormatError,
            r"^f\.npz: user_factors must have a row for each of the 3 user_ids$",
        ),
        (
            {"user_ids": USERS, "user_factors": 1.0},
            FileFormatError,
            r"^f\.npz: user_factors must have a row for each of the 3 user_ids$",
        ),
        ({"constant": [1.0, 2.0]}, FileFormatError, r"^f\.npz: constant must be a single value; got shape \(2,\)$"),
        ({"constant": "a"}, PredictionError, r"^constant must be a finite number; got 'a'$"),
    ],
    ids=[
        "more ids than factors",
        "more factors than ids",
        "a number for factors",
        "two constants",
        "a constant of text",
    ],
)
def test_factors_that_do_not_fit_their_ids_and_odd_constants_are_refused(save, log, change, error, message):
    check_refusal(lambda: read_predictions(save("f.npz", full() | change), log), error, message)


def test_a_rotten_compressed_archive_is_refused(save, log):
    whole = bytes_of(np.savez_compressed, **full())
    for place in range(60, 200):
        rotten = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        try:
            read_predictions(save("rotten.npz", rotten), log)
        except FileFormatError as error:
            assert "rotten.npz is not a readable npz file" in str(error)  # noqa: PT017


def test_a_matrix_whose_header_is_broken_is_refused(save, log):
    rotten = NPY.replace(b"}", b" ", 1)
    check_refusal(lambda: read_predictions(save("m.npy", rotten), log), FileFormatError, r"^m\.npy is not a readable")


def test_the_endings_of_predictions_are_named(save, log):
    message = r"^predictions, unless \.npy or \.npz, must end in \.csv, \.tsv, \.parquet or \.inter; got 's\.txt'$"
    check_refusal(lambda: read_predictions(save("s.txt", ""), log), ParameterError, message)
