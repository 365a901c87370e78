"""Files of true labels: plans that were filled in, by several people, saved by spreadsheets, or spoilt on the way."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest

from refusals import check_refusal
from verirec import FeedbackLog, SurveySample
from verirec.data.answers import combine_answers
from verirec.data.roles import TruthRoles
from verirec.data.truth_files import read_truths
from verirec.exceptions import (
    AnswersWarning,
    AuditError,
    ColumnError,
    DataError,
    EmptyLogError,
    FileFormatError,
    MissingValueError,
    SurveyError,
    UnknownIdError,
)

USERS, ITEMS = ["ann", "bob", "cy"], [10, 20]
LOG = FeedbackLog.from_arrays([0, 1, 2], [0, 0, 1], [1, 0, 1], n_users=3, n_items=2, user_ids=USERS, item_ids=ITEMS)
PLAN = """kind,user,item,label,true_label,probability
logged,ann,10,1,1,0.5
random,ann,20,,0,0.0125
logged,bob,10,0,,0.5
random,bob,20,,1,0.025
logged,cy,20,1,0,0.25
random,cy,10,,,0.05
"""


@pytest.fixture
def read(tmp_path):
    """Write a file and read it back, as an audit unless it is called random."""

    def read(content, kind="logged", name="a.csv", roles=None, log=LOG):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_truths(Path(tmp_path, name), roles or TruthRoles(), log, kind=kind)

    return read


def plain(found):
    return [
        None if part is None else part.tolist()
        for part in (found.users, found.items, found.labels, found.probabilities, found.clusters)
    ]


# Plans


def test_each_kind_of_a_plan_is_taken_by_itself(read):
    """Two of three pairs were answered: two thirds of the probabilities are left."""
    third = 2 / 3
    assert plain(read(PLAN)) == [[0, 2], [0, 1], [1, 0], [0.5 * third, 0.25 * third], None]
    assert plain(read(PLAN, "random")) == [[0, 1], [1, 1], [0, 1], [0.0125 * third, 0.025 * third], None]


def test_a_file_without_kind_is_all_of_one(read):
    content = "user,item,true_label\nann,10,1\nbob,20,0\n"
    assert plain(read(content)) == plain(read(content, "random")) == [[0, 1], [0, 1], [1, 0], None, None]


def test_a_column_kind_that_says_other_things_is_not_ours(read):
    assert read("kind,user,item,truth\nfilm,ann,10,1\nsong,bob,20,0\n").users.tolist() == [0, 1]
    assert read("kind,user,item,truth\n1,ann,10,1\n2,bob,20,0\n").users.tolist() == [0, 1]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["commas", "semicolons", "tabs"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "with a mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("quoted", [False, True], ids=["bare", "quoted"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_what_a_spreadsheet_saves_is_what_was_written(read, delimiter, bom, end, quoted, name):
    decimal = "," if delimiter == ";" else "."
    lines = [
        [value.replace(".", decimal) for value in line.split(",")] for line in PLAN.replace("random", "Random").split()
    ]
    # Rows that somebody deleted leave their separators.
    lines.append([""] * 6)
    cell = '"{}"' if quoted else "{}"
    content = bom + end.join(delimiter.join(cell.format(one) for one in line) for line in lines).encode()
    for kind in ("logged", "random"):
        saved = read(gzip.compress(content) if name.endswith("gz") else content, kind, name)
        assert plain(saved) == plain(read(PLAN, kind, "b.csv"))


@pytest.mark.parametrize(("label", "truth"), [("1,0", 1), ("0,0", 0), ("1", 1), ("Yes", 1)])
def test_labels_with_decimal_commas_are_read(read, label, truth):
    assert read(f"user;item;true_label\nann;10;{label}\nbob;10;no\n").labels.tolist() == [truth, 0]


def test_weights_are_one_over_probabilities_and_give_way_to_them(read):
    assert read("user,item,truth,weight\nann,10,1,4\nbob,20,0,8\n").probabilities.tolist() == [0.25, 0.125]
    assert read("user,item,truth,weight,probability\nann,10,1,4,0.5\n").probabilities.tolist() == [0.5]


def test_clusters_are_numbered(read):
    content = "user,item,truth,cluster\nann,10,1,north\nann,20,0,north\nbob,10,0,south\n"
    assert read(content).clusters.tolist() == [0, 0, 1]


def test_a_blank_cluster_is_one_of_its_own(read):
    content = "user,item,truth,cluster\nann,10,1,north\nann,20,0,\nbob,10,0,\nbob,20,1,north\n"
    clusters = read(content).clusters
    assert clusters[0] == clusters[3]
    assert len(set(clusters.tolist())) == 3


def test_best_pairs_of_a_plan_are_known_and_not_mixed_with_random_ones(read):
    content = "kind,user,item,true_label\nbest,ann,10,1\nbest,bob,20,0\n"
    assert read(content, "random").best
    assert not read(PLAN, "random").best
    mixed = content + "random,bob,10,1\n"
    check_refusal(lambda: read(mixed, "random"), FileFormatError, "2 of 3 answered pairs are of kind best")


def test_columns_may_be_named(read):
    roles = TruthRoles(probability="chance", person="who", cluster="where")
    found = read("user,item,truth,chance,who,where\nann,10,1,0.5,x,9\n", roles=roles)
    assert (found.probabilities.tolist(), found.clusters.tolist()) == ([0.5], [0])


# Several answers


def test_the_majority_counts_and_ties_are_left_out(read):
    content = "user,item,truth,rater\n" + "".join(
        f"{pair},{label},{who}\n"
        for pair, labels in {"ann,10": "110", "bob,10": "01", "cy,20": "00", "ann,20": "1"}.items()
        for who, label in zip("xyz", labels, strict=False)
    )
    with pytest.warns(AnswersWarning) as warned:
        found = read(content)
    assert plain(found)[:3] == [[0, 2, 0], [0, 1, 1], [1, 0, 1]]
    # Pairwise disagreement: (2/3 + 1 + 0) / 3 = 5/9, above that of coins.
    (said,) = (str(one.message) for one in warned)
    assert said == (
        "a.csv: people disagree on 2 of the 3 pairs that several answered (67%), where the majority counts; 1 on which "
        "they are divided evenly are left out; if they err independently, about half of all answers are wrong"
    )


def test_agreement_is_reported_too(read):
    with pytest.warns(AnswersWarning, match="all people agree on each of the 1 pairs that several answered"):
        found = read("user,item,truth,annotator\nann,10,1,x\nann,10,1,y\nbob,10,0,x\n")
    assert found.labels.tolist() == [1, 0]


def test_one_answer_a_pair_says_nothing(read):
    """A warning would be an error here."""
    assert read("user,item,truth,annotator\nann,10,1,x\nbob,10,0,y\n").labels.tolist() == [1, 0]


@pytest.mark.parametrize("errors", [0.05, 0.2, 0.4])
def test_disagreement_tells_how_often_a_single_answer_is_wrong(errors):
    """Three people a pair, each wrong by chance."""
    random = np.random.default_rng(0)
    truth = random.integers(2, size=20_000)
    answers = truth[:, None] ^ (random.random((len(truth), 3)) < errors)
    keys, people = (np.ravel(one) for one in np.broadcast_arrays(np.arange(len(truth))[:, None], np.arange(3)))
    with pytest.warns(AnswersWarning) as warned:
        found = combine_answers(keys, answers.ravel(), people, file="f", where=str, error=DataError)
    said = float(str(warned[0].message).split("about ")[1].split("%")[0])
    assert said == pytest.approx(100 * errors, abs=1.5)
    # The majority of three is wrong less often.
    assert (found.labels != truth).mean() == pytest.approx(errors**2 * (3 - 2 * errors), abs=0.01)


def test_repeats_that_agree_count_once(read):
    with pytest.warns(AnswersWarning, match=r"^a\.csv: 2 rows repeat what another row says, and are left out$"):
        found = read("user,item,truth\nann,10,1\nann,10,1\nbob,10,0\nann,10,1\n")
    assert plain(found)[:3] == [[0, 1], [0, 0], [1, 0]]


def test_a_person_who_repeats_herself_has_one_vote(read):
    content = "user,item,truth,person\nann,10,1,x\nann,10,1,x\nann,10,0,y\nann,10,0,z\n"
    with pytest.warns(AnswersWarning):
        assert read(content).labels.tolist() == [0]


def test_any_order_of_the_rows_gives_the_same_answers():
    keys, labels, people = np.array([[3, 3, 3, 1, 1, 2], [1, 1, 0, 0, 1, 1], [0, 1, 2, 0, 1, 0]])
    expected = {3: 1, 2: 1}
    for order in itertools.permutations(range(6)):
        some = np.array(order)
        with pytest.warns(AnswersWarning):
            found = combine_answers(keys[some], labels[some], people[some], file="f", where=str, error=DataError)
        assert dict(zip(keys[some][found.rows].tolist(), found.labels.tolist(), strict=True)) == expected
        assert (np.diff(found.rows) > 0).all()


# What is refused


BAD = [
    (
        "logged",
        "user,item,truth\nann,10,1\nbob,10,\nann,10,0\n",
        AuditError,
        r"^a\.csv: answers to one pair contradict each other in 2 of 3 rows \(first: 0, 2, counting from 0\); if "
        r"several people answered, say who in a column person$",
    ),
    (
        "random",
        "user,item,truth,person\nann,10,1,x\nann,10,1,y\nann,10,0,x\n",
        SurveyError,
        r"^a\.csv: answers of one person to one pair contradict each other in 2 of 3 rows \(first: 0, 2, ",
    ),
    ("random", "user,item,truth,person\nann,10,1,x\nann,10,0,y\n", SurveyError, "divided evenly on all 1 pairs"),
    ("random", "user,item,truth\nann,10,3\n", SurveyError, r"truth must be 0 or 1, .* where row 0 has 3$"),
    (
        "logged",
        "kind,user,item,truth\nlogged,ann,10,1\nlogged,ann,20,1\n",
        UnknownIdError,
        r"^a\.csv: pairs of kind logged are not in the log in 1 of 2 rows \(first: 1, counting from 0\): ids were "
        r"changed, or the plan is of another log$",
    ),
    (
        "random",
        "kind,user,item,truth\nrandom,dan,10,1\n",
        UnknownIdError,
        r"user is not in .* is 'dan'; .* all_users=...$",
    ),
    (
        "random",
        "kind,user,item,truth\nrandom,ann,30,1\n",
        UnknownIdError,
        r"item is not in .* is 30; .* all_items=...$",
    ),
    (
        "random",
        "kind,user,item,truth\nrandom,ann,10,1\nboth,bob,10,0\n",
        FileFormatError,
        r"^a\.csv: kind must be logged, random or best; it is not in 1 of 2 rows .*, where row 1 has 'both'$",
    ),
    (
        "random",
        PLAN.replace("random", "logged"),
        EmptyLogError,
        r"^a\.csv has no row of kind random with a true_label$",
    ),
    ("logged", "user,item,truth\n,10,1\n", MissingValueError, r"^a\.csv: user is missing in 1 of 1 rows .*fill it in"),
    *(
        (
            kind,
            f"user,item,truth,probability\nann,10,,0.5\nann,10,1,{value}\n",
            FileFormatError,
            rf"^a\.csv: probability must be a finite number above 0; it is not in 1 of 2 rows .* row 1 has {shown}$",
        )
        for kind in ("logged", "random")
        for value, shown in (("0", "0.0"), ("-1", "-1.0"), ("nan", "nan"), ("inf", "inf"), ("", "None"), ("x", "'x'"))
    ),
    ("random", "user;item;wat\nann;10;1\n", ColumnError, r"the columns are: user, item, wat$"),
]


@pytest.mark.parametrize(("kind", "content", "error", "message"), BAD)
def test_a_bad_file_is_refused_in_one_line(read, kind, content, error, message):
    check_refusal(lambda: read(content, kind), error, message)


def test_rows_of_the_other_kind_may_be_wrong(read):
    """Who reads the audit is not told of the survey's mistakes."""
    content = PLAN.replace("random,ann,20", "random,nobody,20")
    assert len(read(content).users) == 2
    check_refusal(lambda: read(content, "random"), UnknownIdError, "nobody")


