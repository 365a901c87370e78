"""The assessment: how selective and noisy a log is, and how good each recommender really is, as far as it can tell."""

from verirec.assessment.demo import Demo, run_demo
from verirec.assessment.findings import AssessedRecommender, Comparison, Origin
from verirec.assessment.monitoring import Monitoring, monitor
from verirec.assessment.result import Assessment
from verirec.assessment.run import assess
from verirec.assessment.sentences import conclusions
from verirec.assessment.summary import assessment_summary
from verirec.assessment.tracking import Tracked, track, track_in_mlflow, track_in_wandb

__all__ = [
    "AssessedRecommender",
    "Assessment",
    "Comparison",
    "Demo",
    "Monitoring",
    "Origin",
    "Tracked",
    "assess",
    "assessment_summary",
    "conclusions",
    "monitor",
    "run_demo",
    "track",
    "track_in_mlflow",
    "track_in_wandb",
]
