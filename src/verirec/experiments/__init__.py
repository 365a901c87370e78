"""Studies that can be run again: a world or data, recommenders, estimates, and the truth where it is known."""

from verirec.experiments.demo import Demo, run_demo

__all__ = ["Demo", "run_demo"]
