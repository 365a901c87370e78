"""Notebook views: each says what matters, in a table, with everything escaped."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr

WORLD = vr.simulate.world(40, 30, observed=0.4, random_state=0)
P = vr.PopularityPropensity().fit(WORLD.log)


def recommender():
    return vr.methods.MF(dim=2, random_state=0).fit(WORLD.log).recommender_


VIEWS = {
    "world": (lambda: WORLD, ["40 users x 30 items", "noise rates"]),
    "diagnostics": (lambda: P.diagnostics(WORLD.log), [f"{len(WORLD.log):,}, worth", "balance of"]),
    "recommender": (recommender, ["<td>mf</td>", "40 users x 30 items", "is kept"]),
    "log": (lambda: WORLD.log, ["FeedbackLog(", "<table"]),
}


@pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_says_what_matters(name):
    make, words = VIEWS[name]
    shown = make()._repr_html_()
    assert all(word in shown for word in words), shown
    assert shown.count("<table") == shown.count("</table>") == 1


def test_ids_are_escaped():
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=np.array(["<b>", "ann"]))
    assert "<b>" not in log._repr_html_()
