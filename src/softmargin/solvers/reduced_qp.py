"""The small QP over cutting planes that CPA and OCAS solve in every iteration.

The planes R(w) >= <a_k, w> + e_k, k = 1..t, and R(w) >= 0 bound the risk from below. The dual of
min 1/2 |w|^2 + total * max(0, max_k <a_k, w> + e_k) is, with H = A A^T and w = -sum_k gamma_k a_k,

    min  1/2 gamma^T H gamma - e^T gamma    subject to  gamma >= 0,  sum(gamma) <= total.

A risk that may be negative has no plane R(w) >= 0. Then the sum of gamma is equal to the total.

Primal active set on a simplex; beta = gamma / total, the slack is the weight of the zero plane a = 0, e = 0 if there is
one:

    1. price: g = H beta - e / total; stop when beta.g - min g is small enough; k = argmin g enters
    2. move along v with v_k = 1, sum v = 0, (H v)_S constant, to the minimiser or to the first zero of beta_S
    3. at a zero: drop that plane from S and go to 2; at the minimiser: add k to S and go to 1

S is kept affinely independent, so H + sigma 1 1^T, which has the same minimiser on the simplex, has a
Cholesky factor R on S. A plane that depends on S has no curvature along v: step 2 ends at a zero, and the
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

import math
from dataclasses import dataclass

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.linalg.cholesky import Factor

EPS = 2.220446049250313e-16

# A Schur complement below this share of the diagonal is rounding error: the plane is affinely dependent on S.
DEPENDENT = 1e-14

# S is levelled again when its gradients differ by more than this share of the violation about to be used.
LEVEL_SHARE = 1e-2

# Pivots without a measurable change of the objective or of the gap after which rounding is all that is left:
# this many, and one more for each two members.
PATIENCE = 20

# Full levelling steps in a row that may fail to flatten the gradient before it is taken as flat.
MAX_STALLS = 3

# Relative rounding error of a gradient.
NOISE = 2.0 * EPS

# Inner products beyond these are scaled, because squares of them would leave the range of floating point.
FAR = (1e-100, 1e100)

# Sigma is at most this times the square of the shortest plane, if the zero plane has a weight; and never less than the
# other number, which is far from underflow.
MOST_SIGMA, LEAST_SIGMA = 1e6, 1e-250

# With more planes than this, a product with H gathers the rows it needs if they are less than this share.
LARGE = 256
SPARSE_SHARE = 0.25


_NO_PLANES = (
    "the cutting planes have inner products, offsets or weights that no planes can have: the features are too large or "
    "too small, or the training state is damaged. Scale the features, and fit with warm_start=False."
)


@dataclass(frozen=True)
class ReducedSolution:
    """A feasible gamma, its dual value, its duality gap and the number of pivots that led to it."""

    gamma: np.ndarray
    value: float
    gap: float
    n_pivots: int


def solve_reduced(
    H: np.ndarray,
    e: np.ndarray,
    total: float,
    start: np.ndarray | None = None,
    tol: float = 0.0,
    *,
    has_zero: bool = True,
) -> ReducedSolution:
    """Minimise 1/2 gamma^T H gamma - e^T gamma over gamma >= 0, sum(gamma) <= total.

    Parameters
    ----------
    H : array whose leading t x t block, t = len(e), is the Gram matrix of the planes
        Not copied if it is float64; rows and columns beyond t are not read.
    e : array of t offsets
    total : positive bound of the sum
    start : array of at most t entries
        Negative entries are set to zero, a sum above `total` is scaled down, missing entries are zero.
    tol : stop at this duality gap; 0 asks for what floating point allows
    has_zero : whether the zero plane is one of the planes
        If not, sum(gamma) = total but for rounding, and there must be a plane.
    """
    e = np.asarray(e, dtype=np.float64)
    t = e.size
    total = float(total)
    if not 0.0 < total < np.inf:
        raise ValueError(f"total must be a positive finite number, got {total}.")
    if H.ndim != 2 or min(H.shape) < t:
        raise ValueError(f"H must have {t} rows and columns or more, one for each entry of e, got {H.shape}.")
    if t == 0:
        return ReducedSolution(gamma=np.empty(0), value=0.0, gap=0.0, n_pivots=0)
    H = np.asarray(H[:t, :t], dtype=np.float64)
    if H.strides[0] < H.strides[1]:
        H = H.T  # symmetric: the same matrix with contiguous rows

    unit = _unit(float(H.diagonal().max()))
    H = H if unit == 1.0 else H * unit
    simplex = _Simplex(H, e * unit, total, _feasible(start, t, total), has_zero)
    try:
        beta, g = simplex.minimise(tol / total * unit / total)
    except ArithmeticError:  # a division by zero after an overflow
        raise SoftmarginError(_NO_PLANES) from None
    gamma = beta[:t] * total
    if has_zero:
        gamma = _scaled_down(gamma, total)
    slack = g[:t] * (-total / unit)  # e - H gamma
    profit = float(gamma.dot(slack))
    largest = float(slack[slack.argmax()])
    return ReducedSolution(
        gamma=gamma,
        value=0.5 * (float(e.dot(gamma)) + profit),
        gap=max(total * (max(largest, 0.0) if has_zero else largest) - profit, 0.0),
        n_pivots=simplex.n_pivots,
    )


def _unit(largest: float) -> float:
    """Return a power of two to multiply H and e with, so that squares of the entries of H can be computed."""
    if largest == 0.0 or not math.isfinite(largest) or FAR[0] < largest < FAR[1]:
        return 1.0
    return math.ldexp(1.0, min(-math.frexp(largest)[1], 1000))


def _feasible(start: np.ndarray | None, t: int, total: float) -> np.ndarray:
    """Return a copy with t entries, clipped at zero and scaled down to the bound of the sum."""
    gamma = np.zeros(t)
    if start is None:
        return gamma
    start = np.asarray(start, dtype=np.float64)
    if start.size > t:
        raise ValueError(f"start has {start.size} entries for {t} planes.")
    np.fmax(start, 0.0, out=gamma[: start.size])
    return _scaled_down(gamma, total)


def _scaled_down(gamma: np.ndarray, total: float) -> np.ndarray:
    """Scale gamma in place so that its sum is at most `total`."""
    excess = float(gamma.sum()) / total
    if excess > 1.0:
        gamma *= (1.0 - 4.0 * EPS) / excess  # a little less than needed: the sum is rounded
    return gamma


def _times(H: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return H x."""
    if x.size > LARGE:
        support = x.nonzero()[0]
        if support.size < SPARSE_SHARE * x.size:
            return x[support] @ H[support]
    return H @ x


