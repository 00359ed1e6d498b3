"""The exact objective of a stored model and the exact optimum of its training problem, from the definition.

Nothing here uses the library: a problem is what `docs/notation.md` says, and a model is what its fitted attributes
hold, every float64 taken as the rational number that it is. A training problem is a list of tasks, one for each
certificate of the model. All tasks have losses c_l max(0, m_l - margin_l):

    linear     1/2 |w|^2 + sum_l c_l max(0, m_l - w.v_l - t.B_l) + t.total   v_l = y_i x_i, x_i - x_j or z_ik x_i
    kernel     1/2 beta'K beta + sum_l c_l max(0, m_l - z_l (f_l + b)) + b total          f_l = (K beta)_i, i = row_l

with free variables t: the intercept, or the thresholds. The losses of a linear task may be squared. m_l is 1 unless the
task is a regression, which has two losses a row, m = y - epsilon for z = 1 and m = -y - epsilon for z = -1, or
one-class, where m = 0. The total is zero unless it is one-class, nu sum(s). The joint problem of several classes has
losses c_i max over k of (1[k != y_i] + w_k.x_i - w_(y_i).x_i). Values of kernels with exp are known up to 2^-399 each,
and everything that follows from them is a bracket that takes this into account; all the rest is exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from exact.rational import BoxQP, dyadic, maximise

# Kernel values with exp are rounded to multiples of 2^-EXP_BITS.
EXP_BITS = 400
EXP_ERROR = Fraction(1, 2 ** (EXP_BITS - 1))
_EXP_IS_ZERO = 300  # exp(-300) < 2^-400
_EXP_DIGITS = 150


@dataclass(frozen=True)
class Bracket:
    """Two numbers that enclose the true one, and are equal if it is known exactly."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class LinearTask:
    """A task over vectors v_l with coefficients B_l of the free variables t; `ascending` keeps t in order."""

    vectors: Sequence[Sequence[Fraction]]
    costs: Sequence[Fraction]
    coefficients: Sequence[Sequence[int]]
    ascending: bool = False
    margins: Sequence[Fraction] | None = None
    total: Fraction = Fraction(0)
    squared: bool = False

    def primal(self, w: Sequence[Fraction], t: Sequence[Fraction]) -> Bracket:
        if self.ascending and any(before > after for before, after in pairwise(t)):
            raise ArithmeticError("the thresholds do not ascend")
        value = dot(w, w) / 2 + sum(t, Fraction(0)) * self.total
        margins = self.margins or [Fraction(1)] * len(self.costs)
        for v, cost, B, m in zip(self.vectors, self.costs, self.coefficients, margins, strict=True):
            value += cost * max(Fraction(0), m - dot(w, v) - dot(t, B)) ** (2 if self.squared else 1)
        return Bracket(value, value)

    @cached_property
    def optimum(self) -> Bracket:
        if self.squared:
            return self._optimum_of_squares()
        n_free = len(self.coefficients[0])
        integers = _on_common_grid(self.vectors)
        Q = [[Fraction(sum(map(int.__mul__, a, b))) for b in integers[0]] for a in integers[0]]
        Q = [[value * integers[1] for value in row] for row in Q]
        p, hi = list(self.margins or [1] * len(Q)), list(self.costs)
        A = [[B[k] for B in self.coefficients] for k in range(n_free)]
        if self.ascending:  # a multiplier for every t_k <= t_(k+1)
            for k in range(n_free - 1):
                for row in Q:
                    row.append(Fraction(0))
                Q.append([Fraction(0)] * (len(Q) + 1))
                for j, row in enumerate(A):
                    row.append((j == k + 1) - (j == k))
                p.append(0)
                hi.append(None)
        found = maximise(BoxQP(Q, p, hi, A, *_sum_to(self.total, self.costs)))
        return Bracket(found.lower, found.upper)

    def _optimum_of_squares(self) -> Bracket:
        """Variables have no limit, and each adds a^2 / (4 cost) to what is lost; rows without weight are not there."""
        margins = self.margins or [Fraction(1)] * len(self.costs)
        kept = [i for i, cost in enumerate(self.costs) if cost]
        if not kept:
            return Bracket(Fraction(0), Fraction(0))
        Q = [[dot(self.vectors[i], self.vectors[j]) for j in kept] for i in kept]
        for place, i in enumerate(kept):
            Q[place][place] += 1 / (2 * self.costs[i])
        A = [[self.coefficients[i][k] for i in kept] for k in range(len(self.coefficients[0]))]
        found = maximise(BoxQP(Q, [margins[i] for i in kept], [None] * len(kept), A))
        return Bracket(found.lower, found.upper)


