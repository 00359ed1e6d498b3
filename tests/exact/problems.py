"""Small hostile training problems, made from a number: `make(17)` is the same problem everywhere and always.

Each has at most eight rows, so that the exact optimum is within reach. What is hard about them is drawn apart: the
kind of rows, their scale (1e-300 .. 1e300), C and the weights (1e-12 .. 1e12), offsets and duplicates, one row a class,
and the way the data are stored. Regression has numbers of any scale, with an offset or all the same, and tubes up to
such that hold them all; one-class has nu near 0 and near 1. `str(problem)` is a program that fits it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import softmargin

# The demand on the share of certified fits is for problems whose entries, zeros aside, have sizes in this range.
ORDINARY = (1e-100, 1e100)
MOST_ROWS = 8
# Solvers, and a limit on the iterations of each: fits of so few rows need fewer, or do not end at all. An iteration of
# "smo" is a pair step, with working_set="decomposition" up to ten thousand; one of "block" is up to a million.
# One of "coordinate" is about 64 epochs over so few rows.
_PLANES = {"auto": 200, "ocas": 200, "cpa": 200}
_COORDINATE = {"coordinate": 100}
_ROWWISE = {**_PLANES, **_COORDINATE}
_LINEAR = {**_ROWWISE, "sgd": 20, "pegasos": 20}
_SQUARED = {"auto": 100, **_COORDINATE}
_JOINT = {**_PLANES, "coordinate": 5}
_KERNEL = {"auto": 10, "block": 10, "smo": 100_000, "active_set": 1_000, "ipm": 200}
_MOST_SETS = 500
_PAIR_RULES = ["most_violating_pair", "second_order", "maximum_gain", "hybrid_maximum_gain", "gain_one_row"]
_PAIR_RULES += ["gain_all_cached", "decomposition"]
_WITH_CLASSES = ("LinearSVC", "SVC", "OrdinalSVC")
# These end after a fixed number of passes, mostly before `tol`.
APPROXIMATE = ("sgd", "pegasos")


@dataclass(frozen=True)
class Problem:
    """An estimator's name and parameters, and what it is to be fitted to."""

    number: int
    estimator: str
    parameters: dict[str, Any]
    X: np.ndarray = field(repr=False)
    y: list = field(repr=False)
    sample_weight: list | None = field(repr=False, default=None)
    qid: list | None = field(repr=False, default=None)
    is_sparse: bool = False

    @cached_property
    def dense(self) -> list[list[float]]:
        return self.X.astype(np.float64).tolist()

    @property
    def is_ordinary(self) -> bool:
        """Whether the demand on the share of certified fits includes it."""
        values = self.X.ravel().astype(np.float64)
        if self.estimator in ("SVR", "LinearSVR"):
            values = np.concatenate([values, self.y])
        sizes = np.abs(values[values != 0])
        in_range = sizes.size == 0 or (ORDINARY[0] <= sizes.min() and sizes.max() <= ORDINARY[1])
        return bool(in_range) and self.parameters.get("solver") not in APPROXIMATE

    @property
    def kind(self) -> str:
        """What belongs together in a table of results."""
        variant = self.parameters.get("kernel") or self.parameters.get("thresholds")
        if self.estimator in ("LinearSVC", "LinearSVR"):
            free = self.parameters.get("fit_intercept", True)
            variant = self.parameters.get("intercept", "free") if free else "none"
            variant += " squared" if "loss" in self.parameters else ""
            if self.parameters.get("multi_class") == "crammer_singer":
                variant = f"joint {variant}"
        return " ".join(filter(None, [self.estimator, variant, self.parameters.get("solver")]))

    def fit(self) -> Any:
        return self.model().fit(self.stored, np.array(self.y), **self.options)

    def model(self) -> Any:
        """The estimator, not fitted yet."""
        return getattr(softmargin, self.estimator)(**self.parameters)

    @property
    def stored(self) -> Any:
        """X as `fit` is given it."""
        return sp.csr_matrix(self.X) if self.is_sparse else self.X

    @property
    def options(self) -> dict[str, Any]:
        """What else `fit` is given."""
        options = {"sample_weight": self.sample_weight, "qid": self.qid}
        return {name: value for name, value in options.items() if value is not None}

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        order = "" if self.X.flags.c_contiguous else ', order="F"'
        X = f"np.array({self.X.tolist()!r}, dtype=np.{self.X.dtype}{order})"
        lines = ["import numpy as np", f"from softmargin import {self.estimator}"]
        if self.is_sparse:
            lines[1:1] = ["import scipy.sparse as sp"]
            X = f"sp.csr_matrix({X})"
        return "\n".join([*lines, f"X = {X}", f"model = {self.estimator}({given}).fit(X, {self.y!r}{options})"])


