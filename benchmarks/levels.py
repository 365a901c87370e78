"""What a survey does for a recommender's probabilities, on Coat and on KuaiRec's block.

    .venv/bin/python benchmarks/levels.py --data FOLDER [--seeds 12] [--surveyed 200] [--pictures FOLDER]

Trained on self-selected ratings, of which a fifth of the positive labels and a tenth of the negative ones are flipped;
rates are not given. Of random pairs that were not trained on, some are surveyed, with clean labels, and the others
tested on. Log loss before and after `calibrated`, mean over seeds with its standard error, and that of the difference;
expected calibration error of 20 bins; what the level alone does (slope 1), and Platt's curve without a prior. Noisy:
the same with answers that are flipped as the log's are, and corrected. One thread.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.special import expit

import verirec as vr
from verirec.estimation.curves import LabelledScores, levelled_curve, platt_curve
from verirec.pages.figures import COLOURS, MARKERS, make_figure, plain_axes, write_pictures
from verirec.studies.table2.problems import load_problem

RATES = vr.NoiseRates(0.2, 0.1)
BINS = 10


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("| data | model | before | level alone | Platt, no prior | calibrated | noisy answers | gain (se) | ECE |")
    print("|---|---|---|---|---|---|---|---|---|")
    drawn: dict[str, Any] = {}
    for name in ("coat", "kuairec"):
        problem = load_problem(name, options.data)
        for model in ("constants", "mf", "features"):
            if model == "features" and not problem.has_features:
                continue
            runs = list(_runs(problem, model, options.seeds, options.surveyed))
            drawn[f"{name}, {model}"] = runs
            print(_row(name, model, runs), flush=True)
    if options.pictures:
        chosen = {"Coat": drawn["coat, mf"], "KuaiRec's block": drawn["kuairec, mf"]}
        write_pictures(
            options.pictures, "levels", make_figure(lambda figure: _draw(figure, chosen), height=3.9, width=8)
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with Coat and KuaiRec")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--surveyed", type=int, default=200, help="pairs asked about")
    parser.add_argument("--pictures", help="folder for levels.png and levels.svg")
    return parser.parse_args()


def _runs(problem: Any, model: str, seeds: int, surveyed: int) -> Iterator[dict[str, Any]]:
    """Train once a seed; give labels and probabilities of the pairs tested on, by way of calibration."""
    logged = np.zeros(problem.train.shape, bool)
    logged[problem.train.users, problem.train.items] = True
    pairs = problem.random.select(~logged[problem.random.users, problem.random.items])
    for seed in range(seeds):
        random = np.random.default_rng([seed, 20])
        asked = np.zeros(len(pairs), bool)
        asked[random.choice(len(pairs), surveyed, replace=False)] = True
        ask, test = pairs.select(asked), pairs.select(~asked)
        log = problem.noisy(RATES, seed)
        recommender = vr.methods.MF(model=model, random_state=seed).fit(log).recommender_
        survey = vr.SurveySample(ask.users, ask.items, ask.labels)
        answers = RATES.observe(ask.labels, random.random(surveyed))
        noisy = vr.SurveySample(ask.users, ask.items, answers, noisy=True)
        z, on_asked = (_logits(recommender, part) for part in (test, ask))
        rows = LabelledScores(on_asked, ask.labels.astype(float), np.ones(surveyed))
        yield {
            "labels": test.labels,
            "before": expit(z),
            "level alone": levelled_curve(rows, both_classes=False).probabilities(z),
            "Platt, no prior": platt_curve(rows).probabilities(z),
            "calibrated": recommender.calibrated(survey, exclude=log).calibration.probabilities(z),
            "noisy answers": recommender.calibrated(noisy, noise_rates=RATES).calibration.probabilities(z),
        }


def _logits(recommender: Any, log: vr.FeedbackLog) -> Any:
    f = recommender.predict(recommender.user_ids.ids(log.users), recommender.item_ids.ids(log.items))
    return np.log(f) - np.log1p(-f)


def _row(name: str, model: str, runs: list[dict[str, Any]]) -> str:
    ways = [way for way in runs[0] if way != "labels"]
    losses = {way: np.array([_log_loss(run[way], run["labels"]) for run in runs]) for way in ways}
    errors = {way: np.mean([_calibration_error(run[way], run["labels"]) for run in runs]) for way in ways}
    gain = losses["before"] - losses["calibrated"]
    told = " | ".join(f"{losses[way].mean():.4f} ({_se(losses[way]):.4f})" for way in ways)
    ece = f"{errors['before']:.3f} to {errors['calibrated']:.3f}"
    return f"| {name} | {model} | {told} | {gain.mean():.4f} ({_se(gain):.4f}) | {ece} |"


def _se(values: Any) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def _log_loss(f: Any, labels: Any) -> float:
    return float(-np.mean(np.where(labels == 1, np.log(f), np.log1p(-f))))


def _calibration_error(f: Any, labels: Any, bins: int = 20) -> float:
    """Mean distance of liked and predicted, over bins of as many pairs each."""
    parts = np.array_split(np.argsort(f, kind="stable"), bins)
    return float(sum(len(part) * abs(f[part].mean() - labels[part].mean()) for part in parts) / len(f))


def _draw(figure: Figure, chosen: dict[str, list[dict[str, Any]]]) -> None:
    """Draw what is predicted against what is liked, of bins with as many pairs each, all seeds together."""
    for axes, (title, runs) in zip(figure.subplots(1, len(chosen)), chosen.items(), strict=True):
        most = 0.0
        for place, way in enumerate(("before", "calibrated")):
            f, labels = (np.concatenate([run[key] for run in runs]) for key in (way, "labels"))
            parts = np.array_split(np.argsort(f, kind="stable"), BINS)
            x, y = (np.array([values[part].mean() for part in parts]) for values in (f, labels))
            most = max(most, x.max(), y.max())
            told = {"before": "before", "calibrated": "after a survey"}[way]
            axes.plot(x, y, MARKERS[place] + "-", color=COLOURS[place], markersize=5, linewidth=1.2, label=told)
        most *= 1.06
        axes.plot([0, most], [0, most], color="#888888", linewidth=1, linestyle="--", zorder=1, label="exact")
        axes.set(xlim=(0, most), ylim=(0, most), title=title, xlabel="Predicted probability", aspect="equal")
        plain_axes(axes, grid="both")
    figure.axes[0].set_ylabel("Share liked")
    figure.axes[0].legend(frameon=False, loc="upper left")


if __name__ == "__main__":
    main()
