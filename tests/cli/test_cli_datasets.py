"""verirec datasets: what there is, where it was found, and how to get the rest."""

from __future__ import annotations

import json

import pytest

from verirec.data.datasets import CATALOGUE

FIELDS = {"name", "title", "users", "items", "ratings", "positive_from", "found", "downloadable", "source"}


@pytest.fixture
def home(tmp_path):
    """A data folder that has Coat and nothing else."""
    (tmp_path / "data" / "coat").mkdir(parents=True)
    for name in ("train.ascii", "test.ascii"):
        (tmp_path / "data" / "coat" / name).touch()
    return tmp_path / "data"


@pytest.fixture
def no_download(monkeypatch):
    """Record what would be fetched; nothing goes over the network."""
    asked = []

    def fetch(info, folder):
        asked.append((info.name, folder))
        return folder / "fetched"

    monkeypatch.setattr("verirec.data.datasets.fetch_dataset", fetch)
    return asked


def listed(output):
    return {row["name"]: row for row in json.loads(output)}


def test_the_json_list_has_every_data_set_and_all_its_fields(run, home):
    code, output, errors = run("datasets", "--json", "--data", home)
    assert (code, errors) == (0, "")
    rows = listed(output)
    assert list(rows) == list(CATALOGUE)
    for name, row in rows.items():
        assert set(row) == FIELDS
        assert (row["users"], row["items"], row["ratings"]) == CATALOGUE[name].size
        assert row["downloadable"] == name.startswith("movielens")
    assert {name: row["found"] for name, row in rows.items() if row["found"]} == {"coat": str(home / "coat")}


def test_the_table_says_what_is_here_and_how_to_get_the_rest(run, home):
    code, output, errors = run("datasets", "--data", home)
    assert (code, errors) == (0, "")
    assert output.startswith(f"Data sets, looked for in {home}\n")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]
    here = {first: last for first, *_, last in rows if first}
    assert here == {name: "yes" if name == "coat" else "no" for name in CATALOGUE}
    assert (
        f"movielens-100k: fetch it (verirec datasets fetch movielens-100k --data {home}), or put u.data into" in output
    )
    assert "https://webscope.sandbox.yahoo.com" in output
    assert "coat: " not in output


def test_the_data_folder_comes_from_the_environment_unless_it_is_named(run, home, tmp_path, monkeypatch):
    monkeypatch.setenv("VERIREC_DATA", str(home))
    assert listed(run("datasets", "--json")[1])["coat"]["found"] == str(home / "coat")
    assert listed(run("datasets", "--json", "--data", tmp_path)[1])["coat"]["found"] is None


def test_the_installed_command_reads_the_environment_too(spawn, home):
    code, output, errors = spawn("datasets", "--json", VERIREC_DATA=home)
    assert (code, errors) == (0, "")
    assert listed(output)["coat"]["found"] == str(home / "coat")


def test_real_data_are_found(run, real_data):
    code, output, _ = run("datasets", "--json", "--data", real_data("coat"))
    assert code == 0
    assert listed(output)["coat"]["found"]


def test_a_data_folder_that_is_not_there_is_told_in_one_line(run, tmp_path):
    nowhere = tmp_path / "nowhere"
    assert run("datasets", "--data", nowhere) == (2, "", f"verirec: no data folder '{nowhere}'\n")


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "v[old]",
        "a[/b]",
    ],
)
def test_the_data_folder_is_shown_as_it_is(run, tmp_path, name):
    (tmp_path / name).mkdir(parents=True)
    code, output, _ = run("datasets", "--data", tmp_path / name)
    assert code == 0
    assert f"looked for in {tmp_path / name}\n" in output


def test_fetching_what_is_here_says_where_and_downloads_nothing(run, home, no_download):
    code, output, errors = run("datasets", "fetch", "coat", "--data", home)
    assert (code, output, errors) == (0, f"coat is in {home / 'coat'}\n", "")
    assert no_download == []


def test_fetching_what_is_not_here_downloads_it_into_the_data_folder(run, home, no_download, monkeypatch):
    monkeypatch.setenv("VERIREC_DATA", str(home))
    code, output, _ = run("datasets", "fetch", "movielens-100k")
    assert (code, output) == (0, f"movielens-100k is in {home / 'fetched'}\n")
    assert no_download == [("movielens-100k", home)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "verirec: name must be one of coat, kuairec, movielens-100k, movielens-1m, yahoo-r3; got 'nope'\n"),
        ("yahoo-r3", f"verirec: yahoo-r3 cannot be fetched for you; {CATALOGUE['yahoo-r3'].source}, then put ydata-"),
    ],
)
def test_what_cannot_be_fetched_is_told_in_one_line(run, home, name, message):
    code, output, errors = run("datasets", "fetch", name, "--data", home)
    assert (code, output) == (2, "")
    assert errors.startswith(message)
    assert errors.count("\n") == 1


@pytest.mark.parametrize("folder", ["~nosuchuser", "a" * 5000, "nowhere"])
def test_a_data_folder_that_cannot_be_is_told_in_one_line(run, monkeypatch, folder):
    code, output, errors = run("datasets", "--data", folder)
    assert (code, output) == (2, "")
    assert errors.startswith("verirec: no data folder")
    monkeypatch.setenv("VERIREC_DATA", folder)
    assert run("datasets") == (code, output, errors)
