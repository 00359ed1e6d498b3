"""The solvers, one line each. A word may stand for two of them, which solve problems of different kinds.

Estimators, `certify`, model files, the command line, skops and the docs read this list: a new solver is one new file
and one line here. Nothing is imported before a solver is used.
"""

from dataclasses import dataclass

from softmargin.core.kinds import BOX, COORDINATES, PLANES, SINGLE_ROWS, SMOOTH
from softmargin.tasks.lazy import Lazy


@dataclass(frozen=True)
class SolverEntry:
    """A solver: the word that `solver=` takes, its class, what it needs (`core.kinds`), and when to use it."""

    word: str
    home: Lazy
    needs: str
    use: str

    @property
    def name(self) -> str:
        return self.home.name


SOLVERS = (
    SolverEntry(
        "ocas", Lazy("softmargin.solvers.cutting_plane.ocas:OCAS"), PLANES, "where features are few and rows many"
    ),
    SolverEntry(
        "coordinate",
        Lazy("softmargin.solvers.coordinate.coordinate:CoordinateDescent"),
        COORDINATES,
        "where features are many and rows are sparse, as in text",
    ),
    SolverEntry(
        "newton", Lazy("softmargin.solvers.newton.newton:Newton"), SMOOTH, "for squared losses where features are few"
    ),
    SolverEntry("cpa", Lazy("softmargin.solvers.cutting_plane.cpa:CPA"), PLANES, "to compare with SVM-perf"),
    SolverEntry("pegasos", Lazy("softmargin.solvers.subgradient.pegasos:Pegasos"), SINGLE_ROWS, "for a quick look"),
    SolverEntry("sgd", Lazy("softmargin.solvers.subgradient.sgd:SGD"), SINGLE_ROWS, "for a quick look"),
    SolverEntry("block", Lazy("softmargin.solvers.smo.block:BlockSMO"), BOX, "for kernels, nearly always"),
    SolverEntry("smo", Lazy("softmargin.solvers.smo.smo:SMO"), BOX, "where the cache is tiny, and to compare rules"),
    SolverEntry("active_set", Lazy("softmargin.solvers.active_set.active_set:ActiveSet"), BOX, "for the exact sets"),
    SolverEntry(
        "ocas",
        Lazy("softmargin.solvers.cutting_plane.kernel_ocas:KernelOCAS"),
        BOX,
        "to compare cutting planes with SMO",
    ),
    SolverEntry("ipm", Lazy("softmargin.solvers.interior.ipm:IPM"), BOX, "where the kernel matrix has a low rank"),
)
SOLVER_NAMED = {entry.name: entry for entry in SOLVERS}


def words_for(needs: tuple[str, ...]) -> tuple[str, ...]:
    """What `solver=` may be for problems that serve solvers with these needs; "auto" comes first."""
    return ("auto", *(entry.word for entry in SOLVERS if entry.needs in needs))
