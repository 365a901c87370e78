"""The demo: the log prefers the worse recommender, and page and summary say the same, with nothing loaded from afar."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from verirec.estimators import Estimate
from verirec.experiments import Demo, run_demo
from verirec.reports import demo_page, demo_summary

FROM_LOG, FROM_SURVEY = "learnt from the log", "learnt from a survey"


@pytest.fixture(scope="module")
def demos():
    return [run_demo(seed) for seed in range(10)]


@pytest.fixture(scope="module")
def demo(demos):
    return demos[0]


@pytest.fixture(scope="module")
def page(demo):
    return demo_page(demo)


class Elements(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("seed", range(10))
def test_the_log_prefers_its_own_pupil_and_the_truth_the_surveys_whatever_the_seed(demos, seed):
    demo = demos[seed]
    assert demo.estimates[FROM_LOG]["naive"].value < demo.estimates[FROM_SURVEY]["naive"].value
    assert demo.truth[FROM_SURVEY] < demo.truth[FROM_LOG]
    assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_SURVEY)


@pytest.mark.long
def test_the_claim_of_the_page_holds_for_two_hundred_seeds():
    for seed in range(10, 210):
        demo = run_demo(seed)
        assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_SURVEY), seed


def test_the_recommenders_are_judged_on_ratings_that_none_has_learnt_from(demo):
    assert len(demo.judged_on) == round(0.2 * len(demo.world.log))
    assert f"over {len(demo.judged_on):,} logged ratings that neither recommender has seen" in " ".join(
        demo_page(demo).split()
    )


def test_the_naive_intervals_are_apart_so_that_more_of_the_same_data_would_not_help(demos):
    for demo in demos:
        assert demo.estimates[FROM_LOG]["naive"].interval[1] < demo.estimates[FROM_SURVEY]["naive"].interval[0]


def test_the_same_seed_gives_the_same_demo_to_the_letter(demo, page):
    again = run_demo(0)
    assert demo_summary(again) == demo_summary(demo)
    assert demo_page(again) == page
    assert demo_summary(run_demo(1)) != demo_summary(demo)


# The summary.


def test_the_summary_has_the_published_schema_and_is_valid_json(demo):
    summary = json.loads(json.dumps(demo_summary(demo), allow_nan=False))
    assert set(summary) == {"truth", "noise_rates", "propensity", "recommenders"}
    assert summary["truth"].keys() == summary["recommenders"].keys() == {FROM_LOG, FROM_SURVEY}
    assert summary["noise_rates"] == {"rho01": 0.2, "rho10": 0.1, "source": "true"}
    for recommender in summary["recommenders"].values():
        assert set(recommender) == {"naive"}
        assert set(recommender["naive"]) == {"value", "low", "high"}
        assert recommender["naive"]["low"] < recommender["naive"]["value"] < recommender["naive"]["high"]


def test_the_summary_describes_the_world_it_was_made_in(demo):
    propensity, world = demo_summary(demo)["propensity"], demo.world
    assert propensity["mean"] == pytest.approx(world.propensities.mean())
    assert propensity["mean"] == pytest.approx(0.08, abs=1e-3)
    assert 0 < propensity["least"] < propensity["mean"] < propensity["most"] < 1
    assert all(0 < truth < np.log(2) + 0.1 for truth in demo.truth.values())


# The page.


def test_the_page_loads_nothing_and_runs_nothing(page):
    elements = Elements(page).found
    tags = {tag for tag, _ in elements}
    assert {"html", "body", "svg", "table"} <= tags
    assert not tags & {"script", "link", "iframe", "object", "embed", "img", "base", "form", "image"}
    for tag, attributes in elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}:
                assert value.startswith("#"), (tag, name, value)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", page)


def test_ids_in_the_page_are_unique_and_what_refers_to_them_finds_them(page):
    elements = Elements(page).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = {value[1:] for _, attributes in elements for name, value in attributes.items() if "href" in name}
    referred |= set(re.findall(r"url\(#([^)]+)\)", page))
    assert referred <= set(ids)


def text_of(cells):
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in cells]


def test_the_figures_of_the_page_are_those_of_the_summary(demo, page):
    summary = demo_summary(demo)
    head, *rows = re.findall(r"<tr>(.*?)</tr>", page, flags=re.DOTALL)
    titles = text_of(re.findall(r"<th.*?</th>", head, flags=re.DOTALL))
    assert len(rows) == len(summary["recommenders"])
    for row in rows:
        shown = dict(zip(titles, text_of(re.findall(r"<td.*?</td>", row, flags=re.DOTALL)), strict=True))
        name = shown["Recommender"]
        naive = summary["recommenders"][name]["naive"]
        assert shown == {
            "Recommender": name,
            "Naive estimate": f"{naive['value']:.4f}",
            "95% interval": f"{naive['low']:.4f} to {naive['high']:.4f}",
            "Truth": f"{summary['truth'][name]:.4f}",
        }


def test_the_words_of_the_page_are_true_of_the_world(demo, page):
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    world = demo.world
    assert f"The log prefers the recommender {demo.preferred_by_log}." in text
    assert f"The better one is the recommender {demo.truly_better}." in text
    assert "Choosing by the log picks the wrong one." in text
    assert f"{100 * world.log.labels.mean():.0f}% of the logged labels are positive" in text
    assert f"{100 * world.true_labels.mean():.0f}% of all pairs are truly liked" in text
    assert "20% of the likes are logged as dislikes, and 10% of the dislikes as likes" in text
    assert "2,000 users and 600 items" in text
    assert f"{len(world.log):,} pairs ({100 * world.log.density:.1f}% of all) are in the log" in text


def test_a_demo_in_which_the_log_is_right_says_so(demo):
    estimates = dict.fromkeys("ab", demo.estimates[FROM_LOG])
    right = Demo(demo.world, demo.judged_on, truth={"a": 0.5, "b": 0.6}, estimates=estimates)
    assert "Here the log happens to pick the right one." in " ".join(demo_page(right).split())


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "a & b",
        "plain",
        "$\\frac$",
        "cheap $5, dear $9",
    ],
)
def test_a_name_is_shown_as_the_text_it_is_in_the_table_and_in_the_plot(demo, name):
    estimate = Estimate(0.5, 0.1, (0.3, 0.7))
    page = demo_page(Demo(demo.world, demo.judged_on, truth={name: 0.6}, estimates={name: {"naive": estimate}}))
    assert "script" not in {tag for tag, _ in Elements(page).found}
    assert page.count(f">{html.escape(name, quote=False)}<") == 4  # two sentences, the table, the plot
