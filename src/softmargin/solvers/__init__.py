"""How a problem is minimised: the solvers, and `run`, the one loop around them. `docs/compose.md` shows them in use."""

from typing import TYPE_CHECKING

from softmargin.core.exports import on_demand

if TYPE_CHECKING:
    from softmargin.core.stopping import Stop as Stop
    from softmargin.solvers.active_set.active_set import ActiveSet as ActiveSet
    from softmargin.solvers.base import Solver as Solver
    from softmargin.solvers.base import run as run
    from softmargin.solvers.coordinate.coordinate import CoordinateDescent as CoordinateDescent
    from softmargin.solvers.cutting_plane.cpa import CPA as CPA
    from softmargin.solvers.cutting_plane.kernel_ocas import KernelOCAS as KernelOCAS
    from softmargin.solvers.cutting_plane.ocas import OCAS as OCAS
    from softmargin.solvers.interior.ipm import IPM as IPM
    from softmargin.solvers.newton.newton import Newton as Newton
    from softmargin.solvers.smo.block import BlockSMO as BlockSMO
    from softmargin.solvers.smo.smo import SMO as SMO
    from softmargin.solvers.staged import Staged as Staged
    from softmargin.solvers.subgradient.pegasos import Pegasos as Pegasos
    from softmargin.solvers.subgradient.sgd import SGD as SGD

_HOMES = {
    "run": ".base",
    "Stop": "softmargin.core.stopping",
    "Solver": ".base",
    "OCAS": ".cutting_plane.ocas",
    "CoordinateDescent": ".coordinate.coordinate",
    "Newton": ".newton.newton",
    "CPA": ".cutting_plane.cpa",
    "Pegasos": ".subgradient.pegasos",
    "SGD": ".subgradient.sgd",
    "BlockSMO": ".smo.block",
    "SMO": ".smo.smo",
    "ActiveSet": ".active_set.active_set",
    "IPM": ".interior.ipm",
    "KernelOCAS": ".cutting_plane.kernel_ocas",
    "Staged": ".staged",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = on_demand(__name__, _HOMES)
