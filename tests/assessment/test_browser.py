"""The pages in a real browser: charts drawn, figures those of the summary, and no word to the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib import image

import verirec as vr
from parsed_page import LOADING, Page, check_estimates_table
from verirec.assessment import assess, run_demo
from verirec.assessment.demo_page import demo_page, demo_summary
from verirec.pages.writing import write_report

RATES = vr.NoiseRates(0.2, 0.1)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Run the browser with more options on a page; give what it prints."""
    program = shutil.which(os.environ.get("VERIREC_BROWSER", "")) or shutil.which("chromium")
    if program is None:
        reason = "no browser: chromium is not on PATH, nor is $VERIREC_BROWSER"
        (pytest.fail if os.environ.get("VERIREC_BROWSER_REQUIRED") else pytest.skip)(reason)

    def browse(page, *options):
        profile = tmp_path_factory.mktemp("profile")
        done = subprocess.run(
            [program, *OPTIONS, f"--user-data-dir={profile}", *options, page.as_uri()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return browse


@pytest.fixture(scope="module", params=["demo", "assessment", "region"])
def report(request, tmp_path_factory):
    """A page and its summary, written as the commands do: with a name that is HTML, where names are given."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "demo":
        demo = run_demo(0)
        page = write_report(folder, demo_page(demo), demo_summary(demo))
    else:
        world = vr.simulate.world(150, 200, observed=0.2, selectivity=1, noise_rates=RATES, random_state=4)
        given = {
            "<script>document.title='run'</script>": 0.1 + 0.8 * world.preferences,
            "blunt": 0.4 + 0.2 * world.preferences,
        }
        found = assess(world.log, given, noise_rates=RATES if request.param == "assessment" else None)
        page = found.save(folder)
    return page, json.loads((folder / "summary.json").read_text())


@pytest.fixture(scope="module")
def seen(browser, report):
    """The page as the browser has built it, which may differ from what was written."""
    return Page(browser(report[0], "--dump-dom"))


def test_charts_are_there(seen):
    pictures = seen.source.split("<svg")[1:]
    # Estimates, propensities, noise rates, wrong propensities, and the two at other noise rates.
    assert len(pictures) == 5
    for picture in pictures:
        assert "<path" in picture.partition("</svg>")[0]
        assert "<text" in picture.partition("</svg>")[0]


def test_the_browser_reads_the_figures_of_the_summary(seen, report):
    check_estimates_table(seen.tables["estimates"], report[1])


def test_nothing_ran_and_nothing_is_loaded(seen):
    seen.check_self_contained()
    titles = [data for tag, data in seen.texts if tag == "title"]
    assert titles
    assert "run" not in titles
    for _, attributes in seen.elements:
        for name in LOADING & set(attributes):
            assert not attributes[name].startswith(("http:", "https:", "//")), attributes


@pytest.mark.parametrize("size", ["1000,1600", "390,1600"], ids=["desk", "telephone"])
def test_a_picture_of_the_page_is_not_blank(browser, report, tmp_path, size):
    shot = tmp_path / "shot.png"
    browser(report[0], f"--screenshot={shot}", f"--window-size={size}", "--hide-scrollbars")
    pixels = image.imread(shot)
    assert pixels.shape[0] >= 1_000
    colours = (pixels[..., :3] * 255).round().astype(int) @ [1, 256, 65_536]
    assert len(np.unique(colours)) > 50
