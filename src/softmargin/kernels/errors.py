"""How far computed kernel values, and sums of them, can be from the real ones.

The real kernel values are those of the rows as they are stored and of the parameters as they are stored. Write u for
the unit of the type that values are computed in, k for the largest number of stored values in a row, and x' for a row
as it is made ready (`matrix.Side`): shifted, scaled, and rounded to that type.

    linear      a product of two rows is off by at most (k + 4) u |x| |z|
    polynomial  t = gamma x.z + coef0 by (k + 8) u T with T = gamma |x| |z| + |coef0|, and t^p by the share
                e^(p (k + 9) u) - 1 of T^p, which is at most (gamma |x|^2 + |coef0|)^(p/2) times the same of z
    sigmoid     as t, and by the error of tanh
    RBF         the exponent by kappa (|x'|^2 + |z'|^2), kappa = (k/2 + 7) u + (k/2 + 30) 2^-53: the rows are rounded,
                and so are the three terms of the square and their sum. The value is off by the share 2^that - 1
    Laplacian   the same with the sums of the absolute entries in place of the squares

A power of two is off by the share 4 u at most, which a test finds by trying; and kernel values below the smallest
normal number are that number. A user's function or matrix is what it is.
"""

from dataclasses import dataclass

import numpy as np

from softmargin.data.precise import lengths_above, longest_row
from softmargin.data.rows import Rows
from softmargin.kernels.functions import RBF, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from softmargin.linalg.rounding import SLACK, UNIT, gamma, sum_above

POWER_ERROR = 4.0  # of a power of two, in units of the type
TANH_ERROR = 4.0
_LN2 = 0.6932
_NOTHING = np.empty(0)


@dataclass(frozen=True)
class EntryErrors:
    """Bounds for the entries of a kernel matrix.

    |K_ij| <= lengths_i lengths_j. A computed entry is off by at most product * lengths_i lengths_j + absolute; or, if
    `sizes` are given, by (relative + growth (sizes_i + sizes_j)) K_ij + absolute, and K lies between 0 and 1.
    """

    lengths: np.ndarray
    product: float = 0.0
    sizes: np.ndarray | None = None
    relative: float = 0.0
    growth: float = 0.0
    absolute: float = 0.0

    def columns(self, beta: np.ndarray) -> np.ndarray:
        """The vectors whose products with K tell how far K beta is off. The first two add up to beta."""
        from softmargin.kernels import _errors

        sizes = _NOTHING if self.sizes is None else self.sizes
        columns = np.empty((beta.size, 2 if self.sizes is None else 3))
        _errors.split(beta, sizes, columns)
        return columns

    def of_outputs(self, beta: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        """How far the computed K beta is from the real one, for each row.

        `sums` are the computed products of K with `columns`; without them the bound is coarser.
        """
        total, summing = sum_above(np.abs(beta)), gamma(int(np.count_nonzero(beta)) + 6)
        if self.sizes is None:
            reach = self.reach(beta)
            return ((self.product + summing * (1.0 + self.product)) * reach + 2.0 * self.absolute * total) * SLACK
        from softmargin.kernels import _errors

        largest = float(self.sizes.max(initial=0.0))
        if sums is None:
            reach = self.reach(beta)
            sums = np.stack([reach, np.zeros(reach.size), largest * reach]).T
        # Shares are those of real values; the computed ones may be smaller by as much.
        worst, least = self.relative + 2.0 * self.growth * largest, self.absolute * total
        out = np.empty(len(sums))
        known = (self.relative, self.growth, worst) if worst < 0.5 else (np.inf, 0.0, 0.0)
        _errors.off(sums, self.sizes, *known, least, total, summing, out)
        return out

    def reach(self, beta: np.ndarray) -> np.ndarray:
        """Upper bounds of sum_j |K_ij beta_j|."""
        return self.lengths * (sum_above(np.abs(beta) * self.lengths) * SLACK)

    def take(self, index: np.ndarray) -> "EntryErrors":
        sizes = None if self.sizes is None else self.sizes[index]
        return EntryErrors(self.lengths[index], self.product, sizes, self.relative, self.growth, self.absolute)


def exact_entries(diagonal: np.ndarray) -> EntryErrors:
    """Of entries that are given: only sums of them are rounded. K is taken to be positive semi-definite."""
    return EntryErrors(np.sqrt(np.abs(diagonal)) * SLACK)


def sizes_of(rows: Rows, kernel: Kernel, factor: float, array: np.ndarray) -> np.ndarray:
    """For each row what its errors grow with: |x'|^2 (RBF), the sum of |x'_j| (Laplacian), else |x|.

    `array` are dense rows made ready; without it the rows are only scaled by `factor`.
    """
    k = longest_row(rows)
    if not isinstance(kernel, RBF | Laplacian):
        return lengths_above(rows)
    squares = np.einsum("ij,ij->i", array, array, dtype=np.float64) if array.size else factor**2 * rows.sq_norms()
    squares *= 1.0 + 1e-6  # float32 rows are rounded
    return squares if isinstance(kernel, RBF) else np.sqrt(k * squares)


def entry_errors(kernel: Kernel, sizes: np.ndarray, k: int, dtype: np.dtype, is_sparse: bool) -> EntryErrors:
    """Of values computed in this type, from `sizes_of` the rows."""
    numbers = np.finfo(dtype)
    unit, least = float(numbers.eps) / 2.0, float(numbers.tiny)
    largest = float(sizes.max(initial=0.0))
    floor = np.sqrt(k) * (2.0**-100 if unit > UNIT else 2.0**-960)  # rows may underflow when they are made ready
    with np.errstate(over="ignore"):
        match kernel:
            case RBF() | Laplacian():
                kappa = (k / 2 + 7) * unit + (k / 2 + 30) * UNIT
                if isinstance(kernel, Laplacian):
                    kappa = (12 * k + 20) * unit if is_sparse else (k + 8) * unit + 10 * UNIT
                growth = 1.05 * _LN2 * kappa
                growth *= float(np.exp(min(2.0 * growth * (largest + floor), 700.0)))  # 2^x - 1 <= x ln 2 e^(x ln 2)
                return EntryErrors(
                    np.ones(sizes.size),
                    sizes=sizes + floor,
                    relative=POWER_ERROR * unit,
                    growth=growth,
                    absolute=2.0 * least,
                )
            case Linear():
                return EntryErrors(sizes + floor, 1.05 * (k + 4) * unit, absolute=(k + 1) * least)
            case Polynomial():
                base = kernel.gamma * (sizes + floor) ** 2 + abs(kernel.coef0)
                product = 1.05 * float(np.expm1(kernel.degree * (k + 9) * unit))
                return EntryErrors(base ** (kernel.degree / 2) * (1.0 + 1e-12), product, absolute=(k + 1) * least)
            case Sigmoid():
                base = kernel.gamma * (sizes + floor) ** 2 + abs(kernel.coef0)
                return EntryErrors(np.sqrt(base) * (1.0 + 1e-12), 1.05 * (k + 8) * unit, absolute=TANH_ERROR * unit)
    raise AssertionError(f"{kernel!r} computes no values of its own")
