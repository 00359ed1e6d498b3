"""What linear problems have in common, whatever their loss: rows, a target, C, and an intercept."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.data.rows import Flat, Products, has_row_access
from softmargin.problems.base import Coordinates
from softmargin.problems.hinge_targets import HingeTarget, as_target
from softmargin.problems.intercepts import Free, Intercept


@dataclass(frozen=True)
class LinearProblem:
    """Rows, and what is to be learnt from them.

    An array as target stands for the signed weights v = s * y of two classes.
    """

    rows: Products
    target: HingeTarget | np.ndarray
    C: float
    intercept: Intercept = field(default_factory=Free)
    workers: Workers = field(default_factory=Workers)

    def __post_init__(self) -> None:
        self._target.check(self.C, self.intercept)

    @cached_property
    def _target(self) -> HingeTarget:
        return as_target(self.target)

    @property
    def signed_weights(self) -> np.ndarray:
        return self._target.v

    @property
    def targets(self) -> np.ndarray | None:
        return self._target.t

    @property
    def n_rows(self) -> int:
        return self._target.n_rows

    @property
    def n_variables(self) -> int:
        return self._target.n_rows

    @property
    def n_outputs(self) -> int:
        return self._target.v.size

    @cached_property
    def coordinates(self) -> Coordinates:
        return self._target.coordinates(self.C)

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols + self.intercept.n_weights

    @cached_property
    def scale(self) -> float:
        return self._target.scale(self.rows, self.C, self.intercept)

    def outputs(self, w: np.ndarray) -> np.ndarray:
        w, b = self.intercept.split(w)
        return self.spread(self.rows.dot(w), b)

    def spread(self, f: np.ndarray, b: float) -> np.ndarray:
        """Outputs of the hinges, from products with the rows and the weight of the intercept; `f` is overwritten."""
        if self.intercept.feature:
            f += b
        return self._target.spread(f)

    def rows_at(self, index: np.ndarray) -> tuple[Flat, np.ndarray]:
        if not has_row_access(self.rows):
            raise SoftmarginError(
                "These rows offer products with X only, as those of a store do: solvers that visit single rows, such "
                "as SGD and Pegasos, need data in memory. Use OCAS or CPA."
            )
        flat = self.rows.flat
        if not flat.fortran:
            return flat, index
        return self.rows.take(index).flat, np.arange(index.size)

    def shifted(self, f: np.ndarray) -> np.ndarray:
        """Outputs as `Hinges` takes them: less the targets, unless these are the signs of v."""
        return f if self.targets is None else f - self.targets
