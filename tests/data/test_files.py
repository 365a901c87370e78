import gzip
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from refusals import check_refusal
from verirec import AuditSample, FeedbackLog, read_log
from verirec.data.roles import Roles, ScoreRoles, TruthRoles
from verirec.data.text_files import read_delimited
from verirec.exceptions import (
    AuditError,
    ColumnError,
    DataError,
    DuplicatePairError,
    EmptyLogError,
    FileFormatError,
    IdError,
    LabelError,
    MissingValueError,
    ParameterError,
    UnknownIdError,
)

TABLE = pa.table(
    {
        "user_id": ["u3", "u1", "u2", "u1", "u3"],
        "extra": [0, 0, 0, 0, 0],
        "item_id": [20, -1, 3, 3, 2**40],
        "rating": [5.0, 2.5, 4.0, 1.0, 3.0],
        "when": [5, 4, 3, 2, 1],
        "p": [0.1, 0.5, 1.0, 0.25, 0.125],
    }
)
OPTIONS = {"positive_from": 3, "timestamp": "when", "propensity": "p"}


def text_of(table, delimiter, types=None):
    header = [f"{name}:{types[name]}" if types else name for name in table.column_names]
    lines = [header, *([str(value) for value in row.values()] for row in table.to_pylist())]
    return "".join(delimiter.join(line) + "\n" for line in lines).encode()


