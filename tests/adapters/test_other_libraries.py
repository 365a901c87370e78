"""Adapters against the real libraries, each in an environment of its own: `make test-adapters`."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data import as_predictions
from verirec.exceptions import AdapterError, ColdStartWarning, NotFittedError, UnknownIdError

# What the libraries themselves warn of is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

WORLD = vr.simulate.world(40, 30, observed=0.4, random_state=0)
USERS, ITEMS = np.array([f"u{user:02}" for user in range(40)]), np.arange(100, 130)
LOG = vr.FeedbackLog.from_arrays(
    WORLD.log.users, WORLD.log.items, WORLD.log.labels, n_users=40, n_items=30, user_ids=USERS, item_ids=ITEMS
)
STRANGERS = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["x", "y"])
FRAME = LOG.to_frame()
# All but the last user and the last item were trained on.
KNOWN = FRAME[(FRAME["user"] != "u39") & (FRAME["item"] != 129)]


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed here: make test-adapters")


def lenskit_model(fit):
    library("lenskit")
    from lenskit.als import BiasedMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.operations import score
    from lenskit.pipeline import topn_pipeline

    pipeline = topn_pipeline(BiasedMFScorer(embedding_size=4))
    if fit:
        frame = KNOWN.rename(columns={"user": "user_id", "item": "item_id", "label": "rating"})
        pipeline.train(from_interactions_df(frame))
    return pipeline, None, lambda user, item: score(pipeline, user, np.array([item])).scores()[0]


def cornac_model(fit):
    cornac = library("cornac")
    model = cornac.models.MF(k=4, max_iter=5, seed=0, verbose=False)
    if fit:
        rows = zip(KNOWN["user"], KNOWN["item"].astype(str), KNOWN["label"].astype(float), strict=True)
        model.fit(cornac.data.Dataset.from_uir(list(rows)))
    return model, None, lambda user, item: model.score(model.uid_map[user], model.iid_map[str(item)])


def rectools_model(fit):
    library("rectools")
    import pandas as pd
    from rectools.dataset import Dataset
    from rectools.models import EASEModel

    frame = KNOWN.rename(columns={"user": "user_id", "item": "item_id"}).assign(weight=1.0)
    dataset = Dataset.construct(frame.assign(datetime=pd.Timestamp("2024-01-01")))
    model = EASEModel()
    if fit:
        model.fit(dataset)

    def theirs(user, item):
        told = model.recommend([user], dataset, k=29, filter_viewed=False)
        return told.loc[told["item_id"] == item, "score"].item()

    return model, dataset, theirs


def recbole_model(fit):
    library("recbole")
    import tempfile
    from pathlib import Path

    import torch
    from recbole.config import Config
    from recbole.data import create_dataset
    from recbole.data.interaction import Interaction
    from recbole.model.general_recommender import BPR

    folder = Path(tempfile.mkdtemp(), "small")
    folder.mkdir()
    names = {"user": "user_id:token", "item": "item_id:token"}
    KNOWN[["user", "item"]].rename(columns=names).to_csv(folder / "small.inter", sep="\t", index=False)
    options = {"data_path": str(folder.parent), "embedding_size": 4, "use_gpu": False, "state": "ERROR"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["test"])
        config = Config("BPR", "small", config_dict=options)
    dataset = create_dataset(config)
    model = BPR(config, dataset)

    def theirs(user, item):
        pair = Interaction(
            {
                "user_id": torch.tensor([dataset.field2token_id["user_id"][user]]),
                "item_id": torch.tensor([dataset.field2token_id["item_id"][str(item)]]),
            }
        )
        return model.predict(pair).item()

    return model, dataset, theirs


MODELS = {"lenskit": lenskit_model, "cornac": cornac_model, "rectools": rectools_model, "recbole": recbole_model}
PAIRS = [("u00", 100), ("u07", 121), ("u38", 128)]


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_librarys_own_and_what_it_does_not_know_gets_their_mean(name):
    model, dataset, theirs = MODELS[name](fit=True)
    with pytest.warns(ColdStartWarning, match=rf"{name} .* \(1 users and 1 items of the log are unknown to it\)"):
        found = as_predictions(vr.adapt(model, LOG, dataset=dataset), *LOG.shape)
    for user, item in PAIRS:
        ours = found.at(LOG.user_ids.positions([user]), LOG.item_ids.positions([item]))[0]
        assert ours == pytest.approx(float(theirs(user, item)), rel=1e-4, abs=1e-5)
    known = found.block(np.arange(39), np.arange(29))
    assert found.at([39, 0], [0, 29]) == pytest.approx(np.full(2, known.mean()), rel=1e-6)


@pytest.mark.parametrize("name", ["lenskit", "cornac"])
def test_a_model_that_knows_its_ids_is_judged_as_it_is(name):
    model, _, _ = MODELS[name](fit=True)
    assert vr.estimate(model, LOG)["dr"].value < 1
    assert 0 < vr.estimate_ranking(model, LOG)["auc"].value < 1


@pytest.mark.parametrize("name", ["lenskit", "cornac", "rectools"])
def test_a_model_that_is_not_fitted_is_refused(name):
    model, dataset, _ = MODELS[name](fit=False)
    check_refusal(lambda: vr.adapt(model, LOG, dataset=dataset), NotFittedError, f"^{name} .* is not (fitted|trained)")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_other_users_and_items_is_refused(name):
    model, dataset, _ = MODELS[name](fit=True)
    message = f"^{name} .* scores no pair of the log: it does not know its users .*'x'.* or its items .*0"
    check_refusal(lambda: vr.adapt(model, STRANGERS, dataset=dataset), UnknownIdError, message)


@pytest.mark.parametrize("name", ["rectools", "recbole"])
def test_a_model_that_does_not_know_its_ids_asks_for_its_data_set(name):
    model, _, _ = MODELS[name](fit=True)
    check_refusal(lambda: vr.adapt(model, LOG), AdapterError, f"^{name} .* needs the data set .* dataset=")


def lightfm_model():
    lightfm = library("lightfm")
    from scipy.sparse import coo_matrix

    model = lightfm.LightFM(no_components=4, random_state=0)
    # It writes to no array, and still takes none that cannot be written to.
    users, items = np.array(LOG.users), np.array(LOG.items)
    model.fit(coo_matrix((np.array(LOG.labels), (users, items)), shape=LOG.shape, dtype=np.float32))
    return model


def test_lightfms_biases_and_factors_are_its_scores():
    model = lightfm_model()
    ids = {"user_ids": LOG.user_ids.ids(), "item_ids": LOG.item_ids.ids()}
    found = as_predictions(vr.adapt(model, LOG, **ids), *LOG.shape).at(LOG.users, LOG.items)
    assert found == pytest.approx(model.predict(np.array(LOG.users), np.array(LOG.items)), rel=1e-5, abs=1e-6)


def test_a_lightfm_model_that_is_not_fitted_is_refused():
    lightfm = library("lightfm")
    check_refusal(lambda: vr.adapt(lightfm.LightFM(), LOG), NotFittedError, "^lightfm .* is not fitted")