def test_answers_in_stars_count_by_the_logs_threshold(tmp_path):
    log = FeedbackLog.from_arrays([0, 1, 1], [0, 0, 1], [1, 0, 1], n_users=2, n_items=2, user_ids=["a", "b"])
    file = tmp_path / "survey.csv"
    file.write_text("user,item,true_label\na,0,5\nb,0,1\nb,1,3\n")
    assert SurveySample.from_file(file, log, positive_from=4).labels.tolist() == [1, 0, 0]
    with pytest.raises(SurveyError, match="must be 0 or 1"):
        SurveySample.from_file(file, log)
    file.write_text("user,item,true_label\na,0,1\nb,0,0\n")
    assert SurveySample.from_file(file, log, positive_from=4).labels.tolist() == [1, 0]


def test_files_of_spreadsheets_are_read_as_windows_writes_them(tmp_path):
    log = FeedbackLog.from_arrays([0, 1, 1], [0, 0, 1], [1, 0, 1], n_users=2, n_items=2, user_ids=["é", "b"])
    file = tmp_path / "survey.csv"
    file.write_bytes("user;item;true_label\né;0;1\nb;0;0\n".encode("cp1252"))
    assert SurveySample.from_file(file, log).users.tolist() == [0, 1]


def test_who_has_no_row_is_said_to_be_named(tmp_path):
    log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=["a", "b"])
    file = tmp_path / "survey.csv"
    file.write_text("user,item,true_label\na,0,1\nz,0,0\n")
    with pytest.raises(UnknownIdError, match=r"first is 'z'; users that have no row are named by all_users=\.\.\.$"):
        SurveySample.from_file(file, log)


@pytest.mark.parametrize(
    ("likes", "dislikes"),
    [("ja", "Nein"), ("Oui", "non"), ("sí", "no"), ("up", "down"), ("Y", "n"), ("like", "dislike")],
)
def test_answers_in_other_words(read, likes, dislikes):
    found = read(f"user,item,answer\nann,10,{likes}\nbob,10, {dislikes}\n")
    assert found.labels.tolist() == [1, 0]


def test_blanks_around_column_names(read):
    found = read(" user ;item\t;true_label \nann;10;1\n".replace("\t", " "))
    assert (found.users.tolist(), found.labels.tolist()) == ([0], [1])


def test_all_columns_of_answers_are_to_be_named(read):
    with pytest.raises(ColumnError, match=r"name them: user=\.\.\., item=\.\.\., true_label=\.\.\.; the columns are"):
        read("kunde,item,true_label\nann,10,1\n")
