"""From a point inside the box to one with variables exactly at their bounds.

At the solution each variable is at a bound, with a multiplier there, or inside, with none. Of x and z (t and s) one
goes to zero and the other does not: the smaller decides. Variables at bounds are put there, and those inside take up
the difference, in two ways. V'beta becomes the w of the interior point again, with the sum right, by the correction of
least norm, each variable measured by its room. Or, where they are no more than the rank, they are solved for: the
minimum over them, with the others fixed, which is exact once the partition is. Where a correction leaves the box, the
box wins, and the sum is put right.
"""

import numpy as np

from softmargin.solvers.interior.low_rank import LowRankQP, Point, beta_of, weights_of

_NEGLIGIBLE = 1e-15  # eigenvalues of the scaled system, as a share of the largest
_REFINEMENTS = 3


def crossed(qp: LowRankQP, point: Point) -> list[np.ndarray]:
    """Variables within their box, with exact bounds, in one way or two. Far from the solution they can be worse than
    the point they were made from.
    """
    x, t, z, s = point.vectors[:4]
    beta = beta_of(qp, point)
    at_lo, at_hi = (x < z) & (x <= t), (t < s) & (t < x)
    beta[at_lo], beta[at_hi] = qp.lo[at_lo], qp.hi[at_hi]
    free = np.flatnonzero(~(at_lo | at_hi))
    if not free.size:
        return [beta]
    restored = beta.copy()
    _restore_weights(qp, free, np.minimum(x, t)[free], weights_of(qp, point), restored)
    ways = [restored]
    if free.size <= qp.V.shape[1]:
        _minimise_over(qp, free, beta)
        ways.append(beta)
    for way in ways:
        _put_right(qp, free, way)
    return ways


def _put_right(qp: LowRankQP, free: np.ndarray, beta: np.ndarray) -> None:
    """The box first, then the sum, as far as the free variables have room."""
    beta[free] = np.clip(beta[free], qp.lo[free], qp.hi[free])
    if qp.total is not None:
        missing = qp.total - float(beta.sum())
        ways = (qp.hi[free] if missing > 0.0 else qp.lo[free]) - beta[free]
        if abs(missing) <= abs(float(ways.sum())):
            beta[free] += ways * (missing / float(ways.sum()) if missing else 0.0)


def _minimise_over(qp: LowRankQP, free: np.ndarray, beta: np.ndarray) -> None:
    """Let the free variables take the minimum with the others fixed, by Newton steps from where they are."""
    V = qp.V[free]
    m = free.size
    matrix = np.zeros((m + 1, m + 1))
    matrix[:m, :m] = V @ V.T
    if qp.total is not None:
        size = max(1.0, float(matrix[:m, :m].diagonal().max()))
        matrix[:m, m] = matrix[m, :m] = size  # the intercept in units of the diagonal
    for _ in range(_REFINEMENTS):
        w = qp.t_times(beta)
        right = np.zeros(m + 1)
        right[:m] = qp.p[free] - V @ w
        if qp.total is not None:
            right[m] = size * (qp.total - float(beta.sum()))
        beta[free] += np.linalg.lstsq(matrix, right, rcond=_NEGLIGIBLE)[0][:m]


def _restore_weights(qp: LowRankQP, free: np.ndarray, room: np.ndarray, wanted: np.ndarray, beta: np.ndarray) -> None:
    """Correct the free variables, each in proportion to its room, until V'beta is as wanted and the sum is right."""
    A = _with_ones(qp, qp.V[free])
    if qp.total is not None:
        wanted = np.append(wanted, qp.total)
    shares = A * (room / room.max())[:, None]
    matrix = shares.T @ shares
    scale = 1.0 / np.sqrt(np.where(matrix.diagonal() > 0.0, matrix.diagonal(), 1.0))
    values, vectors = np.linalg.eigh(matrix * scale * scale[:, None])
    kept = values > _NEGLIGIBLE * values[-1]
    vectors = vectors[:, kept]
    for _ in range(_REFINEMENTS):
        missed = scale * (wanted - _sums(qp, beta))
        change = scale * (vectors @ ((vectors.T @ missed) / values[kept]))
        beta[free] += (room / room.max()) * (shares @ change)


def _with_ones(qp: LowRankQP, V: np.ndarray) -> np.ndarray:
    return V if qp.total is None else np.column_stack([V, np.ones(len(V))])


def _sums(qp: LowRankQP, beta: np.ndarray) -> np.ndarray:
    """V'beta, and the sum where that is fixed."""
    w = qp.t_times(beta)
    return w if qp.total is None else np.append(w, beta.sum())