def compressed(content, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def parquet_of(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


RECBOLE = {
    "user_id": "token",
    "extra": "float",
    "item_id": "token",
    "rating": "float",
    "when": "float",
    "p": "float",
}
FILES = {
    "log.csv": text_of(TABLE, ","),
    "LOG.CSV": text_of(TABLE, ","),
    "crlf.csv": text_of(TABLE, ",").replace(b"\n", b"\r\n"),
    "bom.csv": b"\xef\xbb\xbf" + text_of(TABLE, ","),
    "no.end.of.line.csv": text_of(TABLE, ",").rstrip(),
    "log.tsv": text_of(TABLE, "\t"),
    "log.inter": text_of(TABLE, "\t", RECBOLE),
    "log.csv.gz": compressed(text_of(TABLE, ","), "gzip"),
    "log.tsv.gz": compressed(text_of(TABLE, "\t"), "gzip"),
    "log.inter.gz": compressed(text_of(TABLE, "\t", RECBOLE), "gzip"),
    "log.csv.bz2": compressed(text_of(TABLE, ","), "bz2"),
    "log.csv.zst": compressed(text_of(TABLE, ","), "zstd"),
    "log.parquet": parquet_of(TABLE),
    "groups.parquet": parquet_of(TABLE, row_group_size=2),
    "plain.parquet": parquet_of(TABLE, use_dictionary=False),
    "plain.groups.parquet": parquet_of(TABLE, use_dictionary=False, row_group_size=2),
    "bare.parquet": parquet_of(TABLE, store_schema=False),
}


def assert_same(log, other):
    assert log.to_arrow().equals(other.to_arrow())
    assert (log.user_ids, log.item_ids) == (other.user_ids, other.item_ids)
    assert log.users.tolist() == other.users.tolist()
    assert log.items.tolist() == other.items.tolist()


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write_file


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_log_of_the_frame(write, name):
    file = write(name, FILES[name])
    log = read_log(file, **OPTIONS)
    assert_same(log, FeedbackLog.from_frame(TABLE, **OPTIONS))
    assert log.labels.tolist() == [0, 0, 1, 1, 1]


def test_a_path_may_be_a_string(write):
    assert len(read_log(str(write("log.csv", FILES["log.csv"])), positive_from=3)) == 5


def test_another_delimiter_can_be_named(write):
    file = write("log.csv", FILES["log.csv"].replace(b",", b";"))
    assert_same(
        read_log(file, delimiter=";", positive_from=3),
        read_log(write("other.csv", FILES["log.csv"]), positive_from=3),
    )


@pytest.fixture(scope="module")
def long_table():
    """Give a table of many rows whose ids come back in different row groups."""
    random = np.random.default_rng(0)
    cells = random.choice(300 * 400, 5_000, replace=False)
    return pa.table(
        {
            "user": pa.array([f"user-{cell // 400:04d}" for cell in cells]),
            "item": pa.array([f"item-{cell % 400}" for cell in cells]),
            "label": random.integers(0, 2, len(cells)),
        }
    )


@pytest.mark.parametrize("batch_rows", [1, 1_000, 4_000_000])
@pytest.mark.parametrize(
    "options",
    [
        {"row_group_size": 700},
        {"row_group_size": 700, "use_dictionary": False},
        {"row_group_size": 700, "use_dictionary": ["user"]},
        {"row_group_size": 700, "dictionary_pagesize_limit": 200},
    ],
    ids=["dictionary", "plain", "one of each", "dictionary overflows"],
)
def test_parquet_text_ids_are_merged_over_row_groups_and_batches(write, monkeypatch, long_table, options, batch_rows):
    monkeypatch.setattr("verirec.data.parquet_files._BATCH_ROWS", batch_rows)
    log = read_log(write("log.parquet", parquet_of(long_table, **options)))
    assert_same(log, FeedbackLog.from_frame(long_table))


@pytest.mark.parametrize(
    "users",
    [
        pl.Series(["b", "a", "c"]),
        pl.Series(["b", "a", "c"], dtype=pl.Categorical),
        pl.Series(["b", "a", "c"], dtype=pl.Enum(["z", "c", "b", "a"])),
        pd.Series(["b", "a", "c"]),
        pd.Series(["b", "a", "c"], dtype=object),
        pd.Series(["b", "a", "c"], dtype=pd.CategoricalDtype(["z", "c", "b", "a"])),
        pa.array(["b", "a", "c"], pa.large_string()),
        pa.array(["b", "a", "c"], pa.string_view()),
    ],
    ids=lambda users: f"{type(users).__module__.split('.')[0]}-{getattr(users, 'dtype', getattr(users, 'type', ''))}",
)
def test_parquet_of_any_library_gives_the_same_ids(tmp_path, users):
    file = tmp_path / "log.parquet"
    columns = {"user": users, "item": [1, 2, 3], "label": [0, 1, 1]}
    if isinstance(users, pl.Series):
        pl.DataFrame(columns).write_parquet(file)
    elif isinstance(users, pd.Series):
        pd.DataFrame(columns).to_parquet(file)
    else:
        pq.write_table(pa.table(columns), file)
    log = read_log(file)
    assert log.user_ids.ids().tolist() == ["a", "b", "c"]
    assert log.users.tolist() == [0, 1, 2]
    assert log.items.tolist() == [1, 0, 2]


def test_leading_zeros_in_ids_are_kept_in_text_files(write):
    log = read_log(write("log.csv", "user,item,label\n007,1,1\n7,2,0\n07,010,1\n"))
    assert log.user_ids.ids().tolist() == ["007", "07", "7"]
    assert log.item_ids.ids().tolist() == ["010", "1", "2"]


def test_plain_integers_in_text_files_become_integers_in_numeric_order(write):
    log = read_log(write("log.csv", "user,item,label\n10,-5,1\n9,3,0\n"))
    assert log.user_ids.ids().tolist() == [9, 10]
    assert log.item_ids.ids().tolist() == [-5, 3]
    assert (log.users.tolist(), log.items.tolist(), log.labels.tolist()) == ([0, 1], [1, 0], [0, 1])


def test_ratings_that_turn_fractional_late_in_the_file_are_read(write):
    lines = "".join(f"{user},1,4\n" for user in range(150_000))
    log = read_log(write("log.csv", f"user,item,rating\n{lines}0,2,3.5\n"), positive_from=4)
    assert log.ratings[:3].tolist() == [4, 3.5, 4]


def test_only_the_columns_that_are_needed_are_read(write):
    log = read_log(write("log.csv", 'user,item,label,note\n1,2,1,"x, y"\n2,2,0,\n'))
    assert len(log) == 2


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        (("2020-01-02", "2020-01-01"), "M"),
        (("2020-01-02 10:00:00", "2020-01-01 11:00:00"), "M"),
        ((2, 1), "i"),
        ((2.5, 1.0), "f"),
    ],
)
def test_times_in_text_files_are_dates_or_numbers(write, times, kind):
    file = write("log.csv", f"user,item,label,t\n1,2,1,{times[0]}\n2,2,0,{times[1]}\n")
    log = read_log(file, timestamp="t")
    assert log.timestamps.dtype.kind == kind
    assert log.timestamps.argmax() == 0


def test_booleans_in_text_files_are_labels_and_flags(write):
    log = read_log(write("log.csv", "user,item,label,f\n1,2,true,false\n2,2,false,true\n"), unbiased="f")
    assert log.labels.tolist() == [1, 0]
    assert log.unbiased.tolist() == [False, True]


def test_catalogue_and_features_reach_the_log(write):
    features = pd.DataFrame({"user": [3, 1, 2], "age": [30, 10, 20]})
    log = read_log(write("log.csv", "user,item,label\n1,2,1\n2,2,0\n"), all_items=range(5), user_features=features)
    assert (log.n_users, log.n_items) == (3, 5)
    assert log.user_features.tolist() == [[10], [20], [30]]


GOOD = "user,item,label\n1,2,1\n2,3,0\n"
PARQUET = parquet_of(pa.table({"user": ["a", "b"] * 500, "item": np.arange(1000), "label": [0, 1] * 500}))
GZIPPED = gzip.compress(text_of(TABLE, ",") * 500)

