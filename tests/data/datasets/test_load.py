import dataclasses
from pathlib import Path

import numpy as np
import pytest

from verirec import Dataset, load_dataset
from verirec.data.datasets import CATALOGUE, data_home_folder, find_dataset
from verirec.exceptions import DatasetNotFoundError, DownloadError, ParameterError


@pytest.fixture
def coat_home(tmp_path):
    ratings = np.zeros((290, 300), int)
    ratings[0, :2] = 5, 1
    (tmp_path / "coat").mkdir()
    for part in ("train", "test"):
        np.savetxt(tmp_path / "coat" / f"{part}.ascii", ratings, fmt="%d")
    return tmp_path


@pytest.mark.parametrize("name", [*CATALOGUE, "unknown"])
def test_a_data_folder_that_is_not_there_is_named(tmp_path, name):
    nowhere = tmp_path / "nowhere"
    expected = DatasetNotFoundError if name in CATALOGUE else ParameterError
    with pytest.raises(expected) as caught:
        load_dataset(name, data_home=nowhere)
    if name in CATALOGUE:
        assert str(caught.value) == f"no data folder {str(nowhere)!r}"
    assert not nowhere.exists()


def test_a_file_is_no_data_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DatasetNotFoundError, match=r"^no data folder"):
        load_dataset("coat", data_home=file)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_folder_without_the_files_says_which_are_needed_and_how_to_get_them(tmp_path, name):
    info = CATALOGUE[name]
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset(name, data_home=tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{name} is not in {str(tmp_path)!r}; ")
    assert all(file in message for file in info.forms[0])
    assert str(tmp_path / info.folders[0]) in message
    assert info.source in message
    assert (f"verirec datasets fetch {name} --data {tmp_path}" in message) == (info.download is not None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "netflix"},
            r"^name must be one of coat, kuairec, movielens-100k, movielens-1m, yahoo-r3; got 'netflix'$",
        ),
        ({"name": None}, r"^name must be one of .*; got None$"),
        ({"name": "coat", "positive_from": np.nan}, r"^positive_from must be a finite number; got nan$"),
        ({"name": "coat", "positive_from": "3"}, r"^positive_from must be a finite number; got '3'$"),
    ],
)
def test_bad_arguments_are_refused_before_any_file_is_looked_for(tmp_path, arguments, message):
    with pytest.raises(ParameterError, match=message):
        load_dataset(**arguments, data_home=tmp_path / "nowhere")


def test_the_environment_names_the_data_folder(monkeypatch, coat_home):
    monkeypatch.setenv("VERIREC_DATA", str(coat_home))
    assert data_home_folder() == coat_home
    data = load_dataset("coat")
    assert isinstance(data, Dataset)
    assert data.train.ratings.tolist() == [5, 1]


def test_the_argument_wins_over_the_environment(monkeypatch, coat_home, tmp_path):
    monkeypatch.setenv("VERIREC_DATA", str(tmp_path / "elsewhere"))
    assert len(load_dataset("coat", data_home=coat_home).train) == 2
    with pytest.raises(DatasetNotFoundError, match="elsewhere"):
        load_dataset("coat")


def test_without_either_the_users_cache_is_the_data_folder(monkeypatch):
    monkeypatch.delenv("VERIREC_DATA", raising=False)
    assert data_home_folder().name == "verirec"
    assert data_home_folder().is_absolute()


def test_a_tilde_is_the_users_home(monkeypatch):
    monkeypatch.setenv("VERIREC_DATA", "~/data")
    assert data_home_folder() == Path.home() / "data"
    assert data_home_folder("~/other") == Path.home() / "other"


def test_files_may_lie_in_the_data_folder_itself(coat_home):
    assert find_dataset(CATALOGUE["coat"], coat_home) == coat_home / "coat"
    assert find_dataset(CATALOGUE["coat"], coat_home / "coat") == coat_home / "coat"
    assert len(load_dataset("coat", data_home=coat_home / "coat").train) == 2


def test_an_incomplete_form_is_not_found(coat_home):
    (coat_home / "coat" / "test.ascii").unlink()
    assert find_dataset(CATALOGUE["coat"], coat_home) is None


@pytest.mark.parametrize("name", [name for name, info in CATALOGUE.items() if info.download is None])
def test_what_its_makers_do_not_let_anyone_fetch_is_not_downloaded(tmp_path, name):
    with pytest.raises(DownloadError, match=rf"^{name} cannot be fetched for you; ") as caught:
        load_dataset(name, data_home=tmp_path / "new", download=True)
    assert CATALOGUE[name].source in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_data_that_is_there_is_not_downloaded_again(coat_home):
    assert len(load_dataset("coat", data_home=coat_home, download=True).train) == 2


def test_a_data_set_is_frozen(coat_home):
    data = load_dataset("coat", data_home=coat_home)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.train = None