@dataclass(frozen=True)
class JointTask:
    """The joint problem of `n_classes` classes over rows x_i of the classes `codes`."""

    X: Sequence[Sequence[Fraction]]
    codes: Sequence[int]
    costs: Sequence[Fraction]
    n_classes: int

    def primal(self, W: Sequence[Sequence[Fraction]]) -> Bracket:
        value = sum((dot(w, w) for w in W), Fraction(0)) / 2
        for x, own, cost in zip(self.X, self.codes, self.costs, strict=True):
            scores = [dot(w, x) for w in W]
            value += cost * max((k != own) + score - scores[own] for k, score in enumerate(scores))
        return Bracket(value, value)

    @cached_property
    def optimum(self) -> Bracket:
        """Of the dual: alpha_ik for the other classes of row i, and what is left of its cost, sum to that cost."""
        n = len(self.X)
        present = [i for i in range(n) if self.costs[i] > 0]
        pairs = [(i, k) for i in present for k in range(self.n_classes) if k != self.codes[i]]
        integers, unit = _on_common_grid(self.X)
        G = [[sum(map(int.__mul__, a, b)) * unit for b in integers] for a in integers]
        vectors = [[(m == self.codes[i]) - (m == k) for m in range(self.n_classes)] for i, k in pairs]
        Q = [[G[i][j] * sum(map(int.__mul__, u, v)) for (j, _), v in zip(pairs, vectors, strict=True)]
             for (i, _), u in zip(pairs, vectors, strict=True)]  # fmt: skip
        Q = [[*map(Fraction, row), *[Fraction(0)] * len(present)] for row in Q]
        Q += [[Fraction(0)] * (len(pairs) + len(present)) for _ in present]
        A = [[int(i == row) for i, _ in pairs] + [int(i == row) for i in present] for row in present]
        right = [self.costs[i] for i in present]
        start = [Fraction(0)] * len(pairs) + right
        p = [1] * len(pairs) + [0] * len(present)
        found = maximise(BoxQP(Q, p, [None] * len(p), A, right, start))
        return Bracket(found.lower, found.upper)


@dataclass(frozen=True)
class KernelTask:
    """A task over a kernel matrix whose entries may be wrong by `error`; the intercept is free.

    Loss l is of the row `rows[l]`; by default there is one for each row.
    """

    K: Sequence[Sequence[Fraction]]
    error: Fraction
    signs: Sequence[int]
    costs: Sequence[Fraction]
    margins: Sequence[Fraction] | None = None
    rows: Sequence[int] | None = None
    total: Fraction = Fraction(0)

    @property
    def _losses(self) -> Iterator[tuple[int, int, Fraction, Fraction]]:
        margins = self.margins or [Fraction(1)] * len(self.costs)
        return zip(self.rows or range(len(self.K)), self.signs, self.costs, margins, strict=True)

    def primal(self, beta: Sequence[Fraction], b: Fraction) -> Bracket:
        f = [dot(row, beta) for row in self.K]
        value = dot(beta, f) / 2 + b * self.total
        for i, z, cost, m in self._losses:
            value += cost * max(Fraction(0), m - z * (f[i] + b))
        size = sum(map(abs, beta), Fraction(0))
        error = self.error * size * (size / 2 + sum(self.costs))
        return Bracket(value - error, value + error)

    @cached_property
    def optimum(self) -> Bracket:
        losses = [*self._losses]
        Q = [[y * z * self.K[i][j] for j, z, *_ in losses] for i, y, *_ in losses]
        p = [m for *_, m in losses]
        found = maximise(BoxQP(Q, p, self.costs, [self.signs], *_sum_to(self.total, self.costs)))
        size = sum(found.a)
        error = self.error * size * (size / 2 + sum(self.costs))
        return Bracket(found.lower - error, found.upper + error)


