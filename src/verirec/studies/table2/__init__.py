"""The paper's Table 2 under equal tuning: every method in four forms, with simple baselines and intervals."""

from verirec.studies.table2.plans import QUICK_METHODS, Study, Task, named_methods
from verirec.studies.table2.problems import Problem, load_problem
from verirec.studies.table2.runs import Results, run_study

__all__ = ["QUICK_METHODS", "Problem", "Results", "Study", "Task", "load_problem", "named_methods", "run_study"]
