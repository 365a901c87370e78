import numpy as np
import pytest

from verirec import load_dataset
from verirec.exceptions import FileFormatError, LabelError

RATINGS = np.zeros((290, 300), int)
RATINGS[np.arange(290), np.arange(290)] = 5
RATINGS[np.arange(290), np.arange(1, 291)] = 2


def ascii_of(matrix):
    return "".join(" ".join(str(value) for value in row) + "\n" for row in matrix)


@pytest.fixture
def home(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.ascii").write_text(ascii_of(RATINGS))
    return tmp_path


@pytest.fixture
def coat(real_data):
    return load_dataset("coat", data_home=real_data("coat"))


@pytest.mark.parametrize(("part", "rows", "per_user"), [("train", 6_960, 24), ("test", 4_640, 16)])
def test_the_real_parts_have_the_published_sizes(coat, part, rows, per_user):
    log = getattr(coat, part)
    assert (len(log), log.n_users, log.n_items) == (rows, 290, 300)
    assert np.bincount(log.users, minlength=290).tolist() == [per_user] * 290
    assert set(log.ratings.tolist()) == {1, 2, 3, 4, 5}
    assert (log.labels == (log.ratings >= 3)).all()


def test_the_real_logs_are_the_nonzero_cells_of_the_matrices(coat, real_data):
    for part in ("train", "test"):
        matrix = np.loadtxt(real_data("coat") / "coat" / f"{part}.ascii")
        log = getattr(coat, part)
        filled = np.zeros_like(matrix)
        filled[log.users, log.items] = log.ratings
        assert (filled == matrix).all()


def test_the_real_propensities_and_features_cover_the_grid(coat):
    assert coat.name == "coat"
    assert coat.propensities.shape == (290, 300)
    assert coat.propensities.min() > 0
    assert coat.propensities.max() <= 1
    assert coat.complete is None
    for log in (coat.train, coat.test):
        assert log.user_features.shape == (290, 14)
        assert log.item_features.shape == (300, 33)


def test_another_rule_changes_the_labels(real_data):
    log = load_dataset("coat", data_home=real_data("coat"), positive_from=5).train
    assert (log.labels == (log.ratings == 5)).all()


def test_propensities_and_features_are_optional(home):
    data = load_dataset("coat", data_home=home)
    assert (len(data.train), data.propensities, data.train.user_features) == (580, None, None)


def changed(row, column, value):
    matrix = RATINGS.astype(object)
    matrix[row, column] = value
    return ascii_of(matrix)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "train.ascii",
            ascii_of(RATINGS) + "1 2\n",
            r"^train\.ascii is not a matrix of numbers: .*from 300 to 2 at row",
        ),
        ("train.ascii", ascii_of(RATINGS)[:-99], r"^train\.ascii is not a matrix of numbers: "),
        ("test.ascii", changed(289, 299, "x"), r"^test\.ascii is not a matrix of numbers: .*'x'.*row 289, column 300"),
        ("train.ascii", b"\xe9", r"^train\.ascii is not a matrix of numbers: "),
        ("train.ascii", ascii_of(RATINGS[:-1]), r"^train\.ascii must be 290 x 300; got 289 x 300$"),
        ("test.ascii", ascii_of(RATINGS[:, :-1]), r"^test\.ascii must be 290 x 300; got 290 x 299$"),
        ("train.ascii", changed(5, 5, 6), r"^train\.ascii must hold ratings 1 to 5, and 0 for none$"),
        ("train.ascii", changed(5, 5, -1), r"^train\.ascii must hold ratings 1 to 5, and 0 for none$"),
        ("train.ascii", changed(5, 5, 2.5), r"^train\.ascii must hold ratings 1 to 5, and 0 for none$"),
        ("train.ascii", changed(5, 5, "nan"), r"^train\.ascii must hold ratings 1 to 5, and 0 for none$"),
        ("propensities.ascii", "0.5 0.5\n", r"^propensities\.ascii must be 290 x 300; got 1 x 2$"),
        ("user_item_features/user_features.ascii", "1 0\n", r"^user_features\.ascii must be 290 x any; got 1 x 2$"),
        ("user_item_features/item_features.ascii", "1 0\n", r"^item_features\.ascii must be 300 x any; got 1 x 2$"),
        ("train.ascii", "", r"^train\.ascii"),
        ("propensities.ascii", ascii_of(np.full((290, 300), 2.0)), r"^propensities\.ascii"),
    ],
    ids=[
        "a short line more",
        "cut",
        "a letter",
        "a byte of no text",
        "a line too few",
        "a column too few",
        "6",
        "-1",
        "2.5",
        "NaN",
        "propensities' shape",
        "user features' shape",
        "item features' shape",
        "empty",
        "propensities of 2",
    ],
)
def test_a_malformed_file_is_refused_in_one_line(home, file, content, message):
    (home / file).parent.mkdir(exist_ok=True)
    (home / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError, match=message) as caught:
        load_dataset("coat", data_home=home)
    assert "\n" not in str(caught.value)


def test_a_rule_that_leaves_one_class_is_refused(home):
    with pytest.raises(LabelError, match=r"^positive_from=6 makes all 580 labels 0: .* from 2 to 5$"):
        load_dataset("coat", data_home=home, positive_from=6)
