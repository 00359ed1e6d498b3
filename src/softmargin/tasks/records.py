"""The tasks: one record for each estimator.

Model files, `load`, `certify`, the command line and skops read these records: a new estimator is one new file and one
record here. Nothing is imported before it is used, so that the command line starts at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from softmargin.core.kinds import BOX, COORDINATES, PLANES, SINGLE_ROWS, SMOOTH
from softmargin.tasks.layouts import (
    KERNEL_CLASSIFIER,
    KERNEL_NOVELTY,
    KERNEL_SCORE,
    LINEAR_CLASSIFIER,
    LINEAR_NOVELTY,
    LINEAR_SCORE,
    ORDINAL,
    RANKING,
    Layout,
)
from softmargin.tasks.lazy import Lazy
from softmargin.tasks.solvers import SOLVERS, words_for

_STORED = "softmargin.estimators.stored"
_OWN_FORMAT = {"softmargin": Lazy("softmargin.io.model_file:write_model")}
_LINEAR_FORMATS = {**_OWN_FORMAT, "liblinear": Lazy("softmargin.io.liblinear:write_liblinear")}
_KERNEL_FORMATS = {**_OWN_FORMAT, "libsvm": Lazy("softmargin.io.libsvm:write_libsvm")}
_LINEAR = ("loss", "fit_intercept", "intercept", "intercept_scaling")
_KERNEL = ("kernel", "gamma", "degree", "coef0", "cache_bytes", "working_set", "shrinking", "stopping")


@dataclass(frozen=True)
class Task:
    """What the rest of the library must know about an estimator beside its class.

    Attributes
    ----------
    home : the estimator; its name is also what a model file calls its models
    machine : the same without scikit-learn
    word : what `--task` calls it on the command line
    has_kernel : whether `--kernel` leads to it, or the absence of it
    target : what it learns: "classes", "queries" (an order within them), "numbers", or "nothing" but the rows
    needs : what solvers may need of its problems (`core.kinds`)
    options : parameters that the command line offers for some tasks only
    layout : what its model file holds
    states : the training states that its model file may hold
    parts, state : how a fitted estimator becomes a record and comes back; `state` is stored on request
    formats : what writes its model in which format
    predictor : makes a predictor of a record
    measures : tells how good predictions are
    """

    home: Lazy
    machine: Lazy
    word: str
    has_kernel: bool
    target: str
    needs: tuple[str, ...]
    options: tuple[str, ...]
    layout: Layout
    states: tuple[str, ...]
    parts: tuple[Lazy, ...]
    state: Lazy
    predictor: Lazy
    measures: Lazy
    formats: Mapping[str, Lazy] = field(default_factory=lambda: _OWN_FORMAT)

    @property
    def name(self) -> str:
        return self.home.name

    def is_of(self, estimator: Any) -> bool:
        """Whether this is the estimator or the machine of the task, and of no class derived from them."""
        kind = type(estimator)
        return (kind.__module__, kind.__name__) in {(each.module, each.name) for each in (self.home, self.machine)}

    @property
    def solvers(self) -> tuple[str, ...]:
        """What its parameter `solver` may be, beside a solver object."""
        return words_for(self.needs)


TASKS = (
    Task(
        home=Lazy("softmargin.estimators.linear_svc:LinearSVC"),
        machine=Lazy("softmargin.estimators.machines.linear_svc:LinearSVC"),
        word="classify",
        has_kernel=False,
        target="classes",
        needs=(PLANES, COORDINATES, SMOOTH, SINGLE_ROWS),
        options=("C", "class_weight", *_LINEAR, "multi_class", "random_state"),
        layout=LINEAR_CLASSIFIER,
        states=("PlaneState", "JointState", "CoordinateState", "NewtonState", "SubgradientState"),
        parts=(Lazy(f"{_STORED}.linear:LINEAR"), Lazy(f"{_STORED}.linear:LINEAR_TRAINING")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:linear_predictor"),
        measures=Lazy("softmargin.metrics.measures:class_measures"),
        formats=_LINEAR_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.svc:SVC"),
        machine=Lazy("softmargin.estimators.machines.svc:SVC"),
        word="classify",
        has_kernel=True,
        target="classes",
        needs=(BOX,),
        options=("C", "class_weight", *_KERNEL),
        layout=KERNEL_CLASSIFIER,
        states=("DualState",),
        parts=(Lazy(f"{_STORED}.kernel:KERNEL_MODEL"), Lazy(f"{_STORED}.kernel:KERNEL_FIT")),
        state=Lazy(f"{_STORED}.kernel:KERNEL_STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:kernel_predictor"),
        measures=Lazy("softmargin.metrics.measures:class_measures"),
        formats=_KERNEL_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.linear_svr:LinearSVR"),
        machine=Lazy("softmargin.estimators.machines.linear_svr:LinearSVR"),
        word="regress",
        has_kernel=False,
        target="numbers",
        needs=(PLANES, COORDINATES, SMOOTH),
        options=("C", "epsilon", *_LINEAR, "random_state"),
        layout=LINEAR_SCORE,
        states=("PlaneState", "CoordinateState", "NewtonState"),
        parts=(Lazy(f"{_STORED}.linear:LINEAR"), Lazy(f"{_STORED}.linear:LINEAR_TRAINING")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:linear_predictor"),
        measures=Lazy("softmargin.metrics.measures:regression_measures"),
        formats=_LINEAR_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.svr:SVR"),
        machine=Lazy("softmargin.estimators.machines.svr:SVR"),
        word="regress",
        has_kernel=True,
        target="numbers",
        needs=(BOX,),
        options=("C", "epsilon", *_KERNEL),
        layout=KERNEL_SCORE,
        states=("DualState",),
        parts=(Lazy(f"{_STORED}.kernel:KERNEL_MODEL"), Lazy(f"{_STORED}.kernel:KERNEL_FIT")),
        state=Lazy(f"{_STORED}.kernel:KERNEL_STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:kernel_predictor"),
        measures=Lazy("softmargin.metrics.measures:regression_measures"),
        formats=_KERNEL_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.linear_one_class_svm:LinearOneClassSVM"),
        machine=Lazy("softmargin.estimators.machines.linear_one_class_svm:LinearOneClassSVM"),
        word="oneclass",
        has_kernel=False,
        target="nothing",
        needs=(PLANES, COORDINATES),
        options=("nu", "random_state"),
        layout=LINEAR_NOVELTY,
        states=("PlaneState", "CoordinateState"),
        parts=(Lazy(f"{_STORED}.linear:LINEAR"), Lazy(f"{_STORED}.linear:LINEAR_TRAINING")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:linear_predictor"),
        measures=Lazy("softmargin.metrics.measures:novelty_measures"),
        formats=_LINEAR_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.one_class_svm:OneClassSVM"),
        machine=Lazy("softmargin.estimators.machines.one_class_svm:OneClassSVM"),
        word="oneclass",
        has_kernel=True,
        target="nothing",
        needs=(BOX,),
        options=("nu", *_KERNEL),
        layout=KERNEL_NOVELTY,
        states=("DualState",),
        parts=(Lazy(f"{_STORED}.kernel:KERNEL_MODEL"), Lazy(f"{_STORED}.kernel:KERNEL_FIT")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:kernel_predictor"),
        measures=Lazy("softmargin.metrics.measures:novelty_measures"),
        formats=_KERNEL_FORMATS,
    ),
    Task(
        home=Lazy("softmargin.estimators.rank_svm:RankSVM"),
        machine=Lazy("softmargin.estimators.machines.rank_svm:RankSVM"),
        word="rank",
        has_kernel=False,
        target="queries",
        needs=(PLANES,),
        options=("C", "pairs", "query_weight", "no_qid"),
        layout=RANKING,
        states=("RankingState",),
        parts=(Lazy(f"{_STORED}.linear:SCORE"), Lazy(f"{_STORED}.linear:RANK_TRAINING")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:linear_predictor"),
        measures=Lazy("softmargin.metrics.measures:ranking_measures"),
    ),
    Task(
        home=Lazy("softmargin.estimators.ordinal_svc:OrdinalSVC"),
        machine=Lazy("softmargin.estimators.machines.ordinal_svc:OrdinalSVC"),
        word="ordinal",
        has_kernel=False,
        target="classes",
        needs=(PLANES,),
        options=("C", "class_weight", "thresholds", "cost", "classes"),
        layout=ORDINAL,
        states=("OrdinalState", "RankingState"),
        parts=(Lazy(f"{_STORED}.linear:SCORE"), Lazy(f"{_STORED}.linear:ORDINAL_TRAINING")),
        state=Lazy(f"{_STORED}.linear:STATE"),
        predictor=Lazy("softmargin.estimators.record_scoring:linear_predictor"),
        measures=Lazy("softmargin.metrics.measures:ordinal_measures"),
    ),
)
TASK_NAMED = {task.name: task for task in TASKS}
WORDS = tuple(dict.fromkeys(task.word for task in TASKS))


def task_of(estimator: Any) -> Task | None:
    """The task of an estimator of ours; None for others, and for classes derived from ours."""
    task = TASK_NAMED.get(type(estimator).__name__)
    return task if task is not None and task.is_of(estimator) else None


def task_behind(estimator: Any) -> Task | None:
    """The task of an estimator of ours, or of the one that its class is derived from; None for others."""
    named = (TASK_NAMED.get(kind.__name__) for kind in type(estimator).__mro__)
    return next((task for task in named if task is not None and isinstance(estimator, task.home.load())), None)


def task_for(word: str, *, has_kernel: bool) -> Task | None:
    """The task that the command line means by `--task word`, with or without `--kernel`."""
    return next((task for task in TASKS if (task.word, task.has_kernel) == (word, has_kernel)), None)


# For skops.io.load(..., trusted=...) and MLflow's skops_trusted_types: every type of ours that a fitted model may hold,
# and two that may stand around it.
# The searches hold a model of a task in the end (`best_estimator_`), and so need no record of their own.
SEARCHES = (
    Lazy("softmargin.estimators.linear_svc_cv:LinearSVCCV"),
    Lazy("softmargin.estimators.svc_cv:SVCCV"),
)
# What makes features for them, in a pipeline.
MAPS = (Lazy("softmargin.estimators.low_rank_map:LowRankMap"),)
# What scikit-learn's calibration keeps around a model, as data; skops does not know these types.
_CALIBRATION = ["sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration"]
SKOPS_TRUSTED_TYPES = sorted(
    [entry.home.dotted for entry in (*TASKS, *SOLVERS)] + [home.dotted for home in (*SEARCHES, *MAPS)] + _CALIBRATION
)
