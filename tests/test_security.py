"""The promises of docs/security.md that no module's own tests have."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from verirec.pages.writing import FORMULA_STARTS, write_table

ROOT = Path(__file__).parents[1]
LOG = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)


class Evil:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("run"),)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".parquet"])
def test_a_pickle_is_never_run(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    file = Path(f"scores{ending}")
    if ending == ".npy":
        np.save(file, np.array([Evil()]), allow_pickle=True)
    elif ending == ".npz":
        np.savez(file, user_factors=np.array([Evil()]), item_factors=np.array([Evil()]))
    else:
        file.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(vr.exceptions.FileFormatError):
        vr.read_predictions(file, LOG)
    assert not Path("run").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
def test_nor_is_one_in_a_model_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    world = vr.simulate.world(n_users=8, n_items=9, observed=0.5, random_state=0)
    vr.methods.catalogue["mf"](dim=1, epochs=1, validation=0).fit(world.log).recommender_.save("model")
    Path("model", name).write_bytes(pickle.dumps(Evil()))
    with pytest.raises(vr.exceptions.ModelFileError):
        vr.load("model")
    assert not Path("run").exists()


@pytest.mark.parametrize("line", ["import pickle", "import cloudpickle", "import torch\n\ntorch.load('a')"])
@pytest.mark.parametrize(("folder", "allowed"), [("data", False), ("training", False), ("engine", True)])
def test_the_linter_refuses_pickle_but_between_processes(line, folder, allowed):
    file = f"src/verirec/{folder}/a.py"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", "TID251,S301", "--stdin-filename", file, "-"],
        cwd=ROOT, input=line.encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == allowed, done.stdout.decode()


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_a_table_runs_nothing_in_a_spreadsheet(tmp_path, start):
    text = f"{start}HYPERLINK(1)"
    write_table(tmp_path / "a.csv", pd.DataFrame({"user": [text]}))
    read = pd.read_csv(tmp_path / "a.csv", dtype=str)
    assert read["user"][0] == f"'{text}"


@pytest.mark.parametrize("evil", ["../../evil", "/tmp/evil", "a/b", "..", "C:\\evil"])
def test_names_in_data_are_no_names_of_files(tmp_path, evil):
    home = tmp_path / "in" / "here"
    home.mkdir(parents=True)
    world = vr.simulate.world(n_users=20, n_items=20, observed=0.5, random_state=0)
    users = [f"{evil}{user}" for user in range(20)]
    log = vr.FeedbackLog.from_arrays(
        world.log.users, world.log.items, world.log.labels, n_users=20, n_items=20, user_ids=users
    )
    model = vr.methods.catalogue["mf"](dim=1, epochs=1, validation=0).fit(log).recommender_
    model.save(home / "model")
    assert list(vr.load(home / "model").user_ids.ids()) == users
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {f"in/here/model/{name}" for name in ("model.json", "model.safetensors")}