def make(number: int) -> Problem:
    """The problem of this number."""
    rng = np.random.default_rng([20_061_117, number])
    estimator = _TURNS[number % len(_TURNS)]
    return _MAKERS[estimator](number, rng)


def _linear_svc(number: int, rng: np.random.Generator) -> Problem:
    X = _rows(rng)
    y = _classes(rng, X, 3 if rng.random() < 0.2 else 2)
    parameters = _losses(rng, _LINEAR, "squared_hinge") | _intercept(rng)
    if parameters["solver"] in APPROXIMATE:
        parameters["random_state"] = 0
    return _stored(number, rng, "LinearSVC", parameters, X, y)


def _losses(rng: np.random.Generator, solvers: dict[str, int], squared: str) -> dict[str, Any]:
    """The common parameters, and in one problem of three the squared loss."""
    if rng.random() < 1 / 3:
        return {"loss": squared, **_common(rng, _SQUARED)}
    return _common(rng, solvers)


def make_joint(number: int) -> Problem:
    """A joint problem of two to four classes, in a series of its own."""
    rng = np.random.default_rng([20_011_201, number])
    n_classes = _pick(rng, {2: 1, 3: 4, 4: 3})
    X = _rows(rng, least=n_classes, most=6)
    y = _classes(rng, X, n_classes)
    parameters = _common(rng, _JOINT) | {"multi_class": "crammer_singer"}
    if rng.random() < 0.5:
        parameters["fit_intercept"] = False
    else:
        parameters["intercept"] = "penalised"
        parameters["intercept_scaling"] = _pick(rng, {1.0: 2, 10.0: 1, 0.3: 1, 1e6: 0.3, 1e-6: 0.3})
    return _stored(number, rng, "LinearSVC", parameters, X, y)


def _intercept(rng: np.random.Generator) -> dict[str, Any]:
    kind = rng.choice(["free", "free", "penalised", "none"])
    if kind == "none":
        return {"fit_intercept": False}
    return {"intercept": "penalised"} if kind == "penalised" else {}


def _svc(number: int, rng: np.random.Generator) -> Problem:
    parameters, X = _kernel(rng)
    y = _classes(rng, X, 3 if rng.random() < 0.15 else 2)
    return _stored(number, rng, "SVC", parameters, X, y)


def _kernel(rng: np.random.Generator, least: int = 2) -> tuple[dict[str, Any], np.ndarray]:
    """The parameters of a kernel estimator but for what it learns, and rows."""
    kernel = str(rng.choice(["linear", "poly", "rbf", "laplacian", "precomputed"]))
    parameters = {"kernel": kernel, **_common(rng, _KERNEL)}
    if parameters["solver"] == "smo" and rng.random() < 0.5:
        parameters["working_set"] = str(rng.choice(_PAIR_RULES))
        if parameters["working_set"] == "decomposition":
            parameters["max_iter"] = _MOST_SETS
    if rng.random() < 0.05:
        parameters["stopping"] = "kkt"
    if kernel == "precomputed":
        return parameters, _gram(rng, least)
    X = _rows(rng, least)
    if kernel != "linear":
        parameters["gamma"] = _gamma(rng, kernel, X)
    if kernel == "poly":
        parameters["degree"] = int(rng.choice([1, 2, 3, 3, 5]))
        parameters["coef0"] = _pick(rng, {0.0: 4, 1.0: 4, 0.3: 2, 1e3: 1, 1e6: 0.5, 1e10: 0.5})
        if parameters["degree"] * np.log10(_largest(X)) > 140:  # values would overflow
            parameters["gamma"] = "scale"
    return parameters, X


