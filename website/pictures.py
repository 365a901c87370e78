"""Draws the pictures of docs/concepts.md and README's of the demo's page: `python -m website.pictures`, a few seconds.

All figures are computed. The page's picture needs chromium, or the program that $VERIREC_BROWSER names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

import verirec as vr
from verirec.pages.figures import COLOURS, TRUTH_COLOUR, make_figure, plain_axes

FOLDER = Path(__file__).parents[1] / "docs" / "concepts"
RATES = vr.NoiseRates(rho01=0.2, rho10=0.1)
LOGS = 100
"""Logs that each row of the second picture rests on."""
ASKED = 300
PAGE_SIZE = (900, 610)


def log_of_a_world(figure: Figure) -> None:
    """Draw what people prefer, what they rate of it, and what they say: 40 users, 60 items."""
    world = vr.simulate.world(40, 60, observed=0.25, selectivity=3, noise_rates=RATES, random_state=4)
    users, items = (np.argsort(-world.preferences.mean(axis)) for axis in (1, 0))
    truth, rated, said = (one[np.ix_(users, items)] for one in (world.true_labels, world.observed, world.noisy_labels))
    wrong = rated & (truth != said)
    liked = ListedColormap(["#f3d9b8", COLOURS[0]])
    panels = (
        (f"what people prefer: {truth.mean():.0%} liked", truth, None),
        (f"what they rate: {truth[rated == 1].mean():.0%} liked", truth, rated),
        (f"what they say: {wrong.sum() / rated.sum():.0%} wrong", said, rated),
    )
    for axes, (title, labels, shown) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.imshow(np.ma.masked_where(shown == 0, labels) if shown is not None else labels, cmap=liked, vmin=0, vmax=1)
        axes.set_title(title, fontsize=10)
        axes.set(xticks=[], yticks=[], xlabel="items", ylabel="users")
        if labels is said:
            axes.plot(*np.nonzero(wrong)[::-1], "x", color=TRUTH_COLOUR, markersize=3.5, markeredgewidth=1)


def estimates_of_logs(figure: Figure) -> None:
    """Draw what several estimators say of one recommender, over many logs of like worlds, less the truth."""
    labels = {
        "naive": "at face value (naive)",
        "dr": "corrected for selection (dr)",
        "ome-dr": "and for noise (ome-dr)",
        "survey-ppi": f"with {ASKED} random pairs asked (survey-ppi)",
    }
    panels = (("user and item decide what is rated", 0.0), ("taste decides it too", 2.0))
    both: Any = figure.subplots(1, 2, sharey=True, sharex=True)
    for axes, (title, selectivity) in zip(both, panels, strict=True):
        off = np.array([errors_of_log(selectivity, seed, list(labels)) for seed in range(LOGS)])
        for place, values in enumerate(off.T):
            jitter = np.random.default_rng(place).uniform(-0.25, 0.25, len(values))
            axes.plot(values, place + jitter, ".", color=COLOURS[place], markersize=4, alpha=0.6)
        axes.axvline(0, color=TRUTH_COLOUR)
        axes.set(yticks=range(len(labels)), yticklabels=labels.values(), title=title, xlabel="estimate minus truth")
        axes.title.set_fontsize(10)
        plain_axes(axes, grid="x")
    both[0].invert_yaxis()


def errors_of_log(selectivity: float, seed: int, estimators: list[str]) -> list[float]:
    """Return how far estimates of a log loss are from the truth."""
    world = vr.simulate.world(120, 180, observed=0.25, selectivity=selectivity, noise_rates=RATES, random_state=seed)
    predictions = 0.15 + 0.7 * world.preferences
    users, items = np.random.default_rng(seed).integers([[120], [180]], size=(2, ASKED))
    survey = vr.SurveySample(users, items, world.at(users, items).true_labels)
    found = vr.estimate(predictions, world.log, noise_rates=RATES, survey=survey, estimators=estimators)
    truth = world.true_inaccuracy(predictions)
    return [found[name].value - truth for name in estimators]


def page_of_the_demo(file: Path) -> None:
    """Take a picture of how the demo's page begins."""
    from verirec.assessment import run_demo
    from verirec.assessment.demo_page import demo_page

    browser = shutil.which(os.environ.get("VERIREC_BROWSER", "")) or shutil.which("chromium")
    if browser is None:
        raise SystemExit("no browser: chromium is not on PATH, nor is $VERIREC_BROWSER")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "report.html").write_text(demo_page(run_demo()))
        picture = Path(folder, "page.png")
        size = ",".join(map(str, PAGE_SIZE))
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/browser",
        ]
        page = Path(folder, "report.html").as_uri()
        command = [browser, *flags, f"--window-size={size}", f"--screenshot={picture}", page]
        subprocess.run(command, check=True, capture_output=True)
        Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(file, optimize=True)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw, height in (("log", log_of_a_world, 2.6), ("estimates", estimates_of_logs, 2.8)):
        figure = make_figure(draw, height=height, width=9.0)
        FigureCanvasAgg(figure)
        figure.savefig(FOLDER / f"{name}.png", dpi=130, metadata={"Software": None})
    page_of_the_demo(FOLDER / "page.png")


if __name__ == "__main__":
    main()
