"""The paper's semi-synthetic study, as printed and done right: Table 1, Figure 1, and what the paper lacks."""

from verirec.exceptions import WorkerEndedError
from verirec.studies.semi_synthetic.plans import Plan, Setting, figure1_plan, robustness_plan, table1_plan
from verirec.studies.semi_synthetic.populations import Population, has_population, load_population
from verirec.studies.semi_synthetic.runs import check_seeds, run_plan
from verirec.studies.semi_synthetic.seeds import Record, run_seed

__all__ = [
    "Plan",
    "Population",
    "Record",
    "Setting",
    "WorkerEndedError",
    "check_seeds",
    "figure1_plan",
    "has_population",
    "load_population",
    "robustness_plan",
    "run_plan",
    "run_seed",
    "table1_plan",
]
