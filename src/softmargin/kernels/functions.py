"""Kernels as small frozen values: a name, its parameters, and how entries follow from products of rows.

    linear      x.z                                rbf        exp(-gamma |x - z|^2)
    polynomial  (gamma x.z + coef0)^degree         laplacian  exp(-gamma |x - z|_1)
    sigmoid     tanh(gamma x.z + coef0)            custom     k(X, Z), evaluated block by block

`is_convex` says whether the kernel is positive semi-definite whatever the rows: then the dual problem is convex and its
value a bound. For the others the judge looks at the matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.rows import Rows


@dataclass(frozen=True)
class Linear:
    name: ClassVar[str] = "linear"
    is_convex: ClassVar[bool] = True

    def diagonal(self, rows: Rows) -> np.ndarray:
        return rows.sq_norms()


@dataclass(frozen=True)
class RBF:
    gamma: float
    name: ClassVar[str] = "rbf"
    is_convex: ClassVar[bool] = True

    def diagonal(self, rows: Rows) -> np.ndarray:
        return np.ones(rows.n_rows)


@dataclass(frozen=True)
class Laplacian:
    gamma: float
    name: ClassVar[str] = "laplacian"
    is_convex: ClassVar[bool] = True

    def diagonal(self, rows: Rows) -> np.ndarray:
        return np.ones(rows.n_rows)


@dataclass(frozen=True)
class Polynomial:
    gamma: float
    degree: int = 3
    coef0: float = 0.0
    name: ClassVar[str] = "poly"

    @property
    def is_convex(self) -> bool:
        return self.coef0 >= 0.0  # a polynomial of a kernel with coefficients of at least zero

    def diagonal(self, rows: Rows) -> np.ndarray:
        return (self.gamma * rows.sq_norms() + self.coef0) ** self.degree


@dataclass(frozen=True)
class Sigmoid:
    gamma: float
    coef0: float = 0.0
    name: ClassVar[str] = "sigmoid"
    is_convex: ClassVar[bool] = False

    def diagonal(self, rows: Rows) -> np.ndarray:
        return np.tanh(self.gamma * rows.sq_norms() + self.coef0)


@dataclass(frozen=True)
class Custom:
    """A function of two blocks of rows, as the user wrote them: k(X, Z) has shape (rows of X, rows of Z)."""

    function: Callable[[Any, Any], Any]
    name: ClassVar[str] = "custom"
    is_convex: ClassVar[bool] = False

    def block(self, left: Any, right: Any) -> np.ndarray:
        """The values for two blocks, checked: a user's function is a stranger."""
        from softmargin.data.convert import as_array  # imports scipy, which named kernels do without

        expected = (left.shape[0], right.shape[0])
        try:
            values = as_array(self.function(left, right))
        except (TypeError, ValueError) as error:
            raise SoftmarginError(f"the kernel function failed on blocks of {expected} rows: {error}") from error
        if values.shape != expected:
            raise SoftmarginError(
                f"the kernel function returned an array of shape {values.shape} for blocks of {expected[0]} and "
                f"{expected[1]} rows: it must return one value for each pair, shape {expected}."
            )
        if values.dtype.kind not in "fiub":
            raise SoftmarginError(
                f"the kernel function returned values of type {values.dtype}: real numbers are needed."
            )
        values = values.astype(np.float64, copy=False)
        if not np.isfinite(values).all():
            raise SoftmarginError("the kernel function returned NaN or infinity: check it on these rows by hand.")
        return values


Kernel = Linear | RBF | Laplacian | Polynomial | Sigmoid | Custom
