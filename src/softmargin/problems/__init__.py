"""What is minimised, and the judges of the answers: `docs/compose.md` shows them in use."""

from typing import TYPE_CHECKING

from softmargin.core.exports import on_demand

if TYPE_CHECKING:
    from softmargin.problems.base import CoordinateProblem as CoordinateProblem
    from softmargin.problems.base import Judge as Judge
    from softmargin.problems.base import RiskProblem as RiskProblem
    from softmargin.problems.base import RowProblem as RowProblem
    from softmargin.problems.box_qp import BoxQP as BoxQP
    from softmargin.problems.certificate import HingeJudge as HingeJudge
    from softmargin.problems.hinge import Hinge as Hinge
    from softmargin.problems.hinge_targets import OneClass as OneClass
    from softmargin.problems.hinge_targets import Tube as Tube
    from softmargin.problems.hinge_targets import TwoClasses as TwoClasses
    from softmargin.problems.intercepts import Free as Free
    from softmargin.problems.intercepts import NoIntercept as NoIntercept
    from softmargin.problems.intercepts import Penalised as Penalised
    from softmargin.problems.joint import Joint as Joint
    from softmargin.problems.joint_certificate import JointJudge as JointJudge
    from softmargin.problems.kernel_certificate import KernelJudge as KernelJudge
    from softmargin.problems.ordinal import Ordinal as Ordinal
    from softmargin.problems.ordinal_certificate import OrdinalJudge as OrdinalJudge
    from softmargin.problems.ranking import Ranking as Ranking
    from softmargin.problems.ranking_certificate import RankingJudge as RankingJudge
    from softmargin.problems.row_loss import RowLoss as RowLoss
    from softmargin.problems.squared import Squared as Squared
    from softmargin.problems.squared_targets import SquaredClasses as SquaredClasses
    from softmargin.problems.squared_targets import SquaredTube as SquaredTube

_HOMES = {
    "Hinge": ".hinge",
    "TwoClasses": ".hinge_targets",
    "Tube": ".hinge_targets",
    "OneClass": ".hinge_targets",
    "Squared": ".squared",
    "SquaredClasses": ".squared_targets",
    "SquaredTube": ".squared_targets",
    "Free": ".intercepts",
    "Penalised": ".intercepts",
    "NoIntercept": ".intercepts",
    "BoxQP": ".box_qp",
    "RowLoss": ".row_loss",
    "Ranking": ".ranking",
    "Ordinal": ".ordinal",
    "Joint": ".joint",
    "HingeJudge": ".certificate",
    "KernelJudge": ".kernel_certificate",
    "RankingJudge": ".ranking_certificate",
    "JointJudge": ".joint_certificate",
    "OrdinalJudge": ".ordinal_certificate",
    "RiskProblem": ".base",
    "RowProblem": ".base",
    "CoordinateProblem": ".base",
    "Judge": ".base",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = on_demand(__name__, _HOMES)
