"""The sum of hinges that the searches and the planes of a linear problem are about.

    R(f) = sum_i max(0, v_i (unit sign(v_i) - f_i - b)) + b total

v_i is the signed weight of hinge i: the hinge is positive for outputs below its target if v_i > 0 and for outputs above
it if v_i < 0; v_i = 0 leaves it out. The target is the sign of v_i in classification, where `unit` is 1. Where hinges
have targets of their own, f holds the outputs less the targets and `unit` is 0. So compiled loops read the same three
vectors f, df and v for every problem, and classification does not pay for the others.

`total` is 0 unless the problem is one-class. It acts like one more hinge that is always active, with v = -total, a
target of 0 and an output of 0.
"""

from dataclasses import dataclass

import numpy as np

from softmargin.problems.breakpoints import RowWorkers


@dataclass(frozen=True)
class Hinges:
    """Signed weights v, `unit` and `total`; and the threads that pass over the rows."""

    v: np.ndarray
    workers: RowWorkers
    unit: float = 1.0
    total: float = 0.0

    def targets(self, v: np.ndarray) -> np.ndarray:
        """The targets of some hinges, given their signed weights."""
        return self.unit * np.sign(v)
