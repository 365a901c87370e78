import warnings

import numpy as np
import pytest

from verirec import load_dataset
from verirec.exceptions import DatasetNotFoundError, FileFormatError, IncompleteDatasetWarning, UnknownIdError

TRAIN, TEST = (f"ydata-ymusic-rating-study-v1_0-{part}.txt" for part in ("train", "test"))
SMALL = {TRAIN: "1\t14\t5\n1\t1000\t1\n15400\t14\t3\n", TEST: "1\t2\t1\n5400\t3\t4\n"}


@pytest.fixture
def home(tmp_path):
    def with_files(**changes):
        for file, content in (SMALL | changes).items():
            (tmp_path / file).write_text(content)
        return tmp_path

    return with_files


@pytest.fixture
def _sample_allowed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteDatasetWarning)
        yield


@pytest.mark.usefixtures("_sample_allowed")
@pytest.mark.parametrize("folder", ["", "yahoo-r3", "yahoo_r3", "ydata-ymusic-rating-study-v1_0"])
def test_both_parts_are_read_on_the_published_grid(tmp_path, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    for file, content in SMALL.items():
        (tmp_path / folder / file).write_text(content)
    data = load_dataset("yahoo-r3", data_home=tmp_path)
    for log, rows in ((data.train, [(0, 13, 5), (0, 999, 1), (15399, 13, 3)]), (data.test, [(0, 1, 1), (5399, 2, 4)])):
        assert (log.n_users, log.n_items) == (15_400, 1_000)
        assert list(zip(log.users.tolist(), log.items.tolist(), log.ratings.tolist(), strict=True)) == rows
        assert (log.labels == (log.ratings >= 3)).all()
        assert log.user_ids.ids([0, 15_399]).tolist() == [1, 15_400]
    assert (data.propensities, data.complete) == (None, None)


def test_a_sample_is_reported_for_each_file(home):
    with pytest.warns(IncompleteDatasetWarning) as caught:
        load_dataset("yahoo-r3", data_home=home())
    assert [str(warning.message) for warning in caught] == [
        f"{TRAIN} has 3 rows where 311,704 were published: it may be truncated or a sample",
        f"{TEST} has 2 rows where 54,000 were published: it may be truncated or a sample",
    ]


def test_the_warning_points_to_the_caller(home):
    with pytest.warns(IncompleteDatasetWarning) as caught:
        load_dataset("yahoo-r3", data_home=home())
    assert {warning.filename for warning in caught} == {__file__}


def test_files_of_the_published_sizes_are_read_without_a_warning(tmp_path):
    random = np.random.default_rng(0)
    cells = np.sort(random.choice(15_400 * 1_000, 311_704, replace=False))
    np.savetxt(
        tmp_path / TRAIN,
        np.column_stack([cells // 1_000 + 1, cells % 1_000 + 1, random.integers(1, 6, len(cells))]),
        fmt="%d",
        delimiter="\t",
    )
    users = np.repeat(np.arange(1, 5_401), 10)
    songs = (np.tile(np.arange(10), 5_400) * 97 + users) % 1_000 + 1
    ratings = np.arange(54_000) % 5 + 1
    np.savetxt(tmp_path / TEST, np.column_stack([users, songs, ratings]), fmt="%d", delimiter="\t")
    data = load_dataset("yahoo-r3", data_home=tmp_path)
    assert (len(data.train), len(data.test)) == (311_704, 54_000)
    assert np.bincount(data.test.users).tolist() == [10] * 5_400


@pytest.mark.usefixtures("_sample_allowed")
@pytest.mark.parametrize(
    ("file", "content", "error", "message"),
    [
        (
            TRAIN,
            "1\t14\t5\n2\t14\n",
            FileFormatError,
            rf"^{TRAIN} is truncated or malformed: .*Expected 3 columns, got 2",
        ),
        (TEST, "1\t14\t5\t1\n", FileFormatError, rf"^{TEST} is truncated or malformed: .*Expected 3 columns, got 4"),
        (TEST, "", FileFormatError, rf"^{TEST} is truncated or malformed: "),
        (TRAIN, "15401\t14\t5\n2\t14\t1\n", UnknownIdError, r"^column 'user' has ids outside the catalogue .* 15401$"),
        (TRAIN, "1\t1001\t5\n2\t14\t1\n", UnknownIdError, r"^column 'item' has ids outside the catalogue .* 1001$"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(home, file, content, error, message):
    folder = home(**{file: content})
    with pytest.raises(error, match=message) as caught:
        load_dataset("yahoo-r3", data_home=folder)
    assert "\n" not in str(caught.value)


def test_one_file_alone_is_not_the_data_set(tmp_path):
    (tmp_path / TRAIN).write_text(SMALL[TRAIN])
    with pytest.raises(
        DatasetNotFoundError, match=rf"^yahoo-r3 is not in .*signed agreement.*{TRAIN} and {TEST}"
    ) as caught:
        load_dataset("yahoo-r3", data_home=tmp_path)
    assert "\n" not in str(caught.value)
