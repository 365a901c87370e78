"""The assessment's page: the summary's figures, names and ids as the text they are, and nothing from afar."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

import verirec as vr
from parsed_page import IF_NOT_TASTE, KINDS, Page, as_shown, check_estimates_table
from verirec.assessment import Origin, assess, assessment_summary, conclusions, evidence
from verirec.assessment.page import assessment_page
from verirec.assessment.remarks import coverage
from verirec.exceptions import SurveyError

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)
IF_TASTE = "If liked pairs are logged at 1 to 20 times the odds of others"
EVIL = ["<script>alert(1)</script>", "a & b", '" onload="x', "$\\frac$", "cheap $5, dear $9", "</svg><b>", "-->"]
MEBIBYTE = 1 << 20


def known(world):
    """Propensities that are vouched for."""
    return vr.GivenPropensity(world.propensities)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.25, selectivity=1, noise_rates=RATES, random_state=4)


@pytest.fixture(scope="module")
def recommenders(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


def grouped():
    return vr.GroupedNoiseRates((RATES, vr.NoiseRates(0.13, 0.07)), user_groups=np.arange(SHAPE[0]) % 2)


@pytest.fixture(scope="module")
def assessments(world, recommenders):
    """One assessment of each kind."""
    log, rows = world.log, np.arange(1_000)
    users, items = log.users[rows], log.items[rows]
    sample = vr.AuditSample(users, items, world.at(users, items).true_labels)
    part = {"part": (users, items, recommenders["sharp"][users, items])}
    p = {"propensities": known(world)}
    logged = {name: (log.users, log.items, f[log.users, log.items]) for name, f in recommenders.items()}
    asked = np.random.default_rng(0).integers(np.array(SHAPE)[:, None], size=(2, 400))
    survey = vr.SurveySample(*asked, world.at(*asked).true_labels)
    scores = {"scores": 3 * recommenders["sharp"] - 1}
    several = recommenders | {"same": recommenders["sharp"], "logged": logged["blunt"]} | part
    return {
        "given rates": assess(log, recommenders, noise_rates=RATES, **p),
        "audited": assess(log, recommenders, audit=sample, truth={"sharp": 0.5, "blunt": 0.6}, **p),
        "region": assess(log, recommenders, **p),
        "nobody": assess(log, noise_rates=RATES),
        "nobody, region": assess(log),
        "grouped": assess(log, recommenders, noise_rates=grouped(), **p),
        "one": assess(log, {"sharp": recommenders["sharp"]}, noise_rates=RATES, **p),
        "part": assess(log, part, noise_rates=RATES, **p),
        "logged": assess(log, logged, noise_rates=RATES, **p),
        "many kinds": assess(log, several | scores, noise_rates=RATES, **p),
        "log alone": assess(log, recommenders),
        "surveyed": assess(log, recommenders, survey=survey, truth={"sharp": 0.5, "blunt": 0.6}),
        "surveyed and audited": assess(log, recommenders | part, survey=survey, audit=sample),
        "scores": assess(log, scores, noise_rates=RATES, **p),
    }


NAMES = [
    "given rates",
    "audited",
    "region",
    "nobody",
    "nobody, region",
    "grouped",
    "one",
    "part",
    "logged",
    "many kinds",
    "log alone",
    "surveyed",
    "surveyed and audited",
    "scores",
]
WITH_LOSSES = [name for name in NAMES if "nobody" not in name and name != "scores"]
COMPARED = [name for name in WITH_LOSSES if name not in ("one", "part")]


@pytest.fixture(scope="module")
def pages(assessments):
    return {name: Page(assessment_page(found)) for name, found in assessments.items()}


@pytest.fixture(scope="module")
def summaries(assessments):
    """As they are read back from a file."""
    return {
        name: json.loads(json.dumps(assessment_summary(found), allow_nan=False)) for name, found in assessments.items()
    }


# Whatever the assessment is


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_loaded_and_nothing_is_run(pages, name):
    pages[name].check_self_contained()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_no_larger_than_mail_and_browsers_like(pages, name):
    assert len(pages[name].source.encode()) < 3 * MEBIBYTE


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique(pages, name):
    assert len(pages[name].ids) == len(set(pages[name].ids))


@pytest.mark.parametrize("name", NAMES)
def test_what_refers_to_an_id_finds_it(pages, name):
    assert pages[name].references <= set(pages[name].ids)


@pytest.mark.parametrize("name", WITH_LOSSES)
def test_the_figures_are_those_of_the_summary(pages, summaries, name):
    check_estimates_table(pages[name].tables["estimates"], summaries[name])


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_are_those_of_the_summary(pages, summaries, name):
    rows = [[cell.strip() for cell in row] for row in pages[name].tables["comparisons"][1:]]
    expected = []
    for one, verdict in zip(summaries[name]["comparisons"], summaries[name]["verdicts"], strict=True):
        said = f"{verdict['better']} is better" if verdict["established"] else "not established"
        deciding, naive = "\n".join(as_shown(one["deciding"])), f"{one['naive']['value']:.4f}"
        expected.append([f"{one['first']} minus {one['second']}", said, deciding, verdict["basis"], naive])
    assert len(rows) >= 1
    assert rows == expected


@pytest.mark.parametrize("name", COMPARED)
def test_what_would_turn_the_corrected_differences_is_that_of_the_summary(pages, summaries, name):
    """Where there are figures on wrong propensities."""
    if "flips" not in pages[name].tables:
        assert summaries[name]["sensitivity"] is None
        return
    rows = [[cell.strip() for cell in row] for row in pages[name].tables["flips"][1:]]
    expected = []
    for one in summaries[name]["comparisons"]:
        check = "" if one["check"] is None else as_shown(one["check"])[0]
        flip = "over 20" if one["flip_factor"] is None else f"{one['flip_factor']:.2f}"
        corrected = "\n".join(as_shown(one["corrected"]))
        expected.append([f"{one['first']} minus {one['second']}", corrected, check, flip])
    assert rows == expected


@pytest.mark.parametrize("name", NAMES)
def test_rankings_are_those_of_the_summary(pages, summaries, name):
    rankings = {of: metrics for of, metrics in summaries[name]["ranking"].items() if metrics}
    if not rankings:
        assert "rankings" not in pages[name].tables
        return
    head, *rows = [[cell.strip() for cell in row] for row in pages[name].tables["rankings"]]
    assert {"AUC", "NDCG@5", "Precision@5", "Recall@5"} <= set(head)
    assert [row[0] for row in rows] == list(rankings)
    for of, *cells in rows:
        for metric, cell in zip(head[1:], cells, strict=True):
            one = rankings[of][metric.lower()]
            if summaries[name]["basis"] == "survey" and one["source"] != "survey":
                assert cell == "not settled"
                continue
            ends = [one["value"]] if one["value"] is not None else one["range"]
            value = " to ".join(f"{end:.3f}" for end in ends)
            assert cell == f"{value}\n{one['low']:.3f} to {one['high']:.3f}"


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_and_headlines_have_the_schema_of_the_interface(summaries, pages, assessments, name):
    summary, found = summaries[name], assessments[name]
    assert summary["verdicts"] == found.verdicts
    for one, comparison in zip(summary["verdicts"], found.comparisons, strict=True):
        of_range = ["not_established_from"] if one["basis"] == "range" else []
        assert list(one) == ["first", "second", "better", "established", "basis", *of_range]
        assert (one["better"] is not None) == one["established"] == (comparison.established is not None)
        assert one["basis"] in ("survey", "audit", "known propensities", "range", None)
    assert summary["basis"] == found.basis
    for recommender, one in summary["headline"].items():
        assert {"estimator", "value", "low", "high"} <= set(one)
        assert one["low"] <= one["high"]
        assert {key: one[key] for key in one if key != "estimator"} == (
            summary["recommenders"][recommender][one["estimator"]]
        )
    judged = [of for of, one in found.recommenders.items() if one.estimates is not None]
    assert list(summary["headline"]) == judged
    surveyed = 400 if "surveyed" in name else None
    delta = summary["selection"]["delta"]
    assert summary["selection"] == {"range": [0, 3], "surveyed": surveyed, "delta": delta}
    assert (delta is None) == (surveyed is None)
    if delta is not None:
        assert delta["low"] < delta["value"] < delta["high"]
        assert delta["odds_ratio"]["value"] == pytest.approx(np.exp(delta["value"]))
        assert set(delta["slopes"]) == {"activity", "popularity"}
        assert f"people log what they like {delta['odds_ratio']['value']:.2g} times as readily" in pages[name].text
        # Without noise rates it takes the labels as true, and says so.
        assert ("if the logged labels are true, people log" in pages[name].text) == (name == "surveyed")


BASES = {
    "given rates": ("known propensities", "ome-dr"),
    "audited": ("audit", "audited-dr"),
    "region": ("known propensities", "ome-dr"),
    "log alone": ("range", "range"),
    "surveyed": ("survey", "survey-ppi"),
    "surveyed and audited": ("survey", "survey-ppi"),
}


@pytest.mark.parametrize("name", BASES)
def test_the_firmest_of_what_there_is_decides(summaries, assessments, name):
    basis, headline = BASES[name]
    summary = summaries[name]
    assert summary["basis"] == basis
    assert {summary["headline"][of]["estimator"] for of in ("sharp", "blunt")} == {headline}
    (verdict,) = (one for one in summary["verdicts"] if (one["first"], one["second"]) == ("sharp", "blunt"))
    assert verdict["basis"] == basis
    (comparison,) = (one for one in summary["comparisons"] if (one["first"], one["second"]) == ("sharp", "blunt"))
    first, second = (summary["headline"][of] for of in ("sharp", "blunt"))
    if first["value"] is not None:
        assert comparison["deciding"]["value"] == pytest.approx(first["value"] - second["value"], abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_conclusions_and_warnings_are_all_there(pages, assessments, name):
    for sentence in [*conclusions(assessments[name]), *assessments[name].warnings]:
        assert " ".join(sentence.split()) in pages[name].text


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_concludes_and_warns_as_the_page_does(summaries, assessments, name):
    assert summaries[name]["conclusions"] == conclusions(assessments[name])
    assert summaries[name]["warnings"] == list(assessments[name].warnings)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_propensities_assume_is_on_every_page(pages, assessments, name):
    assert f"These are right if {assessments[name].propensities.assumption}." in pages[name].text


def test_the_same_assessment_is_the_same_page_to_the_letter(assessments, pages):
    assert assessment_page(assessments["one"]) == pages["one"].source


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_has_the_schema_of_the_interface(summaries, name):
    summary = summaries[name]
    published = ("truth", "noise_rates", "propensity", "selection", "recommenders", "headline", "verdicts")
    assert set(published) <= set(summary)
    assert (summary["truth"] is None) == (name not in ("audited", "surveyed"))
    for recommender in summary["recommenders"].values():
        for one in recommender.values():
            assert {"value", "low", "high"} <= set(one)
            assert one["low"] <= one["high"]
            ends = one["range"] if one["value"] is None else [one["value"]]
            assert one["low"] <= min(ends) <= max(ends) <= one["high"]


@pytest.mark.parametrize("name", NAMES)
def test_the_summarys_numbers_are_those_of_the_assessment(summaries, assessments, name):
    summary, found = summaries[name], assessments[name]
    for numbers, one in zip(summary["comparisons"], found.comparisons, strict=True):
        assert (numbers["first"], numbers["second"], numbers["established"]) == (one.first, one.second, one.established)
        assert numbers["naive"] == one.naive.to_dict()
        assert numbers["corrected"] == one.corrected.to_dict()
        assert numbers["check"] == (None if one.check is None else one.check.to_dict())
        assert numbers["flip_factor"] == one.flip_factor
        assert (numbers["deciding"], numbers["basis"]) == (one.deciding.to_dict(), one.basis)
    assert summary["liked"] == {"as_logged": found.liked_as_logged, "corrected": found.liked_corrected.to_dict()}
    assert summary["pairs_to_ask_about"] == (None if found.plan is None else len(found.plan))
    assert (summary["suspect_labels_expected"] is None) == isinstance(found.noise, vr.NoiseRegion)
    if found.suspects is not None:
        assert summary["suspect_labels_expected"] == pytest.approx(found.suspects.probabilities.sum(), rel=1e-12)
        assert summary["suspect_labels_expected"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_has_the_surfaces_and_the_propensity_ranges(summaries, assessments, name):
    found, numbers = assessments[name].sensitivity, summaries[name]["sensitivity"]
    assert (numbers is None) == (found is None) == (name in {"nobody", "nobody, region", "part", "logged", "scores"})
    if found is None:
        return
    assert numbers["propensity_ranges"] == {
        recommender: [list(one) for one in ranges] for recommender, ranges in found.propensity_ranges.items()
    }
    # A reader's program can find the estimate at any rates from the surface's three numbers.
    assert numbers["surfaces"].keys() == found.surfaces.keys()
    for recommender, of in numbers["surfaces"].items():
        at = of["t0"] + (of["t1"] - 0.1 * of["t2"]) / (1 - 0.2 - 0.1)
        assert at == pytest.approx(float(found.surfaces[recommender].at(0.2, 0.1)), rel=1e-12)
        if name == "given rates":
            assert at == pytest.approx(summaries[name]["recommenders"][recommender]["ome-dr"]["value"], rel=1e-9)


def test_an_infinite_flip_factor_is_null_in_the_summary_and_over_20_on_the_page(assessments, summaries, pages):
    one = assessments["given rates"].comparisons[0]
    found = replace(assessments["given rates"], comparisons=[replace(one, flip_factor=float("inf"))])
    assert json.loads(json.dumps(assessment_summary(found), allow_nan=False))["comparisons"][0]["flip_factor"] is None
    assert Page(assessment_page(found)).tables["flips"][1][-1].strip() == "over 20"
    assert summaries["given rates"]["comparisons"][0]["flip_factor"] > 1
    assert pages["given rates"].tables["flips"][1][-1].strip() == f"{one.flip_factor:.2f}"


def test_corrections_that_disagree_are_said_to_in_the_table(assessments):
    one = assessments["given rates"].comparisons[0]
    against = replace(one, check=vr.Estimate(-one.check.value, 0.01, (0.0, 1.0)))
    found = replace(assessments["given rates"], comparisons=[against])
    said = Page(assessment_page(found)).tables["comparisons"][1][:2]
    assert said == ["sharp minus blunt", "not established, the corrections disagree"]
    assert assessment_summary(found)["comparisons"][0]["established"] is None


def test_the_table_of_comparisons_says_what_its_columns_are(pages):
    for table, head in (
        ("comparisons", ["First minus second", "Verdict", "Difference, 95% interval", "Rests on", "As logged"]),
        ("flips", ["First minus second", "Corrected", "Second correction", "Could flip at"]),
    ):
        assert [cell.strip() for cell in pages["given rates"].tables[table][0]] == head


@pytest.mark.parametrize("name", NAMES)
def test_the_share_of_liked_pairs_is_told_with_its_interval_or_as_a_range(pages, summaries, name):
    as_logged, corrected = (summaries[name]["liked"][key] for key in ("as_logged", "corrected"))
    if corrected["value"] is None:
        shown = " to ".join(f"{100 * end:.1f}%" for end in corrected["range"])
    else:
        low, high = (f"{100 * corrected[end]:.1f}%" for end in ("low", "high"))
        shown = f"{100 * corrected['value']:.1f}% ({low} to {high})"
    by = {"survey": "By the survey", "range": IF_TASTE}.get(summaries[name]["basis"], "Corrected")
    said = f"{100 * as_logged:.1f}% of the logged labels are positive. {by}, {shown} of all pairs are liked."
    assert said in pages[name].text


# Kind by kind


@pytest.mark.parametrize("name", WITH_LOSSES)
def test_the_plot_has_the_kinds_of_the_table(pages, summaries, name):
    written = set(pages[name].plot_texts)
    headlines = {one["estimator"] for one in summaries[name]["headline"].values()} & set(KINDS)
    assert {*summaries[name]["headline"], "as logged", IF_NOT_TASTE, *(KINDS[one] for one in headlines)} <= written
    assert ("truth" in written) == (name in ("audited", "surveyed"))


def test_given_and_audited_rates_are_told_with_their_intervals(pages, summaries):
    assert "20.0% of the likes are logged as dislikes (20.0% to 20.0%)" in pages["given rates"].text
    assert "From: given." in pages["given rates"].text
    rates = summaries["audited"]["noise_rates"]
    (low, high), text = rates["intervals"]["rho10"], pages["audited"].text
    assert f"{100 * rates['rho10']:.1f}% of the dislikes as likes ({100 * low:.1f}% to {100 * high:.1f}%)" in text
    assert "From: an audit of 1,000 pairs." in text


@pytest.mark.parametrize("name", ["region", "nobody, region"])
def test_a_region_is_told_with_what_to_do_next(pages, summaries, assessments, name):
    most = {rate: summaries[name]["noise_rates"][rate][1] for rate in ("rho01", "rho10")}
    assert "If noise is the same for all pairs of a class, at most" in pages[name].text
    assert f"at most {100 * most['rho01']:.1f}% of the likes are logged as dislikes" in pages[name].text
    assert f"at most {100 * most['rho10']:.1f}% of the dislikes as likes" in pages[name].text
    found = assessments[name]
    what = "pairs, chosen by verirec plan" if found.recommenders else "the logged pairs"
    assert (found.plan is None) == (name == "region")
    assert found.plan is None or re.search(rf"An? (survey|audit) of {len(found.plan):,} (of )?{what}", pages[name].text)
    assert "Labels that are probably wrong" not in pages[name].text


def test_a_page_without_recommenders_speaks_of_selection_and_noise_only(pages):
    text = pages["nobody"].text
    assert "How selective the log is" in text
    assert "How noisy the labels are" in text
    assert "Labels that are probably wrong" in text
    for title in ("How large their losses are", "How well they rank", "Which one is better", "What if the assumptions"):
        assert title not in text
        assert title in pages["given rates"].text
    assert not {"estimates", "comparisons", "rankings"} & set(pages["nobody"].tables)


def test_grouped_rates_are_a_table(pages, summaries):
    assert summaries["grouped"]["noise_rates"]["groups"] == [
        {"rho01": 0.2, "rho10": 0.1},
        {"rho01": 0.13, "rho10": 0.07},
    ]
    rows = [[cell.strip() for cell in row] for row in pages["grouped"].tables[None]]
    assert ["0", "20.0%", "10.0%"] in rows
    assert ["1", "13.0%", "7.0%"] in rows


def test_predictions_of_a_part_are_said_to_be_such(pages, assessments):
    found = assessments["part"]
    words = coverage(found, found.recommenders["part"])
    assert words.startswith("some of the logged pairs, 1,000 of")
    assert f"The predictions of part cover {words}." in pages["part"].text
    assert "The predictions of" not in pages["given rates"].text


def test_suspects_on_the_page_are_the_most_suspect(pages, assessments):
    frame = assessments["given rates"].suspects.to_frame(20)
    rows = [[cell.strip() for cell in row] for row in pages["given rates"].tables[None]]
    for row in frame.to_dict("records"):
        said = {1: "like", 0: "dislike"}[row["label"]]
        assert [str(row["user"]), str(row["item"]), said, f"{100 * row['probability_wrong']:.1f}%"] in rows
    expected = assessments["given rates"].suspects.probabilities.sum()
    assert f"some {expected:,.0f} wrong labels are to be expected" in pages["given rates"].text


def test_propensity_ranges_are_those_of_the_assessment(pages, assessments):
    rows = [[cell.strip() for cell in row] for row in pages["given rates"].tables[None]]
    for name, ranges in assessments["given rates"].sensitivity.propensity_ranges.items():
        for gamma, low, high in ranges:
            assert [name, str(gamma), f"{low:.4f}", f"{high:.4f}"] in rows


def test_surfaces_are_the_estimates_at_other_rates(pages, world, recommenders):
    rows = [[cell.strip() for cell in row] for row in pages["given rates"].tables[None]]
    both = [
        vr.estimate(f, world.log, propensities=known(world), noise_rates=vr.NoiseRates(0.3, 0.2))["ome-dr"].value
        for f in recommenders.values()
    ]
    assert ["0.3", "0.2", *(f"{value:.4f}" for value in both)] in rows


# What comes from others is text


@pytest.fixture(scope="module")
def evil(world):
    """The page of a log and of recommenders that are named with malice, the first one clearly the best."""
    log = world.log
    named = vr.FeedbackLog.from_arrays(
        log.users,
        log.items,
        log.labels,
        n_users=SHAPE[0],
        n_items=SHAPE[1],
        user_ids=[f"{EVIL[user % len(EVIL)]} {user}" for user in range(SHAPE[0])],
        item_ids=[f"{EVIL[item % len(EVIL)]} {item}" for item in range(SHAPE[1])],
    )
    given = dict.fromkeys(EVIL, 0.2 + 0.6 * world.preferences) | {"other": np.full(SHAPE, 0.5)}
    found = assess(named, given, noise_rates=RATES, propensities=known(world), truth=dict.fromkeys(given, 0.5))
    return found, Page(assessment_page(found))


@pytest.fixture(scope="module")
def told(evil):
    """The same page with comparisons few enough for a sentence each."""
    found, _ = evil
    few = [one for one in found.comparisons if one.second == "other"]
    return Page(assessment_page(replace(found, comparisons=few)))


def test_names_and_ids_make_no_elements(evil, told):
    for page in (evil[1], told):
        page.check_self_contained()
        assert "b" not in page.tags
        assert "onload" not in {name for _, attributes in page.elements for name in attributes}


@pytest.mark.parametrize("name", EVIL)
def test_a_name_is_shown_as_the_text_it_is_in_tables_plots_and_sentences(evil, told, name):
    _, page = evil
    assert name in [row[0] for row in page.tables["estimates"]]
    assert [f"{name} minus other", f"{name} is better"] in [row[:2] for row in page.tables["comparisons"]]
    assert name in [row[0] for row in page.tables["rankings"]]
    assert f"{name} is better than other" in told.text
    assert " ".join(name.split()) in page.plot_texts
    # An attribute holds it whole, too, and so does what is told on hover.
    told_of = [attributes["aria-label"] for _, attributes in page.elements if "aria-label" in attributes]
    assert any(one.startswith(f"{name}, as logged: ") for one in told_of)
    assert name in {attributes.get("data-recommender") for _, attributes in page.elements}


def test_ids_are_shown_as_the_text_they_are(evil):
    found, page = evil
    shown = {(row[0], row[1]) for row in page.tables[None] if len(row) == 4}
    frame = found.suspects.to_frame(20)
    assert set(zip(frame["user"], frame["item"], strict=True)) <= shown


def test_a_warning_is_shown_as_the_text_it_is(assessments):
    page = Page(assessment_page(replace(assessments["nobody"], warnings=("<script>x</script>",))))
    page.check_self_contained()
    assert "<script>x</script>" in page.text


def test_a_long_name_is_whole_in_the_table_and_short_in_the_plot(world, recommenders):
    name = "very " * 30 + "long"
    page = Page(assessment_page(assess(world.log, {name: recommenders["sharp"]}, noise_rates=RATES)))
    assert name in [row[0] for row in page.tables["estimates"]]
    assert name[:31] + "…" in page.plot_texts


@pytest.mark.parametrize("name", ["推荐", "🎬 films", "नमस्ते"])
def test_a_name_in_any_script_is_no_reason_to_warn(world, recommenders, name):
    page = Page(assessment_page(assess(world.log, {name: recommenders["sharp"]}, noise_rates=RATES)))
    assert name in page.plot_texts


# Figures on hover and by the keyboard


@pytest.mark.parametrize("name", ["surveyed", "region", "log alone"])
def test_a_figures_marks_say_what_they_are_to_who_points_at_them_or_tabs_to_them(pages, summaries, name):
    page, summary = pages[name], summaries[name]
    marks = [attributes for _, attributes in page.elements if "aria-label" in attributes and "tabindex" in attributes]
    assert {(one["tabindex"], one["role"]) for one in marks} == {("0", "img")}
    said = [one["aria-label"] for one in marks]
    titles = [data for tag, data in page.texts if tag == "title"]
    assert set(said) <= set(titles)
    for of, one in summary["headline"].items():
        value, interval = as_shown(one)
        kind = KINDS.get(one["estimator"], IF_NOT_TASTE)
        assert f"{of}, {kind}: {value} (interval {interval})" in said
        if summary["truth"]:
            assert f"{of}, truth: {summary['truth'][of]:.4f}" in said


# The foot


def test_the_foot_has_date_and_version_and_where_it_comes_from_if_that_is_known(assessments, pages):
    foot = pages["one"].text[-400:]
    today = date.today().isoformat()
    assert f"{today}, verirec {vr.__version__}. The same figures are in summary.json" in foot
    named = replace(assessments["one"], origin=Origin("my <log>.csv", "verirec assess 'my <log>.csv' --out x"))
    page = Page(assessment_page(named))
    page.check_self_contained()
    assert f"my <log>.csv, {today}, verirec {vr.__version__}." in page.text
    assert page.text.endswith("verirec assess 'my <log>.csv' --out x")


# Odd cases


@pytest.mark.parametrize("propensity", [0.5, 0.25])
def test_equal_propensities_can_be_drawn(world, recommenders, propensity):
    p = np.full(SHAPE, propensity)
    page = Page(assessment_page(assess(world.log, recommenders, noise_rates=RATES, propensities=p)))
    assert "how likely a pair is to be logged" in page.plot_texts


def test_two_equal_recommenders_can_be_drawn(world, recommenders):
    given = {"one": recommenders["sharp"], "other": recommenders["sharp"]}
    page = Page(assessment_page(assess(world.log, given, noise_rates=RATES)))
    assert ["one minus other", "not established"] in [row[:2] for row in page.tables["comparisons"]]
    assert "is better than" not in page.text


def test_a_recommender_whose_loss_no_label_changes_can_be_drawn(world):
    page = Page(assessment_page(assess(world.log, {"half": np.full(SHAPE, 0.5)}, noise_rates=RATES)))
    values = [row[2].strip() for row in page.tables["estimates"][1:]]
    half = f"{np.log(2):.4f}"
    assert values == [half, half, f"{half} to {half}"]


def test_many_recommenders_fit_on_one_page(world):
    random = np.random.default_rng(0)
    given = {f"number {place}": random.uniform(0.2, 0.8, SHAPE) for place in range(12)}
    page = Page(assessment_page(assess(world.log, given, noise_rates=RATES)))
    assert len(page.tables["estimates"]) == 1 + 3 * 12
    assert len(page.tables["comparisons"]) == 1 + 66
    assert len(page.source.encode()) < 3 * MEBIBYTE


@pytest.mark.parametrize("truth", [{"sharp": 0.5}, {"else": 0.5}])
def test_a_truth_that_is_known_of_some_only_is_shown_of_these(world, recommenders, truth):
    found = assess(world.log, recommenders, noise_rates=RATES, truth=truth)
    page = Page(assessment_page(found))
    shown = {row[0].strip(): row[1].strip() for row in page.tables["estimates"][1:] if row[0].strip()}
    assert shown == {name: f"{truth[name]:.4f}" if name in truth else "" for name in recommenders}
    assert assessment_summary(found)["truth"] == truth


@pytest.mark.parametrize("rates", [(0.05, 0.7), (0.7, 0.05)])
def test_noise_rates_that_do_not_fit_the_log_are_said_not_to(world, recommenders, rates):
    found = assess(world.log, recommenders, noise_rates=vr.NoiseRates(*rates), propensities=known(world))
    low, high = found.liked_corrected.interval
    assert high < 0 or low > 1
    text = Page(assessment_page(found)).text
    assert "These noise rates do not fit this log" in text
    assert "No corrected figure below can be trusted." in text
    # The share is shown as it is, not cut to what could be.
    shown = [f"{100 * value:.1f}%" for value in (found.liked_corrected.value, low, high)]
    assert f"Corrected, {shown[0]} ({shown[1]} to {shown[2]}) of all pairs are liked." in text


def test_an_assessment_goes_on_where_delta_cannot_be_told(world, recommenders, monkeypatch):
    def refuse(*_, **__):
        raise SurveyError("needs surveyed pairs that nobody logged; got none")

    monkeypatch.setattr(evidence, "selection_strength", refuse)
    asked = np.random.default_rng(0).integers(np.array(SHAPE)[:, None], size=(2, 200))
    found = assess(world.log, recommenders, survey=vr.SurveySample(*asked, world.at(*asked).true_labels))
    assert assessment_summary(found)["selection"]["delta"] is None
    assert "times as readily" not in assessment_page(found)


def test_what_only_matters_without_a_survey_is_folded_away_with_one(pages):
    for name, page in pages.items():
        assert ("assumptions" in page.ids) == (name in ("surveyed", "surveyed and audited"))


@pytest.mark.parametrize("name", COMPARED)
def test_cells_of_two_lines_are_explained(pages, name):
    assert "the second line is its 95% interval" in pages[name].text


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_on_the_page_speaks_in_flags(pages, name):
    assert not re.search(r"(?<![-\w])--[a-z]", pages[name].text)


def test_what_auto_tried_is_on_the_page():
    small = vr.simulate.world(40, 30, observed=0.4, noise_rates=RATES, random_state=0)
    found = assess(small.log, train=("auto",), noise_rates=RATES)
    search = assessment_summary(found)["searches"]["auto"]
    page = assessment_page(found)
    assert "How auto was found" in page
    assert f"{len(search['trials'])} candidates were tried" in page
    assert page.count("<td>chosen</td>") == 1
    assert json.loads(json.dumps(search)) == search
