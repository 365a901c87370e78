"""How good all methods are on Coat, and how long they take, with the parameters that they come with.

    .venv/bin/python benchmarks/methods.py --data FOLDER [--seed 0] [--paper]

Trained on the self-selected ratings, of which a fifth of the positive labels and a tenth of the negative ones are
flipped; judged on the clean labels of randomly chosen pairs, which nothing is chosen by: training stops on held-out
rows of the noisy log. Noise rates are given; propensities are those that training takes by default. One thread.
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch

import verirec as vr

RATES = vr.NoiseRates(0.2, 0.1)
METRICS = ("auc", "ndcg@5", "recall@5", "log_loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with Coat")
    parser.add_argument("--seed", type=int, default=0, help="of the flips and of training")
    parser.add_argument("--paper", action="store_true", help="factors alone, the paper's form")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    coat = vr.load_dataset("coat", data_home=options.data)
    log = coat.train.with_noise(RATES, random_state=options.seed)
    print("| method | AUC | NDCG@5 | Recall@5 | log loss | epochs | CPU s |\n|---|---|---|---|---|---|---|")
    began, cpu_began = time.perf_counter(), time.process_time()
    for name, method in vr.methods.catalogue.items():
        if name == "auto" and options.paper:
            continue
        start = time.process_time()
        form = {"constants": False} if options.paper else {}
        fitted = method(random_state=options.seed, **form).fit(log, noise_rates=RATES)
        seconds = time.process_time() - start
        found = vr.metrics.evaluate(fitted.predictions, coat.test, k=5)
        figures = " | ".join(f"{found[metric]:.3f}" for metric in METRICS)
        print(f"| {name} | {figures} | {len(fitted.report_.history)} | {seconds:.1f} |", flush=True)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    print(f"\nAll {len(vr.methods.catalogue)}: {wall:.0f} s, {cpu:.0f} CPU s.")


if __name__ == "__main__":
    main()
