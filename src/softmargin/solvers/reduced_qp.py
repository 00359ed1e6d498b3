"""The small QP over cutting planes that CPA and OCAS solve in every iteration.

The planes R(w) >= <a_k, w> + e_k, k = 1..t, and R(w) >= 0 bound the risk from below. The dual of
min 1/2 |w|^2 + total * max(0, max_k <a_k, w> + e_k) is, with H = A A^T and w = -sum_k gamma_k a_k,

    min  1/2 gamma^T H gamma - e^T gamma    subject to  gamma >= 0,  sum(gamma) <= total.

Primal active set on a simplex; beta = gamma / total, the slack is the weight of the zero plane a = 0, e = 0:

    1. price: g = H beta - e / total; stop when beta.g - min g is small enough; k = argmin g enters
    2. move along v with v_k = 1, sum v = 0, (H v)_S constant, to the minimiser or to the first zero of beta_S
    3. at a zero: drop that plane from S and go to 2; at the minimiser: add k to S and go to 1

S is kept affinely independent, so H + sigma 1 1^T, which has the same minimiser on the simplex, has a
Cholesky factor on S. A plane that depends on S has no curvature along v: step 2 ends at a zero, and the
factor stays regular.

Reference: V. Franc and S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines",
ICML 2008, eq. (3) (the problem); P. Wolfe, "Finding the nearest point in a polytope", Mathematical
Programming 11, 1976 (affinely independent sets).

Symbols: alpha (OCAS) -> gamma; b_k -> e_k; C -> total; corral (Wolfe) -> S, `members`.

Departs from the papers: Wolfe's problem has no linear term. The entering plane joins the factor only at the
end of its move, so a pivot needs one pair of triangular solves. Gradients are recomputed from H at each
pricing, and a Newton step on S follows when they are not flat there, so rounding errors do not pile up. A
plane that entered without a decrease is barred until there is one, which ends cycles on ties.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ReducedSolution:
    """A feasible gamma, its dual value, its duality gap and the number of pivots that led to it."""

    gamma: np.ndarray
    value: float
    gap: float
    n_pivots: int


def solve_reduced(
    H: np.ndarray, e: np.ndarray, total: float, start: np.ndarray | None = None, tol: float = 0.0
) -> ReducedSolution:
    """Minimise 1/2 gamma^T H gamma - e^T gamma over gamma >= 0, sum(gamma) <= total.

    Parameters
    ----------
    H : array whose leading t x t block, t = len(e), is the Gram matrix of the planes
        Not copied if its rows are contiguous float64; rows and columns beyond t are not read.
    e : array of t offsets
    total : positive bound of the sum
    start : array of at most t entries
        Negative entries are set to zero, a sum above `total` is scaled down, missing entries are zero.
    tol : stop at this duality gap; 0 asks for what floating point allows
    """
    from softmargin.solvers import _reduced_qp as kernel

    e = np.array(e, dtype=np.float64)
    t = e.size
    total = float(total)
    if not total > 0.0 or not np.isfinite(total):
        raise ValueError(f"total must be a positive finite number, got {total}.")
    if H.ndim != 2 or min(H.shape) < t:
        raise ValueError(f"H must have at least {t} rows and columns, one for each entry of e, got {H.shape}.")
    if t == 0:
        return ReducedSolution(gamma=e, value=0.0, gap=0.0, n_pivots=0)
    flat, stride = _flat_rows(H, t)

    first = _feasible(start, t, total)
    beta = np.empty(t + 1)
    beta[:t] = first / total
    beta[t] = max(0.0, 1.0 - beta[:t].sum())
    n_pivots = kernel.solve(flat, stride, e, total, beta, float(tol), 4 * t + 100)

    gamma = _feasible(beta[:t] * total, t, total)
    value, gap = _value_and_gap(H, e, total, gamma)
    if n_pivots > 0:
        # the value rises in exact arithmetic; where only rounding differs, the gap says which is better
        first_value, first_gap = _value_and_gap(H, e, total, first)
        if first_value > value and (first_gap <= gap or first_value - value > gap):
            gamma, value, gap = first, first_value, first_gap
    return ReducedSolution(gamma=gamma, value=value, gap=gap, n_pivots=n_pivots)


def _flat_rows(H: np.ndarray, t: int) -> tuple[np.ndarray, int]:
    """Return the rows of H as one flat array and the distance between rows, without a copy if possible."""
    usable = H.dtype == np.float64 and H.flags.writeable and H.flags.aligned and H.strides[1] == H.itemsize
    if not usable or H.strides[0] % H.itemsize or H.strides[0] < t * H.itemsize:
        return np.array(H[:t, :t], dtype=np.float64, order="C").reshape(-1), t
    stride = H.strides[0] // H.itemsize
    length = (t - 1) * stride + t
    return np.lib.stride_tricks.as_strided(H, shape=(length,), strides=(H.itemsize,)), stride


def _feasible(gamma: np.ndarray | None, t: int, total: float) -> np.ndarray:
    """Return a copy with t entries, clipped at zero and scaled down to the bound of the sum."""
    repaired = np.zeros(t)
    if gamma is None:
        return repaired
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.size > t:
        raise ValueError(f"start has {gamma.size} entries for {t} planes.")
    repaired[: gamma.size] = np.where(gamma > 0.0, gamma, 0.0)
    if repaired.sum() > total:
        # a little less than needed, so that the rounded sum passes the same test
        repaired *= total / repaired.sum() * (1.0 - 4.0 * np.finfo(np.float64).eps)
    return repaired


def _value_and_gap(H: np.ndarray, e: np.ndarray, total: float, gamma: np.ndarray) -> tuple[float, float]:
    """Return the dual objective of gamma and its duality gap."""
    t = e.size
    support = np.flatnonzero(gamma)
    weights = gamma[support]
    product = weights @ H[support, :t]
    slack = e - product
    value = float(weights @ (e[support] - 0.5 * product[support]))
    gap = total * max(0.0, float(slack.max())) - float(weights @ slack[support])
    return value, max(0.0, gap)
