"""What all methods share: parameters, and fitting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from verirec.data.feedback_log import FeedbackLog
from verirec.engine.choice import EngineLike, takes_engine
from verirec.methods import checking
from verirec.methods.parameters import Limits
from verirec.methods.trained import Trained
from verirec.randomness import RandomState
from verirec.training.correction import Kind, NoiseCorrection
from verirec.training.data import TrainingData
from verirec.training.fitting import ModelSpec, Start, train
from verirec.training.heads import HeadName, make_head
from verirec.training.objective import Objective
from verirec.training.preparation import Preparation, prepare
from verirec.training.settings import ALONE, Anchors, TrainingSettings
from verirec.training.side_information import Learnt
from verirec.training.trainer import Plan

if TYPE_CHECKING:
    from verirec.estimation.inputs import KnownNoise
    from verirec.nuisance.noise_rates import AuditSample
    from verirec.nuisance.surveys import SurveySample


@dataclass(kw_only=True, eq=False, repr=False)
class Method(Trained):
    r"""A way to train a recommender: stores its parameters, and trains in `fit`.

    What it leaves is `recommender_`, to which its own `predict`, `recommend`, `similar_items` and `save` hand over.

    Parameters
    ----------
    model
        "mf", "constants", "features", "ncf", a `torch.nn.Module` of (users, items) that gives logits, or a function of
        (n_users, n_items) that makes one.
    dim
        Number of factors; 0 for none.
    constants
        Whether users, items and all have a constant; the paper's form has none.
    head
        What a score says. "binary": the logit of a like. "stars": a predicted star, by squared loss on the levels'
        values. "ordinal": chances of all levels, by cumulative logits. By default "binary" for 0/1 labels and "stars"
        for a log that keeps its levels; see `verirec.training.heads`.
    loss
        "log" or "squared", of 0/1 labels.
    penalty_factors, penalty_constants, penalty_features
        Precisions of normal priors: of each kind of parameter half the squares times its penalty, divided by the number
        of rows (by what they are worth, where they are weighted), is added to the mean loss of a pair. A penalty of 4
        stands for parameters of about 1/2, whatever the size of the log. By default the factors' is 8, or a tenth above
        `report_.penalty_bound` where that is more; without constants 2, or half of what would leave nothing of them
        where that is less. `report_.penalty_factors` says which it was. Of stars the unit is how much the log's vary,
        and the factors' is 13.
    penalty_users, penalty_items
        Of the users' and of the items' constants, in place of `penalty_constants`.
    covariates
        What people chose to rate, learnt from the positions of training rows, each pair's own left out, with one weight
        each. "propensity": the logit of a logistic propensity. "co-rating": an item-item model of which items are rated
        by the same people (`verirec.nuisance.exposure`). "both", "none". By default "propensity" with
        model="features", and "none" otherwise; for models "mf", "constants" and "features".
    solver
        "sweep": each user's and each item's parameters improved in turn, without a learning rate, by quadratics that
        lie above the loss (`verirec.training.solvers.sweep`); for many methods, with cross-entropy or stars and models
        "mf", "constants" and "features". "gradient": Adam, for all. "auto": sweeps where they fit, and the
        penalty makes sure of a minimum (`report_.penalty_bound`) or factors are alone.
    learning_rate, batch_size, grid_cells
        Of Adam; rows of the log and cells of the grid in a batch.
    epochs, patience
        At most so many passes over the log, and validations without a better one after which training stops (`None`:
        never).
    validation
        Share of the rows that are held out to judge by; 0 for none.
    refit
        Whether to train once more at the end, on all rows, for as many epochs (or sweeps) as were best by validation,
        with the noise rates that training ended with. The report stays that of the first fit.
    validation_estimator
        The estimator of the held-out error. By default ome-dr where there are noise rates (those that training starts
        from, where it learns them), and else the method's own kind.
    correction
        For noise: "none"; "surrogate": the paper's :math:`\tilde e`, unbiased and unbounded below; "forward": the plain
        log loss of :math:`\rho_{10} + \kappa f`, bounded below. OME-X is X with "surrogate" by default. For methods
        whose loss is linear in the labels (`takes_correction`). Of levels, with a transition matrix T: "surrogate"
        takes :math:`T^{-1}` times the levels' values, which is exact, and is for head="stars"; "forward",
        :math:`-\log (T^\top f)_r`, is for head="ordinal". Each head refuses the other's.
    anchors
        Where f is looked at for its smallest and largest value, if noise rates have to be learnt. "epoch": over all
        pairs, at the start of each epoch. "batch": over the pairs of the epoch's batches so far, after every step (the
        reading of the paper's Section 3.5). "fixed": h's own extremes over all pairs, once.
    h
        A model of P(r = 1) in any form of predictions; by default user and item constants fitted with 1/p, as
        `verirec.AnchorNoiseRates` does.
    refresh_after
        Epochs before which learnt rates stay where they start, at h's own extremes over all pairs: where an untrained f
        is largest says nothing.
    max_rate
        Learnt rates are cut off at it, with a warning.
    random_state, device
        Seed; where to train.

    Attributes
    ----------
    recommender_
        What training leaves.
    models_
        All that was trained, by name: "prediction" in its best state, the others as the last epoch left them; not kept
        by `save`.
    """

    needs_grid: ClassVar[bool] = False
    """Whether its loss looks at pairs that nobody rated."""
    uses_propensities: ClassVar[bool] = True
    """Whether its loss has propensities in it; all may be validated with them."""
    needs_all_propensities: ClassVar[bool] = False
    """Whether its loss has propensities of pairs that nobody rated."""
    own_estimator: ClassVar[str] = "naive"
    """The estimator that validates it where noise rates are not known."""
    sweeps: ClassVar[bool] = False
    """Whether its objective is one of pseudo-labels, which sweeps can lower."""
    takes_correction: ClassVar[bool] = False
    """Whether it can be corrected for noise."""
    takes_clicks: ClassVar[bool] = False
    """Whether it can be trained on a log of clicks alone."""
    takes_levels: ClassVar[bool] = False
    """Whether it can be trained on a log that keeps its levels."""
    limits: ClassVar[Limits] = {
        # A sweep solves a system of this size: beyond, that alone takes minutes and gigabytes.
        "dim": (0, 2_048),
        "batch_size": (1, 10**9),
        "grid_cells": (1, 10**9),
        "epochs": (1, 10**9),
        "patience": (1, 10**9),
        "penalty_factors": (0, 1e9),
        "penalty_constants": (0, 1e9),
        "penalty_features": (0, 1e9),
        "penalty_users": (0, 1e9),
        "penalty_items": (0, 1e9),
        "learning_rate": (1e-12, 1e3),
        "validation": (0, 0.99),
        "max_rate": (0.01, 0.49),
        "refresh_after": (0, 10**9),
    }

    model: Any = "mf"
    dim: int = 8
    constants: bool = True
    head: HeadName | None = None
    loss: Literal["log", "squared"] = "log"
    penalty_factors: float | None = None
    penalty_constants: float = 4.0
    penalty_features: float = 10.0
    penalty_users: float | None = None
    penalty_items: float | None = None
    covariates: str | None = None
    solver: Literal["auto", "gradient", "sweep"] = "auto"
    learning_rate: float = 0.01
    batch_size: int = 2_048
    grid_cells: int = 16_384
    epochs: int = 500
    patience: int | None = 8
    validation: float = 0.1
    refit: bool = True
    validation_estimator: str | None = None
    correction: Kind = "none"
    anchors: Anchors = "fixed"
    h: Any = None
    refresh_after: int = 10
    max_rate: float = 0.3
    random_state: RandomState = 0
    device: str = "cpu"

    # What a method writes

    @abstractmethod
    def objective(self, data: TrainingData, correction: NoiseCorrection) -> Objective:
        """Return what is minimised on these rows, with errors by this correction."""

    def extra_models(self) -> dict[str, ModelSpec]:
        """Return what is trained besides the prediction model, by name."""
        return {}

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is not what it must be; `fit` does so first."""
        checking.check(self)

    @classmethod
    def kinds(cls) -> Iterator[type[Self]]:
        """Return all methods that derive from this one."""
        for kind in cls.__subclasses__():
            yield kind
            yield from kind.kinds()

    # Fitting

    @takes_engine
    def fit(
        self,
        log: FeedbackLog,
        *,
        noise_rates: KnownNoise | None = None,
        audit: AuditSample | None = None,
        propensities: Any = None,
        survey: SurveySample | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[int, int, float], None] = lambda epoch, epochs, value: None,
        engine: EngineLike = None,
    ) -> Self:
        """Train on a log.

        Parameters
        ----------
        log
            Of both classes, or of more than one level.
        noise_rates, audit
            Rates, of levels a `TransitionMatrix`, or true labels of some logged pairs that tell them. Methods that
            correct for noise estimate rates by anchors where neither is given, of levels they need one of the two; all
            others use them to validate by.
        propensities
            As in `estimate`: fitted ones, a model, a matrix, a function; by default the log's own or a logistic model.
        survey
            True labels of random pairs, by the log's positions: after training, level and slope are put right by those
            that are not in the log, see `Recommender.calibrated`. For 0/1 labels.
        checkpoint, resume
            A file that training writes as it goes; with `resume`, it goes on from there to the same result.
        progress
            Told (epoch, epochs, validation error or NaN) after every epoch.
        engine
            Whose workers have the log's rows, in shards of users: as in `verirec.estimate`. For methods with sweeps and
            models "mf" and "constants"; the result has the same bits as by default, in this process.
        """
        workers = checking.workers_of(self, engine, Method.kinds())
        prepared = self.prepare(log, noise_rates=noise_rates, audit=audit, propensities=propensities)
        if survey is not None:
            checking.check_survey(survey, log, has_rates=prepared.rates is not None)
        file = checking.checkpoint_file(checkpoint)
        key = "" if file is None else checking.training_key(self, prepared)
        plan = Plan(self.epochs, file, resume, key, progress, workers)
        self.fit_prepared(prepared, plan)
        if self.refit and prepared.validator is not None:
            self._fit_again(prepared, plan)
        if survey is not None:
            self.recommender_ = self._trained().calibrated(survey, exclude=log)
        return self

    def _fit_again(self, prepared: Preparation, plan: Plan) -> None:
        """Train on all rows for as long as was best, with the noise rates that training ended with."""
        first = self._trained()
        whole = prepared.on_all_rows(TrainingSettings.of(self), first.noise_rates, first.report.start_size)
        self.fit_prepared(whole, Plan(first.report.best_epoch, progress=plan.progress, engine=plan.engine))
        self.recommender_ = replace(self.recommender_, report=first.report)

    def prepare(
        self,
        log: FeedbackLog,
        *,
        noise_rates: KnownNoise | None,
        audit: AuditSample | None,
        propensities: Any,
        learnt: Learnt | None = None,
    ) -> Preparation:
        """Check all that `fit` is given, find propensities and noise rates, and hold rows out.

        Covariates that were `learnt` before, from the same rows, are taken as they are, and new ones are put there.
        """
        self.check_parameters()
        checking.check_labels(self, log, Method.kinds())
        return prepare(TrainingSettings.of(self), log, noise_rates, audit, propensities, learnt)

    def fit_prepared(self, prepared: Preparation, plan: Plan, start: Start | None = None) -> Self:
        """Train on what `prepare` made, anew or from where another fit ended."""
        self.recommender_, self.models_ = train(
            TrainingSettings.of(self), self.objective, self.extra_models(), prepared, plan, start
        )
        return self

    def usual_penalty_factors(self, log: FeedbackLog) -> float:
        """Return the factor penalty that is taken by default where the log allows it: its head's, beside constants."""
        return make_head(self.head, self.loss, log).usual_penalty if self.constants else ALONE

    @property
    def takes_features(self) -> bool:
        """Whether any of its models takes features."""
        kinds = (self.model, *(spec.kind for spec in self.extra_models().values()))
        return any(isinstance(kind, str) and kind == "features" for kind in kinds)
