"""The sum of hinges with an intercept that is fixed: its value, its cutting plane, and the exact line search.

    R(f) = sum_i max(0, v_i (unit sign(v_i) - f_i))
    G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df),  k >= 0                      the search of OCAS

The symbols are those of `hinges`; the intercept is in f already, or there is none. The derivative of G has breakpoints
t_i = (unit sign(v_i) - f_i) / df_i with weights q_i = v_i df_i; `breakpoints` finds its zero.

Reference: V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008, eq. (7)
and Appendix A. Symbols: A_0, B_0 -> A0, B0; B_i -> -C v_i df_i; C_i -> C (|v_i| - v_i f_i). Departs from the paper:
selection in linear time instead of sorting; row weights; targets.
"""

from math import fsum, inf

import numpy as np

from softmargin.problems.breakpoints import (
    SAMPLE_ROWS,
    bracket,
    positive,
    row_blocks,
    widening,
    zero,
)
from softmargin.problems.hinges import Hinges
from softmargin.problems.line_rows import LineRows, RowsHere


def risk(f: np.ndarray, hinges: Hinges) -> float:
    """R(f)."""
    from softmargin.problems import _hinge

    v, unit = hinges.v, hinges.unit
    return fsum(hinges.workers.map(lambda lo, hi: _hinge.risk(f[lo:hi], v[lo:hi], unit), row_blocks(f.size)))


def follow(
    f: np.ndarray,
    df: np.ndarray,
    hinges: Hinges,
    k: float,
    k_plane: float,
    f_new: np.ndarray,
    out: np.ndarray,
    bits: np.ndarray,
) -> tuple[float, float]:
    """f + k df into `f_new` (unless empty), coefficients c of the plane at f + k_plane df into `out`.

    One bit a row, whether c_i is not zero, goes to `bits`. Returns the risk at f + k df, and the sum of |c_i|. The
    plane is R >= <c, .> + unit sum_i |c_i|, with equality where it was made.
    """
    from softmargin.problems import _hinge, _witness

    v, unit = hinges.v, hinges.unit

    def block(lo: int, hi: int) -> tuple[float, float]:
        sums = _hinge.follow(f[lo:hi], df[lo:hi], v[lo:hi], unit, k, k_plane, f_new[lo:hi], out[lo:hi])
        _witness.pack_bits(out[lo:hi], bits[lo // 8 :])
        return sums

    parts = hinges.workers.map(block, row_blocks(f.size))
    return fsum(part[0] for part in parts), fsum(part[1] for part in parts)


def minimise_along(f: np.ndarray, df: np.ndarray, hinges: Hinges, A0: float, B0: float, C: float) -> float:
    """The exact minimiser over k >= 0 of G(k) = 1/2 A0 k^2 + B0 k + C R(f + k df).

    If A0 = 0 and G falls for ever or stays constant from some k on, this is the last breakpoint.
    """
    return minimise_over(RowsHere(f, df, hinges), A0, B0, C)


def minimise_over(line: LineRows, A0: float, B0: float, C: float) -> float:
    """The same for any line."""
    n = line.n_rows
    sample = None
    if n > 4 * SAMPLE_ROWS:
        f_few, df_few, v_few = line.sample(min(max(n // 64, SAMPLE_ROWS // 4), SAMPLE_ROWS))
        q = v_few * df_few
        with np.errstate(over="ignore"):
            targets = line.unit * np.sign(v_few)
            t = np.divide(targets - f_few, df_few, out=np.full(q.size, inf), where=q != 0.0)
        sample = t, q
    lo, hi = inf, 0.0
    left_fails = right_fails = True
    for deviations in widening(sample is not None):
        wide = (0.0, inf)
        if sample is not None and deviations < inf:
            wide = bracket(*sample, None, C * n / sample[0].size, B0, A0, deviations, 0.0, inf)
        lo = min(lo, wide[0]) if left_fails else lo
        hi = max(hi, wide[1]) if right_fails else hi
        (t, q), (sum_q,) = line.steps(lo, hi)
        slope = B0 - C * (sum_q + positive(q))
        if lo == 0.0 and slope >= 0.0:
            return 0.0
        left_fails = lo > 0.0 and A0 * lo + slope >= 0.0
        right_fails = hi < inf and A0 * hi + B0 - C * (sum_q - positive(-q)) <= 0.0
        if not (left_fails or right_fails):
            break
    return zero(t, C * np.abs(q), slope, A0, lo, hi)