def _linear_svr(number: int, rng: np.random.Generator) -> Problem:
    X = _rows(rng, least=1)
    parameters = _losses(rng, _ROWWISE, "squared_epsilon_insensitive") | _intercept(rng)
    if "intercept" in parameters:
        parameters["intercept_scaling"] = _pick(rng, {1.0: 2, 10.0: 1, 0.3: 1, 1e6: 0.3, 1e-6: 0.3})
    return _regression(number, rng, "LinearSVR", parameters, X)


def _svr(number: int, rng: np.random.Generator) -> Problem:
    return _regression(number, rng, "SVR", *_kernel(rng, least=1))


def _regression(
    number: int, rng: np.random.Generator, estimator: str, parameters: dict[str, Any], X: np.ndarray
) -> Problem:
    """Numbers that follow the first column, or nothing at all, or are all the same; and a tube around them."""
    n = len(X)
    kind = _pick(rng, {"line": 4, "noise": 4, "whole": 3, "constant": 0.7, "zero": 0.3})
    if kind == "line":
        y = X[:, 0].astype(float) / _largest(X) + 0.3 * rng.standard_normal(n)
    elif kind == "noise":
        y = rng.standard_normal(n)
    else:
        y = {"whole": rng.integers(-3, 4, n), "constant": np.full(n, rng.standard_normal()), "zero": np.zeros(n)}[kind]
    offset = _pick(rng, {0.0: 8, 10.0: 2, 1e3: 1, -1e5: 0.5, 1e8: 0.5, 1e12: 0.2})
    exponent = _pick(
        rng, {0: 8, int(rng.integers(-3, 4)): 4, int(rng.integers(-12, 13)): 2, int(rng.integers(-140, 141)): 0.5}
    )
    if parameters.get("kernel") in ("rbf", "laplacian"):  # their values are known to 2^-399, and no better
        exponent = max(exponent, -12)
    scale = 10.0**exponent
    y = (y + offset) * scale
    near, far = 0.1 * scale, scale * 10.0 ** rng.uniform(-12, 12)
    wide = 2.0 * float(y.max() - y.min()) + scale  # all numbers fit into the tube
    parameters["epsilon"] = float(_pick(rng, {0.0: 3, near: 5, 0.1: 1, far: 1, wide: 1}))
    if rng.random() < 0.5:  # dual variables have the unit of y over that of the kernel
        parameters["C"] *= scale
    return _stored(number, rng, estimator, parameters, X, y.tolist())


def _linear_one_class(number: int, rng: np.random.Generator) -> Problem:
    X = _away(rng, _rows(rng, least=1))
    parameters = _nu(rng, _common(rng, _ROWWISE))
    return _stored(number, rng, "LinearOneClassSVM", parameters, X, [1] * len(X))


def _one_class(number: int, rng: np.random.Generator) -> Problem:
    parameters, X = _kernel(rng, least=1)
    if parameters["kernel"] == "linear":
        X = _away(rng, X)
    return _stored(number, rng, "OneClassSVM", _nu(rng, parameters), X, [1] * len(X))


