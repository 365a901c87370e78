"""Top-k lists: places, lengths, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data.top_lists import TopLists
from verirec.exceptions import PositionError, PredictionError, UnknownIdWarning

LOG = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=3, n_items=4, user_ids=["ann", "bob", "cy"])


def test_places_go_by_rank_whatever_order_the_rows_have_and_wherever_ranks_start():
    lists = TopLists([1, 0, 0, 1, 0], [3, 2, 0, 1, 1], [7, 30, 10, 5, 20], (3, 4))
    assert lists.places(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 3, 0])).tolist() == [0, 1, 2, 0, 1, np.inf]
    assert lists.lengths.tolist() == [3, 2, 0]
    assert lists.depth == 3
    assert lists.block([0, 2], [0, 1, 2, 3]).tolist() == [[4, 3, 2, 0], [0, 0, 0, 0]]


def test_no_lists_at_all_have_no_places():
    lists = TopLists(np.empty(0, int), np.empty(0, int), [], (3, 4))
    assert (lists.depth, lists.places(np.array([0]), np.array([0])).tolist()) == (0, [np.inf])


def test_a_file_with_a_rank_is_one_of_lists(tmp_path):
    file = tmp_path / "shown.csv"
    file.write_text("user,item,rank,score\nbob,1,1,.9\nbob,0,2,.8\nann,3,1,.2\ndan,1,1,.1\n")
    with pytest.warns(UnknownIdWarning, match="1 user"):
        lists = vr.read_predictions(file, LOG)
    assert isinstance(lists, TopLists)
    assert lists.lengths.tolist() == [1, 2, 0]
    with pytest.warns(UnknownIdWarning):
        assert isinstance(vr.read_predictions(file, LOG, score="score"), tuple)


REFUSED = {
    "rank again": (([0, 0], [1, 2], [1, 1]), PredictionError, r"1 ranks occur again .* \(first: rank 1 of user 0\)"),
    "item again": (([0, 0], [1, 1], [1, 2]), PredictionError, "an item once"),
    "infinite": (([0, 0], [1, 2], [1, np.inf]), PredictionError, "finite number a listed pair"),
    "too few": (([0, 0], [1, 2], [1]), PredictionError, r"shape \(2,\)"),
    "outside": (([0, 3], [1, 2], [1, 2]), PositionError, "users must be positions from 0 to 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_list_is_refused(case):
    parts, error, message = REFUSED[case]
    check_refusal(lambda: TopLists(*parts, (3, 4)), error, message)
