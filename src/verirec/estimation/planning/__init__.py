"""Which pairs to ask people about, and how many."""

from verirec.estimation.planning.label_plan import LabelPlan
from verirec.estimation.planning.plan import plan_labels

__all__ = ["LabelPlan", "plan_labels"]
