"""Names of columns that nobody named: guessed by words, and never where two could be meant."""

from __future__ import annotations

import pandas as pd
import pytest

import verirec as vr
from verirec.data.column_guesses import guess_columns, guess_roles, words_of


@pytest.mark.parametrize(
    ("names", "user", "item", "rating", "timestamp"),
    [
        (("userId", "movieId", "rating", "timestamp"), "userId", "movieId", "rating", "timestamp"),
        (("uid", "sku", "score", "ts"), "uid", "sku", "score", "ts"),
        (("KundenNr", "ArtikelNr", "Bewertung", "Datum"), "KundenNr", "ArtikelNr", "Bewertung", "Datum"),
        (("id_usuario", "Película", "puntuación", "fecha"), "id_usuario", "Película", "puntuación", "fecha"),
        (("Membre", "code_produit", "Étoiles", "heure"), "Membre", "code_produit", "Étoiles", "heure"),
        (("reviewer name", "ISBN", "overall", "created_at"), "reviewer name", "ISBN", "overall", "created_at"),
    ],
)
def test_words_of_several_languages(names, user, item, rating, timestamp):
    expected = {"user": [user], "item": [item], "rating": [rating], "timestamp": [timestamp]}
    assert guess_columns(names) == expected


def test_words_of_two_parts_say_neither_but_dates_are_dates():
    found = guess_columns(["rating_date", "user_rating"])
    assert (found["rating"], found["user"], found["timestamp"]) == ([], [], ["rating_date"])


def test_an_ending_that_names_an_id_is_no_word():
    assert words_of("userid") == words_of("User-ID") == words_of("user_no") == frozenset(["user"])


def test_of_two_columns_none_is_taken():
    assert dict(guess_roles(["client", "member", "item", "rating"], {})) == {}


def test_what_was_named_is_not_guessed():
    guessed = [mend for _, mend in guess_roles(["client", "member", "sku", "rating"], {"user": "member"})]
    assert guessed == [{"item": "sku"}]


def test_a_file_without_ratings_has_clicks():
    assert [mend for _, mend in guess_roles(["client", "sku", "when"], {})] == [
        {"user": "client"},
        {"item": "sku"},
        {"clicks": True},
    ]


@pytest.fixture
def foreign():
    return pd.DataFrame(
        {"Kunde": ["a", "a", "b", "c"], "Artikel": [1, 2, 1, 2], "Sterne": [5, 1, 4, 2], "Datum": ["2024-01-01"] * 4}
    )


def test_a_frame_and_its_file_are_read_by_guesses(foreign, tmp_path):
    foreign.to_csv(tmp_path / "a.csv", index=False)
    of_frame, of_file = vr.check_frame(foreign), vr.check_file(tmp_path / "a.csv")
    named = {"user": "Kunde", "item": "Artikel", "rating": "Sterne"}
    for found in (of_frame, of_file):
        assert found.mend.items() >= named.items()
        assert len(found.log) == 4
        assert "column 'Datum' seems to have times: timestamp='Datum' where these are needed" in found.remarks


def test_usual_names_need_no_guess(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,label\n1,2,1\n2,2,0\n")
    assert vr.check_file(tmp_path / "a.csv").faults == ()


def test_columns_that_are_not_named_by_strings_are_a_fault(foreign):
    found = vr.check_frame(foreign.set_axis([0, 1, 2, 3], axis=1))
    assert found.log is None
    assert "columns must be named by strings; got 0" in found.faults[-1].what
