import gc
import io
import warnings

import numpy as np
import pytest

from verirec import load_dataset
from verirec.exceptions import (
    ColumnError,
    FileFormatError,
    IncompleteDatasetWarning,
    LabelError,
    LabelRuleWarning,
    UnknownIdError,
)

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

BLOCK, SAMPLE, PUBLISHED = "kuairec_small_binary_gt2.npz", "random.txt", "small_matrix.csv"
LABELS = np.random.default_rng(0).integers(0, 2, (40, 300))
HEADER = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
ROWS = (
    "14,148,4381,6067,2020-07-05 05:27:48.378,20200705,1593898068.378,0.722103\n"
    "14,183,11635,6100,2020-07-05 05:28:00.057,20200705,1593898080.057,1.907377\n"
    "19,183,22422,9867,,,,1.0\n"
)


def npz_of(**changes):
    arrays = {
        "Y": np.packbits(LABELS.astype(np.uint8), axis=1),
        "user_id": np.arange(40) * 3,
        "video_id": np.arange(300) + 7,
    }
    content = io.BytesIO()
    np.savez_compressed(content, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return content.getvalue()


@pytest.fixture
def home(tmp_path):
    def with_files(**files):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    yield with_files
    gc.collect()


def test_the_real_block_is_complete_and_has_the_published_ones(real_data):
    data = load_dataset("kuairec", data_home=real_data("kuairec"))
    assert data.complete.shape == (1_411, 3_327)
    assert data.complete.dtype == np.int8
    assert data.complete.sum() == 217_175
    assert set(np.unique(data.complete)) == {0, 1}
    assert data.train is None


def test_the_real_sample_has_83_videos_a_user_on_the_grid_of_the_block(real_data):
    data = load_dataset("kuairec", data_home=real_data("kuairec"))
    log = data.test
    assert (len(log), log.n_users, log.n_items) == (117_113, 1_411, 3_327)
    assert np.bincount(log.users, minlength=1_411).tolist() == [83] * 1_411
    assert (log.labels == (log.ratings >= 1)).all()


def test_the_real_sample_agrees_with_the_block_cell_by_cell(real_data):
    data = load_dataset("kuairec", data_home=real_data("kuairec"))
    above_two = data.test.ratings > 2
    assert (data.complete[data.test.users, data.test.items] == above_two).all()


def test_a_block_is_unpacked_bit_by_bit(home):
    data = load_dataset("kuairec", data_home=home(**{BLOCK: npz_of()}))
    assert (data.complete == LABELS).all()
    assert data.test is None


def test_the_sample_takes_the_blocks_grid_and_the_rule(home):
    folder = home(**{BLOCK: npz_of(), SAMPLE: "3,7,0.5\n0,306,1.5\n117,8,2.5\n"})
    with pytest.warns(
        LabelRuleWarning, match=r"^positive_from=2 holds for the ratios of random.txt; the complete block"
    ):
        log = load_dataset("kuairec", data_home=folder, positive_from=2).test
    assert (log.n_users, log.n_items) == (40, 300)
    assert list(zip(log.users.tolist(), log.items.tolist(), log.labels.tolist(), strict=True)) == [
        (0, 299, 0),
        (1, 0, 0),
        (39, 1, 1),
    ]


def test_block_and_sample_share_one_grid_whatever_the_order_of_the_blocks_ids(home):
    labels = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
    block = npz_of(Y=np.packbits(labels, axis=1), user_id=np.array([5, 3, 4]), video_id=np.array([9, 8]))
    data = load_dataset("kuairec", data_home=home(**{BLOCK: block, SAMPLE: "5,9,2.5\n3,8,2.5\n5,8,0\n3,9,0\n"}))
    assert data.complete[data.test.users, data.test.items].tolist() == data.test.labels.tolist()


def test_a_small_matrix_of_the_published_form_is_the_test_log(home):
    with pytest.warns(IncompleteDatasetWarning, match=r"^small_matrix\.csv has 3 rows where 4,676,570 were published"):
        data = load_dataset("kuairec", data_home=home(**{PUBLISHED: HEADER + ROWS}))
    assert (data.train, data.complete) == (None, None)
    assert data.test.to_frame()["user"].tolist() == [14, 14, 19]
    assert data.test.to_frame()["item"].tolist() == [148, 183, 183]
    assert data.test.labels.tolist() == [0, 1, 1]
    assert (data.test.n_users, data.test.n_items) == (2, 2)


def test_the_warning_points_to_the_caller(home):
    folder = home(**{PUBLISHED: HEADER + ROWS})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_dataset("kuairec", data_home=folder)
    assert caught[0].filename == __file__


def test_the_published_matrix_wins_over_the_block(home):
    with pytest.warns(IncompleteDatasetWarning):
        data = load_dataset("kuairec", data_home=home(**{PUBLISHED: HEADER + ROWS, BLOCK: npz_of()}))
    assert data.complete is None


GOOD = npz_of()
BAD_FILES = {
    "cut block": ({BLOCK: GOOD[: len(GOOD) // 2]}, FileFormatError, rf"^{BLOCK} is truncated or malformed: "),
    "empty block": ({BLOCK: b""}, FileFormatError, rf"^{BLOCK} is truncated or malformed: "),
    "text for a block": ({BLOCK: "hello"}, FileFormatError, rf"^{BLOCK} is truncated or malformed: "),
    "block without ids": ({BLOCK: npz_of(user_id=None)}, FileFormatError, rf"^{BLOCK} .*user_id is not a file"),
    "too few bits": (
        {BLOCK: npz_of(Y=np.zeros((40, 5), np.uint8))},
        FileFormatError,
        r"must have 40 rows of 300 bits; got \(40, 5\)$",
    ),
    "too few rows": (
        {BLOCK: npz_of(Y=np.zeros((5, 38), np.uint8))},
        FileFormatError,
        r"must have 40 rows of 300 bits; got \(5, 38\)$",
    ),
    "pickled block": ({BLOCK: npz_of(Y=np.array([None]))}, FileFormatError, rf"^{BLOCK} is truncated or malformed: "),
    "sample of others": (
        {BLOCK: GOOD, SAMPLE: "3,7,0.5\n1,7,2\n"},
        UnknownIdError,
        r"^column 'user' has ids outside the catalogue .* 1$",
    ),
    "words in the sample": (
        {BLOCK: GOOD, SAMPLE: "3,7,0.5\n0,7,x\n"},
        LabelError,
        r"^column 'watch_ratio' must hold numbers; got large_string in 1 of 2 rows \(first: 1",
    ),
    "ragged matrix": (
        {PUBLISHED: HEADER + ROWS + "20,1\n"},
        FileFormatError,
        r"^small_matrix\.csv is not a readable csv file: .*Expected 8 columns, got 2",
    ),
    "matrix without ratios": (
        {PUBLISHED: "user_id,video_id\n1,2\n"},
        ColumnError,
        r"^small_matrix\.csv: no column 'watch_ratio' \(for rating\); the columns are: user_id, video_id$",
    ),
}
BAD_FILES |= {
    "rotten block": ({BLOCK: GOOD[:100] + b"\xff" * 60 + GOOD[160:]}, FileFormatError, rf"^{BLOCK}"),
    "block of integers": ({BLOCK: npz_of(Y=LABELS)}, FileFormatError, rf"^{BLOCK}"),
    "ragged sample": ({BLOCK: GOOD, SAMPLE: "3,7,0.5\n0,7\n"}, FileFormatError, r"^random\.txt"),
    "empty sample": ({BLOCK: GOOD, SAMPLE: ""}, FileFormatError, r"^random\.txt"),
    "flat block": (
        {BLOCK: npz_of(Y=np.zeros(38, np.uint8))},
        FileFormatError,
        rf"^{BLOCK}",
    ),
}


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [pytest.param(*case, id=name) for name, case in BAD_FILES.items()],
)
def test_a_malformed_file_is_refused_in_one_line(home, files, error, message):
    folder = home(**files)
    with pytest.raises(error, match=message) as caught:
        load_dataset("kuairec", data_home=folder)
    assert "\n" not in str(caught.value)


def test_a_broken_block_is_closed_again(home):
    folder = home(**{BLOCK: GOOD[: len(GOOD) // 2]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(FileFormatError):
            load_dataset("kuairec", data_home=folder)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
