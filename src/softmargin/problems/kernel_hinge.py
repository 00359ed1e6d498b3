"""The hinge risk of a kernel machine, as cutting planes see it: products with K are all it needs.

    R(w) = the loss of `row_loss`, over C, at the outputs f = (w.phi(x_1), ..., w.phi(x_n)) of w = sum_i x_i phi(x_i)

A plane has row coefficients c, and its slope a = sum_i c_i phi(x_i) lies in a feature space that nobody visits: in its
place stand the outputs u = K c that it would have as a weight vector. So <a_i, a_j> = <c_i, u_j>, and the outputs of
w = -sum_j gamma_j a_j are -sum_j gamma_j u_j. This is the form in which planes of wide data are kept anyway
(`solvers/cutting_plane/planes.py`). A plane costs one product of K with the coefficients that changed since the last.

Reference: V. Franc, S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008, Section 5,
which asks for this extension.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.core.threads import Workers
from softmargin.kernels.cached import RowStore
from softmargin.problems.base import Pattern
from softmargin.problems.hinge import ActiveHinges, Hinge
from softmargin.problems.hinge_targets import HingeTarget, OneClass, Tube, TwoClasses
from softmargin.problems.row_loss import RowLoss


@dataclass(frozen=True)
class KernelProducts:
    """The rows phi(x_i), reached through K; a weight vector is given by its outputs.

    The columns are those of the feature space: there are more of them than any data have rows.
    """

    K: RowStore
    n_cols: int = sys.maxsize

    @property
    def n_rows(self) -> int:
        return self.K.n

    def dot(self, w: np.ndarray) -> np.ndarray:
        return w.copy()

    def t_dot(self, v: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self.K.product(v if before is None else v - before, keep=True)

    def sq_norms(self) -> np.ndarray:
        return self.K.diag()

    def blocks(self) -> "Iterator[tuple[slice, KernelProducts]]":
        yield slice(None), self

    def on(self, workers: Workers) -> "KernelProducts":
        return self  # the kernel matrix has workers of its own


@dataclass(frozen=True)
class KernelHinge(Hinge):
    """`Hinge` over `KernelProducts`, with planes made of dual variables in addition."""

    @classmethod
    def of(cls, K: RowStore, loss: RowLoss, workers: Workers) -> "KernelHinge":
        """The risk of the machine with this loss."""
        return cls(KernelProducts(K), _target(loss), loss.C, workers=workers)

    def point(self, beta: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and outputs of the hinges, from those of the rows."""
        x = np.zeros(self.n_outputs)
        x[: beta.size] = beta
        return x, self._target.spread(f)

    def rows_of(self, x: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse: beta and f of the rows."""
        return self._target.fold(x), f[: self.n_rows]

    def best_b(self, f: np.ndarray) -> float:
        """The best intercept for the outputs f of the hinges."""
        return self._best_intercept(f)

    def plane_of(self, beta: np.ndarray) -> Pattern:
        """The plane whose dual bound is that of feasible variables beta, where it has the weight C.

        Any pi in [0, 1] makes a plane if sum_j v_j pi_j = total, and pi = alpha / (C |v|) is such a vector.
        """
        v = self.signed_weights
        alpha = self._target.alphas(beta) / self.C
        c = -np.sign(v) * alpha
        targets = np.sign(v) if self.targets is None else self.targets
        pi = np.divide(alpha, np.abs(v), out=np.zeros(v.size), where=v != 0.0)
        return Pattern(c, -float(c @ targets), pi)

    def activity(self, witnesses: Sequence[Any], weights: np.ndarray) -> np.ndarray:
        """sum_j weights_j pi_j; the witness of a plane of dual variables is pi itself."""
        bits = [isinstance(witness, ActiveHinges) for witness in witnesses]
        out = super().activity([each for each, yes in zip(witnesses, bits, strict=True) if yes], weights[bits])
        for witness, weight, is_bits in zip(witnesses, weights, bits, strict=True):
            if not is_bits:
                out += weight * witness
        return out


def _target(loss: RowLoss) -> HingeTarget:
    """What the hinges of a linear problem with the same loss are."""
    if loss.signs is not None:
        return TwoClasses(loss.over - loss.under)
    if loss.nu:
        return OneClass(loss.over, loss.nu)
    return Tube(loss.target, loss.over, loss.epsilon)
