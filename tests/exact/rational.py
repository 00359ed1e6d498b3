"""The exact optimum of a small convex quadratic program, in integers and fractions: no rounding anywhere.

    max p'a - 1/2 a'Q a   over   0 <= a_i <= hi_i (None: no limit),   A a = right

A primal active set method. The free variables move to the maximiser on their face; a variable that meets a bound on
the way is fixed there; at the maximiser a fixed variable whose multiplier has the wrong sign is set free. Ties go to
the smallest index (Bland's rule), so that the method ends. Linear systems are solved by fraction-free elimination
(E. H. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", Mathematics of Computation
22, 1968), also singular ones: a vector in the null space along which the objective rises is a direction to follow.

What is returned proves itself: `lower` is the value of a feasible point, and `upper` that of a point of the dual,

    1/2 a'Q a + sum_i hi_i max(0, r_i) + right' nu,   r = p - Q a - A' nu,

so the optimum lies between them whatever the method did. If Q is positive semi-definite they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, gcd, lcm

# More pivots than any problem of a few dozen variables needs. What was found by then is returned.
_MOST_PIVOTS = 2_000


@dataclass(frozen=True)
class BoxQP:
    """The program above. Q, hi, p and right hold any fractions; A is integer.

    Unless zero is feasible, `start` is a feasible point to begin with.
    """

    Q: Sequence[Sequence[Fraction]]
    p: Sequence[Fraction | int]
    hi: Sequence[Fraction | None]
    A: Sequence[Sequence[int]]
    right: Sequence[Fraction] = ()
    start: Sequence[Fraction] = ()


@dataclass(frozen=True)
class Optimum:
    """A feasible point, and what it proves: the optimum lies in [lower, upper]."""

    a: list[Fraction]
    lower: Fraction
    upper: Fraction


def maximise(qp: BoxQP) -> Optimum:
    """The optimum of a convex program, exactly."""
    Q, unit = common_denominator(qp.Q)
    # In units of a / unit the matrix is integer; in units of 1 / parts of those the limits are integers as well.
    bounds = [limit for limit in qp.hi if limit is not None]
    parts = lcm(
        *((value / unit).denominator for value in [*bounds, *qp.right]),
        *(Fraction(value).denominator for value in qp.p),
    )
    hi = [None if limit is None else int(limit / unit * parts) for limit in qp.hi]
    right = [int(value / unit * parts) for value in qp.right] or [0] * len(qp.A)
    start = [value / unit * parts for value in qp.start] or [Fraction(0)] * len(hi)
    x, nu = _active_set(Q, [int(parts * p) for p in qp.p], hi, qp.A, right, start)
    a = [value * unit / parts for value in x]
    nu = [value / parts for value in nu]
    return Optimum(a, *_proof(qp, a, nu))


def common_denominator(rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[int]], Fraction]:
    """Integers and the positive number `unit` with rows = integers / unit."""
    below = lcm(*(value.denominator for row in rows for value in row))
    integers = [[int(value * below) for value in row] for row in rows]
    shared = gcd(*(value for row in integers for value in row)) or 1
    return [[value // shared for value in row] for row in integers], Fraction(below, shared)


def dyadic(values: Sequence[float]) -> tuple[list[int], int]:
    """Integers and an exponent e with values = integers * 2^e, exactly."""
    parts = [frexp(float(value)) for value in values]
    least = min((exponent for mantissa, exponent in parts if mantissa), default=0)
    return [int(mantissa * 2**53) << (exponent - least) if mantissa else 0 for mantissa, exponent in parts], least - 53


def _active_set(
    Q: list[list[int]],
    p: list[int],
    hi: list[int | None],
    A: Sequence[Sequence[int]],
    right: list[int],
    start: list[Fraction],
) -> tuple[list[Fraction], list[Fraction]]:
    n = len(p)
    x = start
    free = [i for i in range(n) if x[i] and x[i] != hi[i]]
    nu = [Fraction(0)] * len(A)
    for _ in range(_MOST_PIVOTS):
        fixed = [i for i in range(n) if i not in free and x[i]]  # at the upper bound, or at zero where it is no matter
        goal = [p[i] - sum(Q[i][j] * int(x[j]) for j in fixed) for i in free]
        balance = [total - sum(row[j] * int(x[j]) for j in fixed) for row, total in zip(A, right, strict=True)]
        matrix = [[Q[i][j] for j in free] + [row[i] for row in A] for i in free]
        matrix += [[row[j] for j in free] + [0] * len(A) for row in A]
        found = solve_symmetric(matrix, goal + balance)
        if found.rise is not None:
            step = [Fraction(value) for value in found.rise[: len(free)]]
            length = None
        else:
            step = [Fraction(v, found.denominator) - x[i] for i, v in zip(free, found.solution, strict=False)]
            length = Fraction(1)
        blocked = None
        for i, change in sorted(zip(free, step, strict=True)):
            if change < 0:
                ratio = -x[i] / change
            elif change > 0 and hi[i] is not None:
                ratio = (hi[i] - x[i]) / change
            else:
                continue
            if length is None or ratio < length:
                length, blocked = ratio, i
        if length is None:
            raise ArithmeticError("the program is unbounded: some variable without limit can grow for ever")
        for i, change in zip(free, step, strict=True):
            x[i] += length * change
        if blocked is not None:
            free.remove(blocked)
            continue
        if found.rise is not None:
            continue
        nu = [Fraction(v, found.denominator) for v in found.solution[len(free) :]]
        entering = _first_violation(Q, p, hi, A, x, nu, free)
        if entering is None:
            break
        free.append(entering)
    return x, nu


def _first_violation(Q, p, hi, A, x, nu, free) -> int | None:
    """The first fixed variable that wants to leave its bound."""
    below = lcm(*(value.denominator for value in x), *(value.denominator for value in nu))
    integers, multipliers = [int(v * below) for v in x], [int(v * below) for v in nu]
    for i in range(len(p)):
        if i in free:
            continue
        slope = p[i] * below - sum(q * v for q, v in zip(Q[i], integers, strict=True) if v)
        slope -= sum(row[i] * v for row, v in zip(A, multipliers, strict=True))
        if (slope > 0 and (hi[i] is None or x[i] < hi[i])) or (slope < 0 and x[i] > 0):
            return i
    return None


@dataclass(frozen=True)
class Solved:
    """Of M z = b with a symmetric integer matrix M: z = solution / denominator; or, if there is none, a vector `rise`
    with M rise = 0 and rise.b > 0."""

    solution: list[int]
    denominator: int
    rise: list[int] | None = None


def solve_symmetric(matrix: list[list[int]], right: list[int]) -> Solved:
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    pivot_columns: list[int] = []
    last = 1
    for column in range(n):
        rank = len(pivot_columns)
        candidates = [r for r in range(rank, n) if rows[r][column]]
        if not candidates:
            continue
        best = min(candidates, key=lambda r: abs(rows[r][column]))
        rows[rank], rows[best] = rows[best], rows[rank]
        pivot_row, pivot = rows[rank], rows[rank][column]
        for r in range(n):
            if r == rank:
                continue
            factor = rows[r][column]
            if factor:
                rows[r] = [(pivot * v - factor * w) // last for v, w in zip(rows[r], pivot_row, strict=True)]
            elif pivot != last:
                rows[r] = [pivot * v // last for v in rows[r]]
        last = pivot
        pivot_columns.append(column)
    # Every pivot row now reads  last * z[its column] + (columns without pivot) = its right side.
    for column in range(n):
        if column in pivot_columns:
            continue
        null = [0] * n
        null[column] = last
        for row, at in zip(rows, pivot_columns, strict=False):
            null[at] = -row[column]
        rise = sum(v * b for v, b in zip(null, right, strict=True))
        if rise:
            shared = gcd(*null) * (1 if rise > 0 else -1)
            return Solved([], 1, [v // shared for v in null])
    solution = [0] * n
    for row, at in zip(rows, pivot_columns, strict=False):
        solution[at] = row[n]
    return Solved(solution, last)


def _proof(qp: BoxQP, a: list[Fraction], nu: list[Fraction]) -> tuple[Fraction, Fraction]:
    """The values of a feasible point and of a point of the dual; both are checked here, by the definition."""
    n = len(a)
    for i in range(n):
        limit = qp.hi[i]
        if a[i] < 0 or (limit is not None and a[i] > limit):
            raise ArithmeticError(f"variable {i} lies outside its bounds")
    right = qp.right or [Fraction(0)] * len(qp.A)
    for row, total in zip(qp.A, right, strict=True):
        if sum(c * v for c, v in zip(row, a, strict=True)) != total:
            raise ArithmeticError("an equation does not hold")
    Qa = [sum((qp.Q[i][j] * a[j] for j in range(n) if a[j]), Fraction(0)) for i in range(n)]
    curvature = sum((a[i] * Qa[i] for i in range(n)), Fraction(0)) / 2
    lower = sum((qp.p[i] * a[i] for i in range(n)), -curvature)
    upper = curvature + sum((total * v for total, v in zip(right, nu, strict=True)), Fraction(0))
    for i in range(n):
        slope = qp.p[i] - Qa[i] - sum(row[i] * v for row, v in zip(qp.A, nu, strict=True))
        if slope > 0:
            limit = qp.hi[i]
            if limit is None:
                raise ArithmeticError(f"variable {i} has no limit and could still grow")
            upper += limit * slope
    return lower, upper
