"""Support vector machines trained exactly, fast, and with proof."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
    from softmargin.core.result import Certificate
    from softmargin.core.status import Status
    from softmargin.estimators.c_path import c_path
    from softmargin.estimators.certify import certify
    from softmargin.estimators.linear_svc import LinearSVC
    from softmargin.estimators.ordinal_svc import OrdinalSVC
    from softmargin.estimators.persistence import load
    from softmargin.estimators.plain_state import SKOPS_TRUSTED_TYPES
    from softmargin.estimators.rank_svm import RankSVM
    from softmargin.estimators.svc import SVC
    from softmargin.estimators.warnings import ConvergenceWarning
    from softmargin.io.svmlight import load_svmlight
    from softmargin.report.convergence import ConvergenceDisplay
    from softmargin.report.margins import MarginDisplay
    from softmargin.report.ranking import RankingDisplay
    from softmargin.solvers.active_set.active_set import ActiveSet
    from softmargin.solvers.cutting_plane.cpa import CPA
    from softmargin.solvers.cutting_plane.ocas import OCAS
    from softmargin.solvers.interior.ipm import IPM
    from softmargin.solvers.smo.block import BlockSMO
    from softmargin.solvers.smo.smo import SMO
    from softmargin.solvers.subgradient.pegasos import Pegasos
    from softmargin.solvers.subgradient.sgd import SGD

# Each public name and the module it is loaded from at its first use: `import softmargin` itself stays light.
_HOME = {
    "LinearSVC": "softmargin.estimators.linear_svc",
    "SVC": "softmargin.estimators.svc",
    "RankSVM": "softmargin.estimators.rank_svm",
    "OrdinalSVC": "softmargin.estimators.ordinal_svc",
    "certify": "softmargin.estimators.certify",
    "c_path": "softmargin.estimators.c_path",
    "load": "softmargin.estimators.persistence",
    "load_svmlight": "softmargin.io.svmlight",
    "SKOPS_TRUSTED_TYPES": "softmargin.estimators.plain_state",
    "OCAS": "softmargin.solvers.cutting_plane.ocas",
    "CPA": "softmargin.solvers.cutting_plane.cpa",
    "Pegasos": "softmargin.solvers.subgradient.pegasos",
    "SGD": "softmargin.solvers.subgradient.sgd",
    "BlockSMO": "softmargin.solvers.smo.block",
    "SMO": "softmargin.solvers.smo.smo",
    "ActiveSet": "softmargin.solvers.active_set.active_set",
    "IPM": "softmargin.solvers.interior.ipm",
    "ConvergenceDisplay": "softmargin.report.convergence",
    "MarginDisplay": "softmargin.report.margins",
    "RankingDisplay": "softmargin.report.ranking",
    "Certificate": "softmargin.core.result",
    "Status": "softmargin.core.status",
    "SoftmarginError": "softmargin.core.errors",
    "DataFormatError": "softmargin.core.errors",
    "ModelFileError": "softmargin.core.errors",
    "ConvergenceWarning": "softmargin.estimators.warnings",
}

__all__ = [
    "LinearSVC",
    "SVC",
    "RankSVM",
    "OrdinalSVC",
    "certify",
    "c_path",
    "load",
    "load_svmlight",
    "SKOPS_TRUSTED_TYPES",
    "OCAS",
    "CPA",
    "Pegasos",
    "SGD",
    "BlockSMO",
    "SMO",
    "ActiveSet",
    "IPM",
    "ConvergenceDisplay",
    "MarginDisplay",
    "RankingDisplay",
    "Certificate",
    "Status",
    "SoftmarginError",
    "DataFormatError",
    "ModelFileError",
    "ConvergenceWarning",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'softmargin' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