def _first_zero(beta: np.ndarray, v: np.ndarray) -> tuple[float, int]:
    """Return the step s >= 0 at which an entry of beta + s v first is zero, and its position.

    Of several that are zero already the one that falls fastest is taken; the step is infinite if none falls.
    """
    falling = (v < -1e-300).nonzero()[0]
    if falling.size == 0:
        return math.inf, -1
    rates = v[falling]
    steps = beta[falling] / -rates
    i = steps.argmin()
    if steps[i] == 0.0:
        i = np.where(steps == 0.0, rates, 0.0).argmin()
    return float(steps[i]), int(falling[i])


def _typical_square(lengths: np.ndarray) -> float:
    """Return the square of the geometric mean of the positive lengths, 0 if there are none."""
    positive = lengths[lengths > 0.0]
    return math.exp(2.0 * float(np.log(positive).sum()) / positive.size) if positive.size else 0.0


class _Simplex:
    """Minimise 1/2 beta^T H beta - shift^T beta over the simplex.

    If there is a zero plane it is the last entry of beta.

    `factor` is that of H + sigma 1 1^T on S, its members, and carries u with R^T u = 1.
    """

    def __init__(self, H: np.ndarray, e: np.ndarray, total: float, gamma: np.ndarray, has_zero: bool) -> None:
        t = e.size
        self.H = H
        self.has_zero = has_zero
        self.shift, self.root, self.beta, self.g = np.zeros((4, t + has_zero))
        np.divide(e, total, out=self.shift[:t])
        self.sizes = np.abs(self.shift)
        np.sqrt(np.maximum(H.diagonal(), 0.0), out=self.root[:t])
        np.divide(gamma, total, out=self.beta[:t])
        if has_zero:
            self.beta[t] = max(0.0, 1.0 - self.beta.sum())
        elif not self.beta.any():
            self.beta[np.argmin(0.5 * H.diagonal() - self.shift)] = 1.0
        self.sigma = 0.0
        self.factor = Factor()
        self.n_pivots = 0

    def minimise(self, enough: float) -> tuple[np.ndarray, np.ndarray]:
        """Pivot until the gap is at most `enough` or only rounding is left.

        Returns beta and its gradient where the gap was smallest.
        """
        beta, g, t = self.beta, self.g, len(self.H)
        best_gap = marked_gap = last_spread = decrease = math.inf
        marked_pivots = stalls = 0
        gained = 0.0
        share = LEVEL_SHARE
        loaded = False
        banned: list[int] = []
        first = best = (beta, g)
        first_value = best_value = 0.0
        first_gap = math.inf
        while True:
            beta /= beta.sum()
            np.subtract(_times(self.H, beta[:t]), self.shift[:t], out=g[:t])
            g[t:] = 0.0
            mu = float(beta.dot(g))
            gap = mu - float(g[g.argmin()])
            profit = float(beta.dot(self.shift))
            length = float(beta.dot(self.root))
            scale = length * length + float(beta.dot(self.sizes))
            value = 0.5 * (profit - mu)
            if gap < best_gap:
                best, best_gap, best_value = (beta.copy(), g.copy()), gap, value
                if self.n_pivots == 0:
                    first, first_gap, first_value = best, gap, value
            if gap <= enough or self.n_pivots >= 4 * beta.size + 100:
                break
            gained += decrease
            if gap < 0.5 * marked_gap or gained > EPS * scale:
                marked_gap, marked_pivots, gained = gap, self.n_pivots, 0.0
            elif self.n_pivots > marked_pivots + PATIENCE + self.factor.order // 2:
                break
            # only differences matter from here on; a large constant in g would drown them in the solves
            g -= mu
            if not loaded:
                loaded = True
                before = self.n_pivots
                self.load()
                if self.n_pivots > before:
                    decrease = math.inf
                    continue

            S = self.factor.members
            if S.size == 0:  # inner products always leave a plane to stand on
                raise SoftmarginError(_NO_PLANES)
            slopes = np.abs(g[S])
            spread = float(slopes[slopes.argmax()])
            errors = length * self.root + self.sizes
            own = errors[S]
            noise = max(0.0, NOISE * float(own[own.argmax()]))
            prices = g.copy()
            prices[S] = 0.0
            for k in banned:
                prices[k] = 0.0
            entering = int(prices.argmin())
            while noise < -prices[entering] <= NOISE * errors[entering]:
                prices[entering] = 0.0
                entering = int(prices.argmin())
            violation = -float(prices[entering])

            if stalls < MAX_STALLS and spread > max(noise, share * violation):
                if spread > 0.5 * last_spread:
                    stalls += 1
                    loaded = stalls != 1  # the factor has drifted: build it again
                last_spread = spread
                decrease = self.level()
                if self.factor.order < S.size:
                    stalls, last_spread = 0, math.inf
                if decrease > EPS * EPS * scale:
                    banned.clear()
            elif violation > noise:
                decrease = self.bring_in(entering)
                stalls, last_spread = 0, math.inf
                if decrease > EPS * EPS * scale:
                    banned.clear()
                    share = LEVEL_SHARE
                elif share > 0.0:
                    share = 0.0  # v may be large and turn a small slope in S against k: level S, try again
                else:
                    banned.append(entering)
            else:
                break
        # the value rises in exact arithmetic; where only rounding differs, the gap says which is better
        loss = first_value - best_value
        return first if loss > 0.0 and (first_gap <= best_gap or loss > best_gap) else best

    def row(self, k: int) -> np.ndarray:
        """Return row k of H + sigma 1 1^T, the zero plane included."""
        row = np.zeros(self.beta.size)
        if k < len(self.H):
            row[: len(self.H)] = self.H[k]
        row += self.sigma
        return row

    def load(self) -> None:
        """Factorise the planes with beta > 0; those that depend on the others are moved to a bound."""
        if not (self.beta >= 0.0).all():  # NaN, too: only numbers that overflow or that no planes have lead here
            raise SoftmarginError(_NO_PLANES)
        supported = self.beta.nonzero()[0][::-1]
        m = int(self.has_zero and self.beta[-1] > 0.0)  # the zero plane comes first
        planes = supported[m:]
        self.sigma = self._sigma(planes, bool(m))
        A = np.full((supported.size, supported.size), self.sigma)
        A[m:, m:] += self.H[planes][:, planes]
        self.factor.refill(supported, A, np.ones(supported.size), DEPENDENT)
        left = []
        for k in supported[self.factor.order :]:  # none, unless a plane depends on those before
            row = self.row(k)
            y = self.factor.forward(row[self.factor.members])
            pivot = row[k] - y.dot(y)
            if pivot > DEPENDENT * row[k]:
                self.factor.append(k, y, pivot, 1.0)
            else:
                left.append(k)
        for k in left:
            self.bring_in(k)

    def _sigma(self, planes: np.ndarray, has_weight: bool) -> float:
        """Return sigma for a factor of these planes, and of the zero plane if that has a weight.

        Sigma has to be as large as planes that depend on each other. With the zero plane in S no others do, and a large
        sigma would only drown planes that are much shorter than most.
        """
        typical = _typical_square(self.root[planes]) or _typical_square(self.root) or 1.0
        if not has_weight or not self.root.any():
            return typical
        shortest = float(self.root[self.root > 0.0].min())
        return min(typical, max(MOST_SIGMA * shortest * shortest, LEAST_SIGMA))

    def bring_in(self, k: int) -> float:
        """Move plane k into S along v, dropping members that reach zero; return the decrease.

        If k depends on S there is (nearly) no curvature along v: a bound is met first.
        """
        beta, g, factor = self.beta, self.g, self.factor
        row = self.row(k)
        diagonal = float(row[k])
        decrease = 0.0
        while True:
            self.n_pivots += 1
            S = self.factor.members
            y = factor.forward(row[S])
            pivot = diagonal - float(y.dot(y))
            if S.size == 0:
                if not pivot > 0.0:
                    raise SoftmarginError(_NO_PLANES)
                factor.append(k, y, pivot, 1.0)
                return decrease
            u = factor.carried
            uu = float(u.dot(u))
            level = (float(y.dot(u)) - 1.0) / uu  # (H v)_S
            v = factor.backward(level * u - y)
            curvature = max(pivot, 0.0) + level * level * uu
            slope = float(g[k] + g[S].dot(v))
            sign = 1.0
            if slope >= 0.0:
                if beta[k] <= 0.0:
                    return decrease
                sign = -1.0
                v *= -1.0

            weights = beta[S]
            if pivot > DEPENDENT * diagonal:
                step = abs(slope) / curvature
                moved = weights + step * v
                if moved[moved.argmin()] >= 0.0 and beta[k] + sign * step >= 0.0:
                    beta[S] = moved
                    beta[k] += sign * step
                    factor.append(k, y, pivot, 1.0)
                    return decrease + 0.5 * step * abs(slope)

            step, blocker = _first_zero(weights, v)
            if sign < 0.0 and beta[k] <= step:
                step, blocker = float(beta[k]), -1
            if step == math.inf:  # only rounding can do this: sum v = 0 and v_k = 1
                return decrease
            if beta[k] <= 0.0 and abs(slope) < curvature * step and pivot <= DEPENDENT * diagonal:
                return decrease  # the violation is as small as the rounding errors of H
            decrease += step * (abs(slope) - 0.5 * curvature * step)
            beta[S] = np.maximum(weights + step * v, 0.0)
            beta[k] += sign * step
            if blocker < 0:
                beta[k] = 0.0
                return decrease
            g[S] += sign * step * level
            g[k] += sign * step * (level + curvature)
            beta[S[blocker]] = 0.0
            factor.delete(blocker)

    def level(self) -> float:
        """Step towards the minimiser over S, drop the first member that reaches zero; return the decrease.

        The step length is that of the real quadratic, so an inaccurate factor costs speed and never ascent.
        """
        self.n_pivots += 1
        S, u = self.factor.members, self.factor.carried
        slopes = self.g[S]
        d = self.factor.forward(slopes.copy())
        d = self.factor.backward((float(d.dot(u)) / float(u.dot(u))) * u - d)
        slope = float(slopes.dot(d))
        if slope >= 0.0:
            return 0.0
        direction = np.zeros(self.beta.size)
        direction[S] = d
        direction = direction[: len(self.H)]
        curvature = float(direction @ _times(self.H, direction))
        step, blocker = _first_zero(self.beta[S], d)
        if -slope < curvature * step and curvature > 0.0:
            step, blocker = -slope / curvature, -1
        elif step == math.inf:
            return 0.0
        self.beta[S] = np.maximum(self.beta[S] + step * d, 0.0)
        if blocker >= 0:
            self.beta[S[blocker]] = 0.0
            self.factor.delete(blocker)
        return -step * (slope + 0.5 * curvature * step)