BAD_FILES = [
    ("text.parquet", GOOD, FileFormatError, r"^text\.parquet is not a readable parquet file: "),
    ("cut.parquet", PARQUET[: len(PARQUET) // 2], FileFormatError, r"^cut\.parquet is not a readable parquet file: "),
    ("cut.parquet", PARQUET[:-1], FileFormatError, r"^cut\.parquet is not a readable parquet file: "),
    (
        "rotten.parquet",
        PARQUET[:40] + b"\xff" * 200 + PARQUET[240:],
        FileFormatError,
        r"^rotten\.parquet is not a readable",
    ),
    (
        "short.csv",
        GOOD + "3,4\n",
        FileFormatError,
        r"^short\.csv is not a readable csv file: .*Row #4: Expected 3 columns, got 2: 3,4; to .* drop_missing=True$",
    ),
    (
        "long.csv",
        GOOD + "3,4,1,9\n",
        FileFormatError,
        r"^long\.csv is not a readable csv file: .*Row #4: Expected 3 columns, got 4: 3,4,1,9; .* drop_missing=True$",
    ),
    (
        "short.tsv",
        "user\titem\tlabel\n1\t2\n",
        FileFormatError,
        r"^short\.tsv is not a readable tsv file: .*Expected 3 columns, got 2",
    ),
    (
        "short.inter",
        "user_id:token\titem_id:token\tlabel:float\n1\t2\n",
        FileFormatError,
        r"^short\.inter is not a readable inter file: .*got 2",
    ),
    ("empty.csv", "", FileFormatError, r"^empty\.csv is empty$"),
    ("empty.parquet", "", FileFormatError, r"^empty\.parquet is empty$"),
    ("blank.csv", "\n\n", EmptyLogError, r"^blank\.csv is empty"),
    ("cut.csv.gz", GZIPPED[: len(GZIPPED) // 2], FileFormatError, r"^cut\.csv\.gz is not a readable csv file: "),
    ("text.csv.gz", GOOD, FileFormatError, r"^text\.csv\.gz is not a readable csv file: "),
    ("empty.csv.gz", gzip.compress(b""), EmptyLogError, r"^empty\.csv\.gz is empty"),
    (
        "latin.csv",
        "user,item,label\né,1,1\n".encode("latin-1"),
        FileFormatError,
        r"^latin\.csv is not a readable csv file: .*UTF8",
    ),
    ("utf16.csv", GOOD.encode("utf-16"), FileFormatError, r"^utf16\.csv is not a readable csv file: "),
    ("header.csv", "user,item,label\n", EmptyLogError, r"^the log is empty: it must have at least one row$"),
    ("header.inter", "user_id:token\titem_id:token\tlabel:float\n", EmptyLogError, r"^(the log|bare\.csv) is empty"),
    ("none.parquet", parquet_of(TABLE.slice(0, 0)), EmptyLogError, r"^(the log|bare\.csv) is empty"),
    (
        "log.xlsx",
        GOOD,
        ParameterError,
        r"^a log must end in \.csv, \.tsv, \.parquet or \.inter, or be text with a delimiter=\.\.\.; got 'log\.xlsx'$",
    ),
    ("log", GOOD, ParameterError, r"^a log must end in .*; got 'log'$"),
    ("log.gz", GOOD, ParameterError, r"^a log must end in .*; got 'log\.gz'$"),
    (
        "twice.csv",
        "user,item,user,label\n1,2,3,1\n",
        ColumnError,
        r"^twice\.csv has a column twice; the columns are: user, item, user, label$",
    ),
    (
        "twice.inter",
        "user_id:token\titem_id:token\tlabel:float\tlabel:token\n1\t2\t1\t1\n",
        ColumnError,
        r"^twice\.inter has a column twice",
    ),
    (
        "twice.parquet",
        parquet_of(pa.table([[1], [2], [3], [0]], ["user", "item", "user", "label"])),
        ColumnError,
        r"user, item, user, label$",
    ),
    (
        "no.csv",
        "user,item\n1,2\n",
        ColumnError,
        r"^no\.csv: cannot tell which column is the rating \(none has a usual name\)",
    ),
    ("two.csv", "user,item,label,stars\n1,2,1,5\n", ColumnError, r"several could be it: label, stars"),
    ("other.csv", GOOD.replace(",", ";"), ColumnError, r"the only column is 'user;item;label': .*delimiter="),
    (
        "float.csv",
        "user,item,label\n1.0,2,1\n2.0,3,0\n",
        IdError,
        r"^column 'user' holds 2 floats \(first: 1\.0, 2\.0\); ids must be integers or strings",
    ),
    (
        "float.parquet",
        parquet_of(pa.table({"user": [1.0, 2.0], "item": [1, 2], "label": [0, 1]})),
        IdError,
        r"^column 'user' holds 2 floats",
    ),
    (
        "gap.csv",
        "user,item,label\n1,2,1\n,3,0\n,4,0\n",
        MissingValueError,
        r"^gap\.csv: column 'user' has missing values in 2 of 3 rows \(first: 1, 2, counting from 0\)",
    ),
    (
        "gap.csv",
        "user,item,label\n1,,1\n2,3,0\n",
        MissingValueError,
        r"^gap\.csv: column 'item' has missing .* 1 of 2 rows \(first: 0, .*; row 0 is the one below the header$",
    ),
    (
        "gap.csv",
        "user,item,label\n1,2,1\n2,3,\n",
        MissingValueError,
        r"^gap\.csv: column 'label' has missing values in 1 of 2 rows \(first: 1, counting from 0\)",
    ),
    (
        "nan.csv",
        "user,item,label\n1,2,1\n2,3,NaN\n",
        MissingValueError,
        r"^nan\.csv: column 'label' has missing values in 1 of 2 rows \(first: 1, counting from 0\)",
    ),
    (
        "gap.parquet",
        parquet_of(pa.table({"user": ["a", None], "item": [1, 2], "label": [0, 1]})),
        MissingValueError,
        r"^gap\.parquet: column 'user' has missing values in 1 of 2 rows \(first: 1",
    ),
    (
        "gap.parquet",
        parquet_of(pa.table({"user": pa.nulls(2), "item": [1, 2], "label": [0, 1]})),
        MissingValueError,
        r"^gap\.parquet: column 'user' has missing values in 2 of 2 rows \(first: 0, 1",
    ),
    (
        "word.csv",
        "user,item,label\n1,2,1\n2,3,NA\n",
        LabelError,
        r"^column 'label' must hold numbers; got large_string in 1 of 2 rows \(first: 1, .* row 1 has 'NA'$",
    ),
    (
        "stars.csv",
        "user,item,label\n1,2,1\n2,3,4\n",
        LabelError,
        r"^column 'label' must be 0/1.* 1 of 2 rows \(first: 1",
    ),
    (
        "pair.csv",
        GOOD + "1,2,0\n",
        DuplicatePairError,
        r"^1 user-item pairs occur with both labels, in 2 of 3 rows \(first: 0, 2",
    ),
    ("floats.csv", "user,item,label\n1.0,2,1\n2.0,3,0\n1.0,4,1\n", IdError, r"^column 'user' holds 3 floats"),
    ("bare.csv", "user,item,label", EmptyLogError, r"^(the log|bare\.csv) is empty"),
    (
        "latin.csv",
        "user,item,label,né\n1,2,1,1\n".encode("latin-1"),
        FileFormatError,
        r"^latin\.csv is not a readable csv file: ",
    ),
]

FILE_NAMES = [getattr(case, "values", case)[0] for case in BAD_FILES]


@pytest.mark.parametrize(("name", "content", "error", "message"), BAD_FILES, ids=FILE_NAMES)
def test_a_bad_file_is_refused_in_one_line_that_says_what_is_wrong(write, name, content, error, message):
    with pytest.raises(error, match=message) as caught:
        read_log(write(name, content))
    assert caught.type is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet", "folder.csv", "folder.parquet"])
def test_a_file_that_is_not_there_is_named(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(FileFormatError) as caught:
        read_log(tmp_path / name)
    assert str(caught.value) == f"no file {str(tmp_path / name)!r}"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"user": "who"}, ColumnError, r"^log\.csv: no column 'who' \(for user\); the columns are: user, item, label$"),
        (
            {"timestamp": "t"},
            ColumnError,
            r"^log\.csv: no column 't' \(for timestamp\); the columns are: user, item, label$",
        ),
        ({"delimiter": ",,"}, ParameterError, r"^delimiter must be one ASCII character; got ',,'$"),
        ({"delimiter": "\n"}, ParameterError, r"delimiter"),
        ({"duplicates": "newest"}, ParameterError, r"^duplicates must be one of .*; got 'newest'$"),
        (
            {"duplicates": "latest"},
            ParameterError,
            r"^duplicates='latest' needs timestamps; name their column: timestamp=\.\.\.$",
        ),
        ({"all_users": [1]}, UnknownIdError, r"^column 'user' has ids outside the catalogue .* 2$"),
        ({"delimiter": ""}, ParameterError, r"^delimiter must be one"),
        ({"delimiter": "é"}, ParameterError, r"^delimiter must be one"),
        ({"delimiter": 5}, ParameterError, r"^delimiter must be one"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(write, options, error, message):
    with pytest.raises(error, match=message) as caught:
        read_log(write("log.csv", GOOD), **options)
    assert "\n" not in str(caught.value)


def test_an_option_that_does_not_exist_is_a_type_error(write):
    with pytest.raises(TypeError, match="ratings"):
        read_log(write("log.csv", GOOD), ratings="label")


def test_a_refused_file_is_left_as_it_was_and_open_handles_are_closed(write):
    file = write("text.parquet", GOOD)
    with pytest.raises(FileFormatError):
        read_log(file)
    assert file.read_text() == GOOD
    file.unlink()
    assert list(file.parent.iterdir()) == []


def test_a_file_without_a_header_is_read_by_naming_its_columns(tmp_path):
    file = tmp_path / "u.data"
    file.write_text("196\t242\t3\n186\t302\t1\n")
    log = read_log(file, delimiter="\t", columns=["user", "item", "rating"], positive_from=3)
    assert log.user_ids.ids(log.users).tolist() == [186, 196]
    assert log.labels.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["user|item|label\n1|2|1\n", "user|item|label\na,b|2|1\n"])
def test_another_delimiter_than_the_endings_is_hinted_at(tmp_path, text):
    file = tmp_path / "log.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=r"delimiter=\.\.\."):
        read_log(file)


def test_damaged_parquet_never_ends_the_process(tmp_path):
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user": ["a", "b", "b"], "item": ["x", "y", "z"], "label": [0, 1, 0]}), file)
    script = (
        "import sys, pathlib, verirec as vr\n"
        "from verirec.exceptions import VerirecError\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "content = file.read_bytes()\n"
        "footer = int.from_bytes(content[-8:-4], 'little') + 8\n"
        "refused = 0\n"
        "for place in range(len(content) - footer, len(content) - 8):\n"
        "    for flip in (1, 2, 255):\n"
        "        file.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])\n"
        "        try: vr.read_log(file)\n"
        "        except VerirecError as error: refused += 1\n"
        "assert refused > 100, refused\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


# Pairs with a number each, by the ids of a log


@pytest.fixture
def small_text_log(write):
    return read_log(write("log.csv", "user,item,label\nb,2,1\na,1,0\nc,1,1\n"))


PAIRS = pa.table({"user": ["c", "a"], "item": [2, 1], "true_label": [1, 0]})
RECBOLE_PAIRS = {"user": "token", "item": "token", "true_label": "float"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", text_of(PAIRS, ",")),
        ("pairs.tsv", text_of(PAIRS, "\t")),
        ("pairs.inter", text_of(PAIRS, "\t", RECBOLE_PAIRS)),
        ("pairs.csv.gz", gzip.compress(text_of(PAIRS, ","))),
        ("pairs.parquet", parquet_of(PAIRS)),
        ("plain.parquet", parquet_of(PAIRS, use_dictionary=False, row_group_size=1)),
    ],
    ids=["csv", "tsv", "inter", "csv.gz", "parquet", "parquet without a dictionary"],
)
def test_pairs_of_every_format_are_positions_in_the_order_of_the_file(write, small_text_log, name, content):
    file = write(name, content)
    audit = AuditSample.from_file(file, small_text_log)
    assert (audit.users.tolist(), audit.items.tolist(), audit.true_labels.tolist()) == ([2, 0], [1, 0], [1, 0])


@pytest.mark.parametrize(
    "numbers",
    [["true", "false"], ["1.0", "0.0"], ["1", "0"], ["yes", "no"], ["Yes", " NO "], ["TRUE", "no"], ["1", "No"]],
    ids=" ".join,
)
def test_true_labels_may_be_numbers_booleans_or_words(write, small_text_log, numbers):
    file = write("audit.csv", f"user,item,truth\na,1,{numbers[0]}\nb,2,{numbers[1]}\n")
    assert AuditSample.from_file(file, small_text_log).true_labels.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["true_label", "trueLabel", "truth", "TRUE", "label", "rating"])
def test_the_usual_names_of_true_labels_are_found(write, small_text_log, name):
    audit = AuditSample.from_file(write("audit.csv", f"user_id,item_id,{name}\na,1,1\n"), small_text_log)
    assert audit.true_labels.tolist() == [1]


BAD_AUDITS = [
    ("two.csv", "user,item,true_label\na,1,2\n", AuditError, r"^two\.csv: true_label must be 0 or 1, .*in 1 of 1 rows"),
    (
        "word.csv",
        "user,item,truth\na,1,\na,1,yes\nb,2,maybe\n",
        AuditError,
        r"^word\.csv: truth must be 0 or 1, yes or no, true or false; it is not in 1 of 3 rows \(first: 2, counting "
        r"from 0\), where row 2 has 'maybe'$",
    ),
    ("gap.csv", "user,item,truth\na,1,\n", EmptyLogError, r"^gap\.csv has no row with a true_label$"),
    (
        "new.csv",
        "user,item,truth\nz,1,1\n",
        UnknownIdError,
        r"^new\.csv: user is not in the log in 1 of 1 rows \(first: 0, counting from 0\); the first is 'z'$",
    ),
    ("none.csv", "user,item,truth\n", EmptyLogError, r"^none\.csv is empty"),
    ("no.csv", "user,item,foo\na,1,1\n", ColumnError, r"^no\.csv: cannot tell which column is the true_label"),
    ("date.csv", "user,item,truth\na,1,2020-01-01\n", AuditError, r"truth must be 0 or 1, .*; got date32"),
    (
        "bars.csv",
        "user|item|truth\na|1|1\n",
        ColumnError,
        r"^bars\.csv: .*: if a file's fields are separated otherwise, write it with commas \(\.csv\) or tabs",
    ),
    (
        "log.txt",
        "",
        ParameterError,
        r"^an audit must end in \.csv, \.tsv, \.parquet or \.inter; got 'log\.txt'$",
    ),
]


@pytest.mark.parametrize(("name", "content", "error", "message"), BAD_AUDITS, ids=[case[0] for case in BAD_AUDITS])
def test_a_bad_audit_is_refused_in_one_line(write, small_text_log, name, content, error, message):
    check_refusal(lambda: AuditSample.from_file(write(name, content), small_text_log), error, message)


def test_rows_of_an_audit_are_counted_as_in_the_file(write, small_text_log):
    file = write("audit.csv", "user,item,truth\na,1,\na,1,1\nz,1,1\n")
    message = r"^audit\.csv: user is not in the log in 1 of 3 rows \(first: 2, counting from 0\); the first is 'z'$"
    check_refusal(lambda: AuditSample.from_file(file, small_text_log), UnknownIdError, message)


def test_an_audit_that_is_not_there_is_named(tmp_path, small_text_log):
    file = tmp_path / "audit.csv"
    check_refusal(lambda: AuditSample.from_file(file, small_text_log), FileFormatError, r"^no file '.*audit\.csv'$")


def test_an_audit_of_pairs_whose_text_ids_look_like_integers_is_read(write):
    log = read_log(write("log.csv", "user,item,label\nu1,1,1\n12,2,0\n"))
    assert AuditSample.from_file(write("audit.csv", "user,item,truth\n12,2,1\n"), log).users.tolist() == [0]


@pytest.mark.parametrize("name", ["true_label", "trueLabel", "truth"])
@pytest.mark.parametrize("beside", ["label", "rating"])
def test_an_audit_may_have_the_logs_label_beside_the_true_one(write, small_text_log, name, beside):
    file = write("audit.csv", f"user,item,{beside},{name}\na,1,0,1\n")
    assert AuditSample.from_file(file, small_text_log).true_labels.tolist() == [1]


def test_two_columns_that_could_both_be_true_leave_it_open(write, small_text_log):
    file = write("audit.csv", "user,item,truth,true_label\na,1,0,1\n")
    message = r"^audit\.csv: cannot tell which column is the true_label \(several could be it: truth, true_label\)"
    check_refusal(lambda: AuditSample.from_file(file, small_text_log), ColumnError, message)
    assert AuditSample.from_file(file, small_text_log, true_label="truth").true_labels.tolist() == [0]


def test_the_logs_own_columns_are_looked_for_in_an_audit(write, small_text_log):
    file = write("audit.csv", "who,item,truth\na,1,1\n")
    columns = {"user": "who", "item": "what"}
    assert AuditSample.from_file(file, small_text_log, log_columns=columns).users.tolist() == [0]


def test_the_hint_for_an_audit_names_what_can_be_given(write, small_text_log):
    file = write("audit.csv", "user,item,foo\na,1,1\n")
    message = r"; name them: user=\.\.\., item=\.\.\., true_label=\.\.\.; the columns are: user, item, foo$"
    check_refusal(lambda: AuditSample.from_file(file, small_text_log), ColumnError, message)
    assert AuditSample.from_file(file, small_text_log, true_label="foo").true_labels.tolist() == [1]


@pytest.mark.parametrize(
    ("roles", "columns", "third"),
    [
        (ScoreRoles(), ["user", "item", "score"], "score"),
        (ScoreRoles(), ["uid", "asin", "Prediction"], "Prediction"),
        (ScoreRoles(), ["user", "item", "label", "score"], "score"),
        (ScoreRoles(rating="label"), ["user", "item", "label", "score"], "label"),
        (TruthRoles(), ["user", "item", "true-label"], "true-label"),
        (TruthRoles(), ["user", "item", "score", "truth"], "truth"),
        (Roles(), ["user", "item", "label", "score"], "label"),
    ],
)
def test_each_kind_of_file_has_its_own_usual_names(roles, columns, third):
    settled = roles.settle(columns)
    assert (type(settled), settled.rating) == (type(roles), third)
    assert settled.names() == [columns[0], columns[1], third]


@pytest.mark.parametrize(("roles", "word"), [(ScoreRoles, "score"), (TruthRoles, "true_label"), (Roles, "rating")])
def test_errors_call_the_third_column_what_its_users_call_it(roles, word):
    check_refusal(lambda: roles(rating="x").settle(["user", "item"]), ColumnError, rf"^no column 'x' \(for {word}\)")
    check_refusal(lambda: roles().settle(["user", "item"]), ColumnError, rf"^cannot tell which column is the {word} ")


# Catalogues from files


@pytest.mark.parametrize(
    ("log", "users", "expected"),
    [
        ("user,item,label\n3,1,1\n1,1,0\n", "1\n2\n\n3\n", [1, 2, 3]),
        ("user,item,label\n3,1,1\n1,1,0\n", "\ufeff1 \r\nx\r\n3\r\n", ["1", "3", "x"]),
        ("user,item,label\n007,1,1\n7,1,0\n", "007\n7\n8\n", ["007", "7", "8"]),
        (pa.table({"user": [3, 1], "item": [1, 1], "label": [1, 0]}), "1\n2\n3\n", [1, 2, 3]),
        (pa.table({"user": ["3", "1"], "item": [1, 1], "label": [1, 0]}), "1\n2\n3\n", ["1", "2", "3"]),
    ],
    ids=["integers", "a word among them", "leading zeros", "parquet of integers", "parquet of strings"],
)
def test_all_users_may_be_a_text_file_of_ids(write, tmp_path, log, users, expected):
    (tmp_path / "users.txt").write_text(users, newline="")
    if isinstance(log, pa.Table):
        file = tmp_path / "log.parquet"
        pq.write_table(log, file)
    else:
        file = write("log.csv", log)
    read = read_log(file, all_users=tmp_path / "users.txt")
    assert read.user_ids.ids().tolist() == expected
    logged = log["user"].to_pylist() if isinstance(log, pa.Table) else [line.split(",")[0] for line in log.split()[1:]]
    assert [str(one) for one in read.user_ids.ids(read.users)] == sorted(map(str, logged))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, FileFormatError, r"^no file '.*users\.txt'$"),
        ("\n \n", EmptyLogError, r"^users\.txt is empty: it must have at least one id$"),
        (b"\xff\xfe\x00", FileFormatError, r"^users\.txt is not a readable text file: "),
        ("a\nb\na\n", IdError, r"^all_users, users\.txt, must be distinct; 1 occur more than once \(first: 'a'\)$"),
        ("b\n", UnknownIdError, r"^column 'user' has ids outside the catalogue in 1 of 1 rows"),
    ],
    ids=["none", "empty", "no text", "twice", "too few"],
)
def test_a_bad_file_of_ids_is_refused_in_one_line(write, tmp_path, content, error, message):
    log = write("log.csv", "user,item,label\na,1,1\n")
    if content is not None:
        (tmp_path / "users.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refusal(lambda: read_log(log, all_users=tmp_path / "users.txt"), error, message)


@pytest.mark.parametrize(
    "times",
    [
        ["1998-03-01", "1998-02-01", "1999-01-01"],
        ["1998-03-01T12:00:00", "1998-02-01 00:00", "1999-01-01T01:02:03.5"],
        ["1998-03-01T12:00:00Z", "1998-02-01T00:00:00+02:00", "1999-01-01T01:02:03Z"],
        ["01.03.1998", "01.02.1998", "01.01.1999"],
        ["01.03.1998 12:00", "01.02.1998 00:00:30", "01.01.1999 01:02"],
    ],
)
def test_iso_text_is_a_time_in_frames_as_in_files(tmp_path, times):
    table = pa.table({"user": [1, 1, 2], "item": [1, 2, 1], "label": [1, 0, 1], "when": times})
    table.to_pandas().to_csv(tmp_path / "log.csv", index=False)
    of_file = read_log(tmp_path / "log.csv", timestamp="when")
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        found = FeedbackLog.from_frame(frame, timestamp="when")
        np.testing.assert_array_equal(found.timestamps, of_file.timestamps)


def test_days_come_first_where_dots_follow():
    table = pa.table({"user": [1, 1], "item": [1, 2], "label": [1, 0], "when": ["02.03.1998", "01.04.1998 10:30"]})
    found = FeedbackLog.from_frame(table, timestamp="when").timestamps
    assert found.tolist() == np.array(["1998-03-02", "1998-04-01T10:30"], found.dtype).tolist()


def test_days_and_months_between_slashes_are_refused():
    table = pa.table({"user": [1, 1], "item": [1, 2], "label": [1, 0], "when": ["02/03/1998", "01/04/1998"]})
    with pytest.raises(DataError, match=r"^column 'when' must hold numbers, dates or ISO text .* has '02/03/1998'$"):
        FeedbackLog.from_frame(table, timestamp="when")


def test_blanks_around_names_in_a_header_are_no_part_of_them(write):
    log = read_log(write("log.csv", "user ; item;label  ;t\n1;2;1;5\n2;2;0;6\n"), delimiter=";", rating="label")
    assert log.labels.tolist() == [1, 0]


def test_text_that_is_no_time_is_refused_with_its_row():
    table = pa.table({"user": [1, 1], "item": [1, 2], "label": [1, 0], "when": ["1998-03-01", "spring"]})
    with pytest.raises(DataError, match=r"^column 'when' must hold numbers, dates or ISO text .* row 1 has 'spring'$"):
        FeedbackLog.from_frame(table, timestamp="when")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": [1, 2, 3]}, ParameterError, r"columns must be the names of a file's columns.*got \[1, 2, 3\]"),
        ({"columns": "user"}, ParameterError, "columns must be the names"),
        ({"user": pd.NA}, ColumnError, "the user column must be named by a string; got <NA>"),
        ({"user": "x" * 5_000}, ColumnError, r"no column 'x{50,}.*\(5,002 characters\)"),
        ({"all_users": [[1], [1, 2]]}, IdError, "all_users must hold strings or integers"),
    ],
)
def test_odd_arguments_are_refused_in_one_short_line(write, options, error, message):
    file = write("ratings.csv", "user,item,rating\n1,10,4\n2,10,1\n")
    with pytest.raises(error, match=message) as caught:
        read_log(file, **{"positive_from": 3} | options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_line_break_in_a_header_is_shown_not_repeated(write):
    file = write("ratings.csv", '"first\nname",thing,stars\n1,10,4\n2,10,1\n')
    with pytest.raises(ColumnError, match=r"'first\\nname'") as caught:
        read_log(file, positive_from=3)
    assert "\n" not in str(caught.value)


def reviews(n_rows, text):
    """Write a log with a column of quoted text."""
    rows = [f'u{row % 50},i{row},{row % 2},"{text}"\n' for row in range(n_rows)]
    return "user,item,label,review\n" + "".join(rows)


@pytest.mark.parametrize("n_rows", [20, 30_000], ids=["one block", "several blocks"])
@pytest.mark.parametrize(
    "text",
    ["good" + "\nuX,iX,1,z" * 8, "good\nbad " * 10, 'a ""b""\r\n,c' * 8],
    ids=["lines like rows", "several lines", "quotes and delimiters"],
)
@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.tsv"])
def test_line_breaks_inside_of_quotes_never_end_a_row(write, name, text, n_rows):
    content = reviews(n_rows, text).encode()
    assert n_rows == 20 or len(content) > 2_000_000
    delimiter = "," if name.startswith("log.csv") else "\t"
    content = content.replace(b",", delimiter.encode())
    file = write(name, compressed(content, "gzip") if name.endswith(".gz") else content)
    expected = pd.read_csv(file, sep=delimiter)
    assert len(expected) == n_rows
    assert_same(read_log(file), FeedbackLog.from_frame(expected[["user", "item", "label"]]))


def test_line_breaks_inside_of_quotes_in_a_file_of_known_columns(write):
    file = write("u.data", '1,2,"good\n3,4,bad"\n' * 150_000)
    table = read_delimited(file, ",", ("user", "item", "note"))
    assert table.to_pandas().equals(pd.read_csv(file, names=["user", "item", "note"]))


@pytest.mark.parametrize(("name", "careful"), [("log.csv", False), ("quoted.csv", True), ("log.csv.gz", True)])
def test_only_files_that_may_have_quotes_are_read_the_slower_way(write, monkeypatch, name, careful):
    content = "user,item,label,note\n" + "".join(f"u{row % 50},i{row},{row % 2},x\n" for row in range(150_000))
    frame = pd.read_csv(io.StringIO(content))
    if name == "quoted.csv":
        content = content[:-2] + '"x"\n'
    file = write(name, compressed(content.encode(), "gzip") if name.endswith(".gz") else content)
    asked, options = [], pyarrow.csv.ParseOptions

    def parse_options(**given):
        asked.append(given["newlines_in_values"])
        return options(**given)

    monkeypatch.setattr("pyarrow.csv.ParseOptions", parse_options)
    assert_same(read_log(file), FeedbackLog.from_frame(frame[["user", "item", "label"]]))
    assert asked == [careful]


LONG = "x" * 10_000_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.csv", f"user,item,label,{LONG}\n1,2,1,3\n"),
        ("log.csv.gz", f"user,item,label,{LONG}\n1,2,1,3\n"),
        ("log.csv", f"user,item,label,note\n1,2,1,{LONG}\n2,2,0,3\n"),
        ("log.csv", f'user,item,label,note\n1,2,1,"{LONG}"\n2,2,0,3\n'),
        ("log.csv", "user,item,label,note\n" + '1,2,1,"open\n' + "2,2,0,3\n" * 500_000),
    ],
    ids=["header", "compressed header", "field", "quoted field", "quote that is not closed"],
)
def test_a_line_that_is_too_long_is_called_so(write, name, content):
    file = write(name, compressed(content.encode(), "gzip") if name.endswith(".gz") else content)
    message = rf"^a line of {name} is longer than 1 MB; is a quote in it never closed\?$"
    check_refusal(lambda: read_log(file), FileFormatError, message)


def test_a_line_that_is_too_long_in_a_file_of_known_columns_is_called_so(write):
    file = write("u.data", f"1,2\n3,{LONG}\n")
    check_refusal(
        lambda: read_delimited(file, ",", ("user", "item")), FileFormatError, r"^a line of u\.data is longer than 1 MB"
    )


def test_many_blank_lines_are_still_an_empty_file(write):
    check_refusal(lambda: read_log(write("log.csv", "\n" * 3_000_000)), EmptyLogError, r"^log\.csv is empty")
