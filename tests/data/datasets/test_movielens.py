import warnings

import numpy as np
import pytest

from verirec import load_dataset, read_log
from verirec.exceptions import (
    EmptyLogError,
    FileFormatError,
    IdError,
    IncompleteDatasetWarning,
    LabelError,
    MissingValueError,
    UnknownIdError,
)

LINES = ("1\t10\t5\t978300760", "1\t20\t3\t978302109", "943\t1682\t1\t978301968", "2\t10\t2\t978300275")
SIZES = {"movielens-100k": ("u.data", "\t", 943, 1_682), "movielens-1m": ("ratings.dat", "::", 6_040, 3_952)}


def rated(log):
    frame = log.to_arrow()
    return set(zip(*(frame[name].to_pylist() for name in ("user", "item", "rating")), strict=True))


@pytest.fixture
def write(tmp_path):
    def write_file(name, lines):
        file, separator, *_ = SIZES[name]
        content = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / file).write_bytes(content.replace(b"\t", separator.encode()))
        return tmp_path

    return write_file


def load(name, home):
    """Load a small file of a data set's form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteDatasetWarning)
        return load_dataset(name, data_home=home)


def test_the_real_100k_has_the_published_ratings(real_data):
    data = load_dataset("movielens-100k", data_home=real_data("movielens-100k"))
    log = data.train
    assert (len(log), log.n_users, log.n_items) == (100_000, 943, 1_682)
    assert np.bincount(log.ratings.astype(int)).tolist() == [0, 6_110, 11_370, 27_145, 34_174, 21_201]
    assert log.labels.sum() == 27_145 + 34_174 + 21_201
    assert np.unique(log.users).size == 943
    assert np.unique(log.items).size == 1_682
    assert (data.test, data.propensities, data.complete) == (None, None, None)


def test_the_real_recbole_file_holds_the_same_ratings(real_data):
    home = real_data("movielens-100k")
    data = load_dataset("movielens-100k", data_home=home).train
    log = read_log(home / "ml-100k" / "ml-100k.inter", positive_from=3, timestamp="timestamp")
    assert rated(log) == rated(data)
    assert (log.user_ids, log.item_ids) == (data.user_ids, data.item_ids)
    assert sorted(log.timestamps.tolist()) == sorted(data.timestamps.tolist())


@pytest.mark.parametrize("name", SIZES)
def test_a_small_file_of_the_published_form_is_read_on_the_published_grid(write, name):
    with pytest.warns(IncompleteDatasetWarning, match=r"has 4 rows where [\d,]+ were published") as caught:
        log = load_dataset(name, data_home=write(name, LINES)).train
    assert caught[0].filename == __file__
    assert (log.n_users, log.n_items) == SIZES[name][2:]
    assert rated(log) == {(1, 10, 5), (1, 20, 3), (943, 1682, 1), (2, 10, 2)}
    assert log.users.tolist() == [0, 0, 1, 942]
    assert log.items.tolist() == [9, 19, 9, 1681]
    assert log.labels.tolist() == [1, 1, 0, 0]
    assert log.timestamps.tolist() == [978300760, 978302109, 978300275, 978301968]


BAD_LINES = [
    ([*LINES, "3\t10"], FileFormatError, r"is truncated or malformed: .*Expected 4 columns, got 2"),
    ([*LINES, "3\t10\t5\t1\t1"], FileFormatError, r"is truncated or malformed: .*Expected 4 columns, got 5"),
    (b"", FileFormatError, r"is truncated or malformed: Empty CSV file"),
    (b"\n\n", EmptyLogError, r"^the log is empty"),
    ([*LINES, "3\t10\t\t1"], MissingValueError, r"^column 'rating' has missing values in 1 of 5 rows \(first: 4"),
    ([*LINES, "\t10\t5\t1"], MissingValueError, r"^column 'user' has missing values in 1 of 5 rows \(first: 4"),
    (
        [*LINES, "3\t10\tx\t1"],
        LabelError,
        r"^column 'rating' must hold numbers; got large_string in 1 of 5 rows \(first: 4",
    ),
    ([*LINES, "3.0\t10\t5\t1"], IdError, r"^column 'user' holds 5 floats"),
    ([*LINES, "0\t10\t5\t1"], UnknownIdError, r"^column 'user' has ids outside the catalogue .* 0$"),
    ([*LINES, "3\t9999\t5\t1"], UnknownIdError, r"^column 'item' has ids outside the catalogue .* 9999$"),
]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("lines", "error", "message"),
    BAD_LINES,
    ids=[
        "too few fields",
        "too many fields",
        "empty",
        "blank lines",
        "no rating",
        "no user",
        "a rating of text",
        "a user of float",
        "user 0",
        "item 9999",
    ],
)
def test_a_malformed_file_is_refused_in_one_line(write, name, lines, error, message):
    home = write(name, lines)
    with pytest.raises(error, match=message) as caught:
        load(name, home)
    assert "\n" not in str(caught.value)
    if error is FileFormatError:
        assert str(caught.value).startswith(SIZES[name][0])
