"""Sums of kernel values with twice the digits, for the few rows of a problem where double precision proves nothing.

Products and distances of rows are kept in pairs of numbers (`data/_precise.py`), and so are linear and polynomial
kernel values. Powers are computed in double precision from an exponent that is exact to its last digit: they are off
by a few units, however far the rows are from the origin. This takes some 50 times as long as products by BLAS.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from softmargin.core.threads import Workers
from softmargin.data.precise import Outputs, lengths_above, longest_row, pair_error
from softmargin.data.rows import Rows
from softmargin.kernels.functions import RBF, Kernel, Laplacian, Linear, Polynomial
from softmargin.linalg.rounding import PAIR_UNIT, SLACK, UNIT, gamma, two_product, two_sum

EXP_ERROR = 5.0 * UNIT  # relative: of NumPy's exp, which a test finds by trying, and of two more operations
_BLOCK = 64
_LARGEST_DEGREE = 64
_LEAST = float(np.finfo(np.float64).tiny)


class Table(NamedTuple):
    """Kernel values high + low, each within `error` of the real one."""

    high: np.ndarray
    low: np.ndarray
    error: np.ndarray


class PreciseRows:
    """Rows and a kernel, or a matrix that is given; the first rows are support vectors."""

    def __init__(self, rows: Rows, kernel: Kernel | None) -> None:
        self.rows, self.kernel = rows, kernel
        self.n = rows.n_rows

    @staticmethod
    def of(rows: Rows, kernel: Kernel | None) -> "PreciseRows | None":
        """None for kernels whose values are not known any better."""
        is_known = isinstance(kernel, Linear | RBF | Laplacian | None) or (
            isinstance(kernel, Polynomial) and kernel.degree <= _LARGEST_DEGREE
        )
        return PreciseRows(rows, kernel) if is_known else None

    def work(self, m: int) -> int:
        """How many products sums over m support vectors take."""
        return self.n * m * (1 if self.kernel is None else longest_row(self.rows))

    def outputs(self, beta: np.ndarray, workers: Workers) -> Outputs:
        """sum_j beta_j K_ij for every row i, over the first rows, as many as there are beta."""
        from softmargin.data import _precise

        f, low, error = np.empty((3, self.n))
        m, sizes = beta.size, np.abs(beta)
        none = np.empty(0, dtype=np.int32)

        def block(lo: int, hi: int) -> None:
            with np.errstate(all="ignore"):
                table = self._table(lo, hi, m)
                high = np.ascontiguousarray(table.high)
                flat = high.ravel(), none, none, hi - lo, m, False
                _precise.dot(*flat, beta, np.arange(hi - lo), f[lo:hi], low[lo:hi])
                low[lo:hi] += table.low @ beta
                own = table.error @ sizes + gamma(m + 4) * (np.abs(table.low) @ sizes)
                error[lo:hi] = (own + (m + 8) * PAIR_UNIT * (np.abs(high) @ sizes)) * SLACK * (1.0 + gamma(m))
                error[lo:hi] += 8 * m * _LEAST
                is_bad = ~np.isfinite(f[lo:hi] + low[lo:hi] + error[lo:hi])
                f[lo:hi][is_bad], low[lo:hi][is_bad], error[lo:hi][is_bad] = 0.0, 0.0, np.inf

        workers.map(block, [(lo, min(lo + _BLOCK, self.n)) for lo in range(0, self.n, _BLOCK)])
        return Outputs(f, low, error)

    def _table(self, lo: int, hi: int, m: int) -> Table:
        """The values of the rows lo .. hi - 1 and the first m rows."""
        kernel, left, right = self.kernel, slice(lo, hi), slice(m)
        if kernel is None:
            values = self.rows.densified(left, np.float64)[:, right]
            return Table(values, np.zeros_like(values), np.zeros_like(values))
        k = longest_row(self.rows)
        share = 2.0 * pair_error(self.rows, k)
        sum_of_lengths = np.add.outer(self._lengths[left], self._lengths[right])
        if isinstance(kernel, Laplacian):
            distance, low = self._distances(lo, hi, m)
            return _power(kernel.gamma, distance, low, 8.0 * share * np.sqrt(k) * sum_of_lengths)
        high, low = self._products(lo, hi, m)
        if isinstance(kernel, RBF):
            (own, own_low), (others, others_low) = self._squares[:, left, None], self._squares[:, right]
            both, rest = two_sum(own, others)
            distance, more = two_sum(both, -2.0 * high)
            rest += more + own_low + others_low - 2.0 * low
            return _power(kernel.gamma, *two_sum(distance, rest), share * np.square(sum_of_lengths))
        reach = np.outer(self._lengths[left], self._lengths[right])
        if isinstance(kernel, Polynomial):
            return _polynomial(kernel, high, low, reach, share)
        return Table(high, low, share * reach)

    @cached_property
    def _lengths(self) -> np.ndarray:
        return lengths_above(self.rows)

    @cached_property
    def _squares(self) -> np.ndarray:
        """|x_i|^2, high and low."""
        found = np.empty((2, self.n))
        for i in range(self.n):
            found[:, i] = self._row_products(i, i, i + 1)[:, 0]
        return found

    def _products(self, lo: int, hi: int, m: int) -> np.ndarray:
        """Of the rows lo .. hi - 1 and the first m rows, high and low."""
        return np.stack([self._row_products(i, 0, m) for i in range(lo, hi)], axis=1)

    def _row_products(self, i: int, first: int, last: int) -> np.ndarray:
        from softmargin.data import _precise

        [row] = self.rows.densified(slice(i, i + 1), np.float64)
        high, low = out = np.empty((2, last - first))
        _precise.dot(*self.rows.flat, row, np.arange(first, last), high, low)
        return out

    def _distances(self, lo: int, hi: int, m: int) -> np.ndarray:
        """|x_i - x_j|_1, high and low."""
        from softmargin.kernels import _precise

        out = np.empty((2, hi - lo, m))
        for r, row in enumerate(self.rows.densified(slice(lo, hi), np.float64)):
            _precise.l1(*self.rows.flat, row, m, out[0, r], out[1, r])
        return out


def _power(rate: float, distance: np.ndarray, low: np.ndarray, off: np.ndarray) -> Table:
    """exp(-rate (distance + low)), where distances are off by at most `off`."""
    exponent, rest = two_product(rate, np.maximum(distance, 0.0))
    rest = rest + rate * low
    values = np.exp(-exponent) * (1.0 - rest)
    share = np.expm1(rate * off * (1.0 + 8.0 * UNIT)) + np.square(rest) + EXP_ERROR
    share = np.where(share < 0.5, share / (1.0 - np.minimum(share, 0.5)), np.inf)
    return Table(values, np.zeros_like(values), np.where(values > 0.0, share * values, 0.0) + 2.0 * _LEAST)


def _polynomial(kernel: Polynomial, high: np.ndarray, low: np.ndarray, reach: np.ndarray, share: float) -> Table:
    """(rate (high + low) + coef0)^degree."""
    base, rest = two_product(kernel.gamma, high)
    rest = rest + kernel.gamma * low
    base, more = two_sum(base, kernel.coef0)
    base, rest = two_sum(base, rest + more)
    value, value_rest = np.ones_like(high), np.zeros_like(high)
    for _ in range(kernel.degree):
        product, error = two_product(value, base)
        value, value_rest = two_sum(product, error + value * rest + value_rest * base)
    largest = (kernel.gamma * reach + abs(kernel.coef0)) * SLACK
    error = largest**kernel.degree * np.expm1(kernel.degree * (share + 32.0 * PAIR_UNIT)) * (1.0 + 1e-9)
    return Table(value, value_rest, error + 8 * _LEAST)
