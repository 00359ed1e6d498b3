"""Support vector machines trained exactly, fast, and with proof."""

from typing import TYPE_CHECKING

from softmargin.core.exports import on_demand
from softmargin.tasks.records import MAPS, SEARCHES, TASKS
from softmargin.tasks.solvers import SOLVERS

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:  # for type checkers, which cannot read the lists of tasks and solvers
    from softmargin.core.errors import (
        DataFormatError as DataFormatError,
    )
    from softmargin.core.errors import (
        ModelFileError as ModelFileError,
    )
    from softmargin.core.errors import (
        SoftmarginError as SoftmarginError,
    )
    from softmargin.core.result import Certificate as Certificate
    from softmargin.core.status import Status as Status
    from softmargin.estimators.c_path import c_path as c_path
    from softmargin.estimators.certify import certify as certify
    from softmargin.estimators.linear_one_class_svm import LinearOneClassSVM as LinearOneClassSVM
    from softmargin.estimators.linear_svc import LinearSVC as LinearSVC
    from softmargin.estimators.linear_svc_cv import LinearSVCCV as LinearSVCCV
    from softmargin.estimators.linear_svr import LinearSVR as LinearSVR
    from softmargin.estimators.low_rank_map import LowRankMap as LowRankMap
    from softmargin.estimators.one_class_svm import OneClassSVM as OneClassSVM
    from softmargin.estimators.ordinal_svc import OrdinalSVC as OrdinalSVC
    from softmargin.estimators.persistence import load as load
    from softmargin.estimators.persistence import save as save
    from softmargin.estimators.rank_svm import RankSVM as RankSVM
    from softmargin.estimators.svc import SVC as SVC
    from softmargin.estimators.svc_cv import SVCCV as SVCCV
    from softmargin.estimators.svr import SVR as SVR
    from softmargin.estimators.warnings import ConvergenceWarning as ConvergenceWarning
    from softmargin.io.store import Store as Store
    from softmargin.io.svmlight import load_svmlight as load_svmlight
    from softmargin.prediction.predictor import load_predictor as load_predictor
    from softmargin.report.convergence import ConvergenceDisplay as ConvergenceDisplay
    from softmargin.report.margins import MarginDisplay as MarginDisplay
    from softmargin.report.novelty import NoveltyDisplay as NoveltyDisplay
    from softmargin.report.ranking import RankingDisplay as RankingDisplay
    from softmargin.report.regularization import RegularizationPathDisplay as RegularizationPathDisplay
    from softmargin.report.residuals import ResidualDisplay as ResidualDisplay
    from softmargin.solvers.active_set.active_set import ActiveSet as ActiveSet
    from softmargin.solvers.coordinate.coordinate import CoordinateDescent as CoordinateDescent
    from softmargin.solvers.cutting_plane.cpa import CPA as CPA
    from softmargin.solvers.cutting_plane.kernel_ocas import KernelOCAS as KernelOCAS
    from softmargin.solvers.cutting_plane.ocas import OCAS as OCAS
    from softmargin.solvers.interior.ipm import IPM as IPM
    from softmargin.solvers.newton.newton import Newton as Newton
    from softmargin.solvers.smo.block import BlockSMO as BlockSMO
    from softmargin.solvers.smo.smo import SMO as SMO
    from softmargin.solvers.subgradient.pegasos import Pegasos as Pegasos
    from softmargin.solvers.subgradient.sgd import SGD as SGD
    from softmargin.tasks.records import SKOPS_TRUSTED_TYPES as SKOPS_TRUSTED_TYPES

# Each public name and the module it is loaded from at its first use: `import softmargin` itself stays light.
_HOME = {
    **{entry.name: entry.home.module for entry in (*TASKS, *SOLVERS)},
    **{home.name: home.module for home in (*SEARCHES, *MAPS)},
    "certify": "softmargin.estimators.certify",
    "c_path": "softmargin.estimators.c_path",
    "load": "softmargin.estimators.persistence",
    "save": "softmargin.estimators.persistence",
    "load_predictor": "softmargin.prediction.predictor",
    "load_svmlight": "softmargin.io.svmlight",
    "Store": "softmargin.io.store",
    "SKOPS_TRUSTED_TYPES": "softmargin.tasks.records",
    "ConvergenceDisplay": "softmargin.report.convergence",
    "MarginDisplay": "softmargin.report.margins",
    "RankingDisplay": "softmargin.report.ranking",
    "ResidualDisplay": "softmargin.report.residuals",
    "NoveltyDisplay": "softmargin.report.novelty",
    "RegularizationPathDisplay": "softmargin.report.regularization",
    "Certificate": "softmargin.core.result",
    "Status": "softmargin.core.status",
    "SoftmarginError": "softmargin.core.errors",
    "DataFormatError": "softmargin.core.errors",
    "ModelFileError": "softmargin.core.errors",
    "ConvergenceWarning": "softmargin.estimators.warnings",
}

__all__ = [
    *(task.name for task in TASKS),
    *(home.name for home in (*SEARCHES, *MAPS)),
    "certify",
    "c_path",
    "save",
    "load",
    "load_predictor",
    "load_svmlight",
    "Store",
    "SKOPS_TRUSTED_TYPES",
    *(solver.name for solver in SOLVERS),
    "ConvergenceDisplay",
    "MarginDisplay",
    "RankingDisplay",
    "ResidualDisplay",
    "NoveltyDisplay",
    "RegularizationPathDisplay",
    "Certificate",
    "Status",
    "SoftmarginError",
    "DataFormatError",
    "ModelFileError",
    "ConvergenceWarning",
]

__getattr__, __dir__ = on_demand(__name__, _HOME)
