"""Questions out and answers in: sheets with titles, several answers a pair, and Label Studio's tasks and exports."""

from __future__ import annotations

import json

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data.title_files import read_titles
from verirec.exceptions import AnswersWarning, ColumnError, FileFormatError, ParameterError

WORLD = vr.simulate.world(60, 40, observed=0.4, random_state=0)
NAMES = np.array([f"u{user:02}" for user in range(60)])
LOG = vr.FeedbackLog.from_arrays(
    WORLD.log.users, WORLD.log.items, WORLD.log.labels, n_users=60, n_items=40, user_ids=NAMES
)
PLAN = vr.plan_labels(LOG, 0.1 + 0.8 * WORLD.preferences, budget=60, random_state=0)
TRUTH = WORLD.at(PLAN.users, PLAN.items).true_labels
TITLES = [f"The story of {item}" for item in range(40)]


def answered(tasks, answers):
    """Fill tasks in as Label Studio exports them: `answers` gives the answer of each task and person."""
    return [
        task
        | {
            "id": number,
            "annotations": [
                {"completed_by": {"id": person, "email": f"p{person}@x"}, "result": [{"value": {"choices": [one]}}]}
                for person, one in enumerate(answers(number))
            ],
        }
        for number, task in enumerate(tasks)
    ]


def test_label_studios_answers_are_those_of_the_plan(tmp_path):
    file = tmp_path / "export.json"
    words = np.array(["no", "yes"])[TRUTH]
    file.write_text(json.dumps(answered(PLAN.to_label_studio(titles=TITLES), lambda task: [words[task]])))
    read, told = vr.SurveySample.from_file(file, LOG), PLAN.survey(TRUTH)
    assert len(read) == len(told) == 60
    assert labels_of(read) == labels_of(told)
    assert sorted(read.probabilities) == pytest.approx(sorted(told.probabilities))


def labels_of(sample):
    keys = sample.users.astype(int) * 40 + sample.items
    return dict(zip(keys.tolist(), sample.labels.tolist(), strict=True))


def test_of_several_answers_the_majority_counts_and_skipped_tasks_are_left_out(tmp_path):
    file = tmp_path / "export.json"
    tasks = answered(PLAN.to_label_studio(), lambda task: ["yes", "no", "yes"] if task else ["no", "no", "yes"])
    tasks[1]["annotations"] = []
    for one in tasks[2]["annotations"]:
        one["was_cancelled"] = True
    file.write_text(json.dumps(tasks))
    with pytest.warns(AnswersWarning):
        read = vr.SurveySample.from_file(file, LOG)
    assert (len(read), int(read.labels.sum())) == (58, 57)


def test_a_question_shows_the_title(tmp_path):
    data = PLAN.to_label_studio(titles=TITLES)[0]["data"]
    assert data["question"] == f"Does {NAMES[PLAN.users[0]]} like The story of {PLAN.items[0]}?"
    assert PLAN.to_label_studio()[0]["data"]["question"].endswith(f"like {PLAN.items[0]}?")


def test_a_sheet_has_titles_and_a_row_an_answer(tmp_path):
    sheet = PLAN.to_frame(titles=TITLES, answers=3)
    assert len(sheet) == 180
    assert sheet.columns.tolist() == ["kind", "user", "item", "title", "label", "true_label", "probability", "person"]
    assert sheet["title"].iloc[0] == TITLES[PLAN.items[0]]
    sheet["true_label"] = np.repeat(TRUTH, 3)
    sheet.loc[sheet["person"] == 2, "true_label"] = 0
    sheet.to_csv(tmp_path / "filled.csv", index=False)
    with pytest.warns(AnswersWarning):
        read = vr.SurveySample.from_file(tmp_path / "filled.csv", LOG)
    assert int(read.labels.sum()) == int(TRUTH.sum())
    assert sorted(read.probabilities) == pytest.approx(sorted(PLAN.survey(TRUTH).probabilities))


def test_titles_are_read_by_the_logs_ids(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_text('movieId,title,year\n3,"Alien, or not",1979\n99,Nobody knows,2000\n0,Up,2009\n')
    titles = read_titles(file, LOG)
    assert (titles[0], titles[3], titles[1], len(titles)) == ("Up", "Alien, or not", "", 40)


def wrong(tmp_path, text, name="x.json"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_what_is_no_export_or_no_title_is_refused(tmp_path):
    for text in ("{", "[1]", '[{"data": {"user": 1}}]', '[{"data": 3}]'):
        check_refusal(
            lambda text=text: vr.SurveySample.from_file(wrong(tmp_path, text), LOG), FileFormatError,
            r"^x\.json is not an export of Label Studio's",
        )  # fmt: skip
    check_refusal(lambda: read_titles(wrong(tmp_path, "a,b\n1,2\n", "t.csv"), LOG), ColumnError, "which column is the")
    check_refusal(lambda: read_titles(tmp_path / "none.csv", LOG), FileFormatError, "none.csv is no readable file")
    check_refusal(lambda: PLAN.to_frame(titles=["one"]), ParameterError, "titles must be one an item, 40; got 1")