def _nu(rng: np.random.Generator, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters with nu in the place of C."""
    small = 10.0 ** rng.uniform(-12, -1)
    choice = _pick(rng, {"half": 3, "any": 4, "small": 1.5, "near one": 1, "one": 0.5})
    nu = {"half": 0.5, "any": float(rng.uniform(0.05, 1)), "small": small, "near one": 1.0 - small, "one": 1.0}[choice]
    return {name: value for name, value in parameters.items() if name != "C"} | {"nu": nu}


def _away(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Mostly rows on one side of the origin: around it, the optimum of a linear model is zero."""
    return np.abs(X) if rng.random() < 0.7 else X


def _rank_svm(number: int, rng: np.random.Generator) -> Problem:
    X = _rows(rng, most=7)
    n = len(X)
    y = rng.integers(0, rng.integers(2, 5), n).astype(float) if rng.random() < 0.7 else rng.standard_normal(n)
    qid = rng.integers(0, 3, n) if n > 3 and rng.random() < 0.5 else None
    first = 0 if qid is None else int(np.flatnonzero(qid == qid[-1])[0])
    if first == n - 1:
        qid = None
        first = 0
    y[first], y[-1] = 0.0, 1.0  # at least one pair
    parameters = _common(rng, _PLANES)
    parameters["pairs"] = str(rng.choice(["mean", "sum"]))
    parameters["query_weight"] = str(rng.choice(["pairs", "equal"]))
    return _stored(number, rng, "RankSVM", parameters, X, y.tolist(), None if qid is None else qid.tolist())


def _ordinal_svc(number: int, rng: np.random.Generator) -> Problem:
    X = _rows(rng, least=3)
    y = _classes(rng, X, _pick(rng, {2: 1, 3: 4, 4: 1}))
    parameters = _common(rng, _PLANES)
    parameters["thresholds"] = _pick(rng, {"all": 2, "immediate": 2, "fitted": 1})
    return _stored(number, rng, "OrdinalSVC", parameters, X, y)


_MAKERS: dict[str, Callable[[int, np.random.Generator], Problem]] = {
    "LinearSVC": _linear_svc,
    "SVC": _svc,
    "RankSVM": _rank_svm,
    "OrdinalSVC": _ordinal_svc,
    "LinearSVR": _linear_svr,
    "SVR": _svr,
    "LinearOneClassSVM": _linear_one_class,
    "OneClassSVM": _one_class,
}
_TURNS = (
    "LinearSVC",
    "SVC",
    "SVC",
    "RankSVM",
    "OrdinalSVC",
    "SVR",
    "LinearSVR",
    "OneClassSVM",
    "SVR",
    "LinearOneClassSVM",
)


def _pick(rng: np.random.Generator, shares: dict[Any, float]) -> Any:
    values = list(shares)
    p = np.array(list(shares.values()), dtype=float)
    return values[rng.choice(len(values), p=p / p.sum())]


def _common(rng: np.random.Generator, solvers: dict[str, int]) -> dict[str, Any]:
    """Solver, C, tol and max_iter."""
    solver = str(rng.choice(list(solvers)))
    C = {"one": 1.0, "near": 10.0 ** rng.uniform(-3, 3), "far": 10.0 ** rng.uniform(-12, 12), "huge": 1e12}
    return {
        "C": C[_pick(rng, {"one": 4, "near": 5, "far": 1.5, "huge": 0.3})],
        "solver": solver,
        "tol": _pick(rng, {1e-3: 8, 1e-2: 1, 1e-6: 1}),
        "max_iter": solvers[solver],
    }


def _rows(rng: np.random.Generator, least: int = 2, most: int = MOST_ROWS) -> np.ndarray:
    n = _pick(rng, {least: 2, **dict.fromkeys(range(least + 1, most + 1), 1)})
    d = int(rng.integers(1, 5))
    X = rng.integers(-3, 4, (n, d)).astype(float) if rng.random() < 0.4 else rng.standard_normal((n, d))
    trouble = _pick(rng, {"none": 8, "duplicates": 2, "zeros": 1, "offset": 2, "near": 1, "columns": 1, "rows": 0.7})
    if trouble == "duplicates":
        X[rng.integers(0, n, n // 2)] = X[0]
    elif trouble == "zeros":
        X[rng.integers(0, n, n // 2)] = 0.0
    elif trouble == "offset":
        X += _pick(rng, {10.0: 2, 1e3: 2, -1e5: 1, 1e8: 1})
    elif trouble == "near":
        X = X[rng.integers(0, n, n)] * (1.0 + 10.0 ** rng.uniform(-16, -6) * rng.standard_normal((n, d)))
    elif trouble == "columns":
        X *= 10.0 ** rng.integers(-6, 7, d)
    elif trouble == "rows":
        X *= 10.0 ** rng.integers(-6, 7, (n, 1))
    return X * 10.0 ** _pick(
        rng,
        {
            0: 8,
            int(rng.integers(-3, 4)): 4,
            int(rng.integers(-12, 13)): 1,
            int(rng.integers(-80, 81)): 1,
            int(rng.integers(-290, 291)): 1.5,
            int(rng.choice([-300, -155, -154, 153, 154, 155, 299])): 0.5,
        },
    )


def _largest(X: np.ndarray) -> float:
    return float(np.abs(X).max(initial=0.0)) or 1.0


def _gamma(rng: np.random.Generator, kernel: str, X: np.ndarray) -> Any:
    """A number that suits the scale of the rows, by a power of two so that the line stays short; or a name."""
    choice = _pick(rng, {"scale": 3, "auto": 1, "one": 1, "fits": 4})
    if choice in ("scale", "auto"):
        return choice
    power = 1 if kernel == "laplacian" else 2
    exponent = power * np.log2(_largest(X))
    if choice == "one" or abs(exponent) > 1000:
        return 1.0
    return float(2.0 ** (int(rng.integers(-3, 4)) - round(exponent)))


def _gram(rng: np.random.Generator, least: int = 2) -> np.ndarray:
    """A kernel matrix that is positive semi-definite exactly: products of small integers, scaled by a power of two."""
    n = int(rng.integers(least, MOST_ROWS + 1))
    Z = rng.integers(-5, 6, (n, int(rng.integers(1, 9))))
    K = (Z @ Z.T).astype(float)
    if rng.random() < 0.3:
        K += float(_pick(rng, {1.0: 2, 1e3: 2, 1e8: 1, 2.0**50: 0.5}))
    exponent = _pick(rng, {0: 6, int(rng.integers(-20, 21)): 3, int(rng.integers(-300, 301)): 1})
    return K * 2.0**exponent


def _classes(rng: np.random.Generator, X: np.ndarray, n_classes: int) -> list[int]:
    """Labels of which each occurs; they follow the first column, or nothing at all."""
    n = len(X)
    n_classes = min(n_classes, n)
    if rng.random() < 0.5:
        order = np.argsort(X[:, 0], kind="stable")
        y = np.empty(n, dtype=int)
        y[order] = np.arange(n) * n_classes // n
    else:
        y = rng.integers(0, n_classes, n)
    y[rng.permutation(n)[:n_classes]] = np.arange(n_classes)
    return y.tolist()


def _stored(
    number: int,
    rng: np.random.Generator,
    estimator: str,
    parameters: dict[str, Any],
    X: np.ndarray,
    y: list,
    qid: list | None = None,
) -> Problem:
    """With weights, and with X as it comes: float64, float32 or integers, dense in either order or sparse."""
    single = X.astype(np.float32) if _largest(X) < 1e30 else None
    if single is not None and rng.random() < 0.2 and (parameters.get("kernel") != "precomputed" or (single == X).all()):
        X = single  # a kernel matrix is rounded only if it stays positive semi-definite
    elif (np.rint(X) == X).all() and _largest(X) < 100 and rng.random() < 0.2:
        X = X.astype(np.int64)
    X = np.asfortranarray(X) if rng.random() < 0.1 else X
    if estimator in _WITH_CLASSES and rng.random() < 0.1:
        parameters["class_weight"] = {label: float(rng.choice([0.25, 0.5, 2.0, 1024.0])) for label in sorted(set(y))}
    is_sparse = parameters.get("kernel") != "precomputed" and rng.random() < 0.2
    sample_weight = _sample_weight(rng, y, qid)
    if "C" in parameters and rng.random() < 0.5:
        parameters["C"] *= _unit_of_C(parameters.get("kernel", "linear"), X)
    return Problem(number, estimator, parameters, X, y, sample_weight, qid, bool(is_sparse))


def _unit_of_C(kernel: str, X: np.ndarray) -> float:
    """What C is to be multiplied by so that very long or short rows make the same problem in other units."""
    powers = {"linear": 2.0, "precomputed": 1.0}
    exponent = -powers.get(kernel, 0.0) * np.log10(_largest(X))
    return 10.0 ** round(exponent) if 12.0 < abs(exponent) < 250.0 else 1.0


def _sample_weight(rng: np.random.Generator, y: list, qid: list | None) -> list[float] | None:
    n = len(y)
    kind = _pick(rng, {"none": 6, "small": 2, "zero": 1, "wide": 0.5, "one heavy": 0.5})
    if kind == "none":
        return None
    weights = rng.choice([0.1, 0.5, 1.0, 2.0, 3.0], n)
    if kind == "zero" and n > 4:
        weights[_spare_row(y, qid)] = 0.0
    elif kind == "wide":
        weights = 10.0 ** rng.uniform(-12, 12, n)
    elif kind == "one heavy":
        weights[rng.integers(n)] = 1e12
    return weights.tolist()


def _spare_row(y: list, qid: list | None) -> list[int]:
    """A row whose class, or targets of whose query, others have as well; none if there is no such row."""
    for i in range(1, len(y) - 1):
        if (y.count(y[i]) > 1 or isinstance(y[i], float)) and qid is None:
            return [i]
    return []