def _sum_to(total: Fraction, costs: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """The right side of the one equation, and a point that satisfies it: the first variables at their limits."""
    if not total:
        return [], []
    start, rest = [], total
    for cost in costs:
        start.append(min(cost, rest))
        rest -= start[-1]
    return [total], start


def dot(left: Sequence[Fraction], right: Sequence[Any]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True) if b), Fraction(0))


def exact(values: Any) -> Any:
    """float64 numbers, or nested lists of them, as fractions."""
    if isinstance(values, list | tuple | np.ndarray):
        return [exact(value) for value in values]
    return Fraction(float(values))


def _on_common_grid(vectors: Sequence[Sequence[Fraction]]) -> tuple[list[list[int]], Fraction]:
    """Integers, and the square of the unit that they are multiples of."""
    below = max((value.denominator for vector in vectors for value in vector), default=1)  # a power of two
    return [[int(value * below) for value in vector] for vector in vectors], Fraction(1, below**2)


def tasks_and_values(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    """Each task of the training problem, with the exact objective of the stored model."""
    yield from _KINDS[problem.estimator](problem, model)


def _weights(problem: Any) -> list[Fraction]:
    """Sample weight times class weight of each row."""
    given = exact(problem.sample_weight) if problem.sample_weight is not None else [Fraction(1)] * len(problem.y)
    factors = problem.parameters.get("class_weight", {})
    return [s * Fraction(factors.get(label, 1)) for s, label in zip(given, problem.y, strict=True)]


def _joint(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    X, s, C = exact(problem.dense), _weights(problem), Fraction(model.C)
    classes = sorted(set(problem.y))
    W, b = exact(model.coef_), exact(model.intercept_)
    if len(classes) == 2:  # the model holds the difference
        W, b = [[-v / 2 for v in W[0]], [v / 2 for v in W[0]]], [-b[0] / 2, b[0] / 2]
    scaling = Fraction(model.intercept_scaling)
    if model.fit_intercept:
        X, W = [[*x, scaling] for x in X], [[*w, b_k / scaling] for w, b_k in zip(W, b, strict=True)]
    elif any(b):
        raise ArithmeticError("a model without intercept has one")
    task = JointTask(X, [classes.index(label) for label in problem.y], [C * s_i for s_i in s], len(classes))
    yield task, task.primal(W)


def _linear_svc(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    if model.multi_class == "crammer_singer":
        yield from _joint(problem, model)
        return
    X, s, C = exact(problem.dense), _weights(problem), Fraction(model.C)
    classes = sorted(set(problem.y))
    kind = model.intercept if model.fit_intercept else "none"
    if kind == "penalised":
        X = [[*x, Fraction(1)] for x in X]
    for k, positive in enumerate([classes[1]] if len(classes) == 2 else classes):
        signs = [1 if label == positive else -1 for label in problem.y]
        task = LinearTask(
            [[y * v for v in x] for x, y in zip(X, signs, strict=True)],
            [C * s_i for s_i in s],
            [[y] if kind == "free" else [] for y in signs],
            squared=model.loss == "squared_hinge",
        )
        w, b = exact(model.coef_[k]), exact(model.intercept_[k])
        if kind == "none" and b != 0:
            raise ArithmeticError("a model without intercept has one")
        yield task, task.primal([*w, b] if kind == "penalised" else w, [b] if kind == "free" else [])


def _svc(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    K, error = kernel_matrix(problem, model)
    s, C = _weights(problem), Fraction(model.C)
    classes = sorted(set(problem.y))
    codes = [classes.index(label) for label in problem.y]
    dual_coef, support = exact(model.dual_coef_), [int(i) for i in model.support_]
    for k, (first, second) in enumerate(combinations(range(len(classes)), 2)):
        positive = second if len(classes) == 2 else first
        rows = [i for i in range(len(s)) if codes[i] in (first, second) and s[i] > 0]
        beta = dict.fromkeys(rows, Fraction(0))
        for place, i in enumerate(support):  # scikit-learn's layout: a row of dual_coef_ for each other class
            if codes[i] == first:
                beta[i] = dual_coef[second - 1][place]
            elif codes[i] == second:
                beta[i] = dual_coef[first][place]
        task = KernelTask(
            [[K[i][j] for j in rows] for i in rows],
            error,
            [1 if codes[i] == positive else -1 for i in rows],
            [C * s[i] for i in rows],
        )
        yield task, task.primal([beta[i] for i in rows], exact(model.intercept_[k]))


def kernel_matrix(problem: Any, model: Any) -> tuple[list[list[Fraction]], Fraction]:
    """The kernel of the rows with one another, and by how much an entry may be wrong."""
    kernel, X = model.kernel, exact(problem.dense)
    if kernel == "precomputed":
        return X, Fraction(0)
    integers, exponent = dyadic([v for row in problem.dense for v in row])
    width = len(X[0])
    rows = [integers[i * width : (i + 1) * width] for i in range(len(X))]
    unit = Fraction(2) ** exponent
    if kernel in ("linear", "poly"):
        products = [[sum(map(int.__mul__, x, z)) * unit**2 for z in rows] for x in rows]
        if kernel == "linear":
            return products, Fraction(0)
        gamma, coef0 = Fraction(model.gamma_), Fraction(model.coef0)
        return [[(gamma * v + coef0) ** model.degree for v in row] for row in products], Fraction(0)
    gamma = Fraction(model.gamma_)
    if kernel == "rbf":
        distances = [[sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) * unit**2 for z in rows] for x in rows]
    elif kernel == "laplacian":
        distances = [[sum(abs(a - b) for a, b in zip(x, z, strict=True)) * unit for z in rows] for x in rows]
    else:
        raise ValueError(f"the kernel {kernel!r} is not known here")
    known: dict[Fraction, Fraction] = {}
    for distance in {d for row in distances for d in row}:
        known[distance] = exp_minus(gamma * distance)
    return [[known[d] for d in row] for row in distances], EXP_ERROR


def exp_minus(q: Fraction) -> Fraction:
    """exp(-q) for q >= 0, as a multiple of 2^-EXP_BITS, wrong by at most EXP_ERROR.

    Python's decimal rounds exp correctly. Rounding q as well leaves an error below 1e-145; the grid is 4e-121 wide.
    """
    if q > _EXP_IS_ZERO:
        return Fraction(0)
    with localcontext() as context:
        context.prec = _EXP_DIGITS
        value = (-(Decimal(q.numerator) / Decimal(q.denominator))).exp()
    return Fraction(round(Fraction(value) * 2**EXP_BITS), 2**EXP_BITS)


def _rank_svm(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    task = _ranking(problem, Fraction(model.C), model.pairs == "mean", model.query_weight == "equal")
    yield task, task.primal(exact(model.coef_), [])


def _ranking(problem: Any, C: Fraction, average: bool, equal_queries: bool) -> LinearTask:
    X, s, y = exact(problem.dense), _weights(problem), problem.y
    queries = problem.qid if problem.qid is not None else [0] * len(y)
    pairs = [
        (i, j)
        for i in range(len(y))
        for j in range(len(y))
        if queries[i] == queries[j] and y[i] > y[j] and s[i] * s[j] > 0
    ]
    weights = [s[i] * s[j] for i, j in pairs]
    if equal_queries:
        totals: dict[Any, Fraction] = {}
        for (i, _), weight in zip(pairs, weights, strict=True):
            totals[queries[i]] = totals.get(queries[i], Fraction(0)) + weight
        weights = [weight / totals[queries[i]] for (i, _), weight in zip(pairs, weights, strict=True)]
    unit = 1 / sum(weights) if average else Fraction(1)
    return LinearTask(
        [[a - b for a, b in zip(X[i], X[j], strict=True)] for i, j in pairs],
        [C * unit * weight for weight in weights],
        [[] for _ in pairs],
    )


def _ordinal_svc(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    C = Fraction(model.C)
    if model.thresholds == "fitted":
        task = _ranking(problem, C, average=True, equal_queries=False)
        yield task, task.primal(exact(model.coef_), [])
        return
    X, s = exact(problem.dense), _weights(problem)
    classes = sorted(set(problem.y))
    ranks = [classes.index(label) for label in problem.y]
    n_thresholds = len(classes) - 1
    vectors, costs, coefficients = [], [], []
    for x, weight, rank in zip(X, s, ranks, strict=True):
        near = model.thresholds == "immediate"
        for k in (k for k in range(n_thresholds) if not near or k in (rank - 1, rank)):
            z = 1 if rank > k else -1
            vectors.append([z * v for v in x])
            costs.append(C * weight)
            coefficients.append([-z if j == k else 0 for j in range(n_thresholds)])
    task = LinearTask(vectors, costs, coefficients, ascending=model.thresholds == "immediate")
    yield task, task.primal(exact(model.coef_), exact(model.thresholds_))


def _tube(problem: Any, model: Any, rows: Sequence[int]) -> tuple[list[int], list[int], list[Fraction], list[Fraction]]:
    """Of a regression over these rows: the rows of the losses, by their place, their signs, costs and margins."""
    s, C, epsilon = _weights(problem), Fraction(model.C), Fraction(model.epsilon)
    y = exact(problem.y)
    places = [*range(len(rows))]
    low, high = [y[i] - epsilon for i in rows], [-y[i] - epsilon for i in rows]
    signs = [1] * len(rows) + [-1] * len(rows)
    return places + places, signs, [C * s[i] for i in rows] * 2, low + high


def _linear_svr(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    X = exact(problem.dense)
    kind = model.intercept if model.fit_intercept else "none"
    scaling = Fraction(model.intercept_scaling)
    if kind == "penalised":
        X = [[*x, scaling] for x in X]
    rows, signs, costs, margins = _tube(problem, model, range(len(X)))
    task = LinearTask(
        [[z * v for v in X[i]] for i, z in zip(rows, signs, strict=True)],
        costs,
        [[z] if kind == "free" else [] for z in signs],
        margins=margins,
        squared=model.loss == "squared_epsilon_insensitive",
    )
    w, b = exact(model.coef_), exact(model.intercept_[0])
    if kind == "none" and b != 0:
        raise ArithmeticError("a model without intercept has one")
    yield task, task.primal([*w, b / scaling] if kind == "penalised" else w, [b] if kind == "free" else [])


def _linear_one_class(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    X, s = exact(problem.dense), _weights(problem)
    task = LinearTask(X, s, [[1]] * len(s), margins=[Fraction(0)] * len(s), total=Fraction(model.nu) * sum(s))
    yield task, task.primal(exact(model.coef_[0]), [-exact(model.offset_[0])])


def _kernel_score(problem: Any, model: Any) -> Iterator[tuple[Any, Bracket]]:
    K, error = kernel_matrix(problem, model)
    s = _weights(problem)
    rows = [i for i in range(len(s)) if s[i] > 0]
    beta = dict.fromkeys(rows, Fraction(0))
    for i, value in zip(model.support_, exact(model.dual_coef_[0]), strict=True):
        beta[int(i)] = value
    K = [[K[i][j] for j in rows] for i in rows]
    if problem.estimator == "SVR":
        places, signs, costs, margins = _tube(problem, model, rows)
        task = KernelTask(K, error, signs, costs, margins, places)
    else:
        costs = [s[i] for i in rows]
        total = Fraction(model.nu) * sum(costs)
        task = KernelTask(K, error, [1] * len(rows), costs, [Fraction(0)] * len(rows), total=total)
    yield task, task.primal([beta[i] for i in rows], exact(model.intercept_[0]))


_KINDS = {
    "LinearSVC": _linear_svc,
    "SVC": _svc,
    "RankSVM": _rank_svm,
    "OrdinalSVC": _ordinal_svc,
    "LinearSVR": _linear_svr,
    "SVR": _kernel_score,
    "LinearOneClassSVM": _linear_one_class,
    "OneClassSVM": _kernel_score,
}
