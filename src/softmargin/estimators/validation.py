"""What the user gave, checked: parameters, labels and weights. Each error names the cause and the next thing to try."""

import math
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.stopping import Stop

# What each stop rule finds at w = 0: the gap is all of the primal value, every row loses 1, and two rows of different
# classes violate the optimality conditions by 2.
_UNTRAINED = {"relative_gap": 1.0, "epsilon": 1.0, "kkt": 2.0, "gain": 2.0}
# A precomputed kernel matrix is checked _BLOCK_VALUES entries at a time, so that no copy of it is made. Entries on the
# two sides of the diagonal may differ by _ASYMMETRY of the largest entry: float32 matrices do.
_BLOCK_VALUES = 1 << 22
_ASYMMETRY = 1e-5
# Below this number of rows it is not strange that nearly all labels differ.
_FEW_ROWS = 20
# The squares of targets up to this size are finite numbers.
_LARGEST_TARGET = 1e150
# Numbers with fractions are taken for labels of ordered classes only if there are at most this share as many different
# ones as rows. More of them are probably measurements.
_DISTINCT_SHARE = 0.5


def positive_number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise SoftmarginError(f"{name}={value!r} must be a positive, finite number, for example 1.0.")
    return float(value)


def not_negative(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise SoftmarginError(f"{name}={value!r} must be a finite number of at least 0, for example 0.1.")
    return float(value)


def share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise SoftmarginError(f"{name}={value!r} must be a share of the rows: above 0, and at most 1.")
    return float(value)


def optional_limit(value: Any, name: str, kind: type, hint: str) -> Any:
    """None, or a number above zero of the given kind."""
    if value is None:
        return None
    good = isinstance(value, kind) and not isinstance(value, bool)
    if not good or not value > 0:
        what = "a positive integer" if kind is Integral else "a positive number"
        raise SoftmarginError(f"{name}={value!r} must be {what} or None ({hint}).")
    return value


def is_no_limit(max_iter: Any) -> bool:
    """None, or -1 as scikit-learn's SVC writes it."""
    return max_iter is None or (isinstance(max_iter, Integral) and not isinstance(max_iter, bool) and max_iter == -1)


def cache_limit(cache_bytes: Any, cache_size: Any) -> float | None:
    """Bytes for kernel values, given as such, or in MB (2^20 bytes) as in scikit-learn; None leaves it open."""
    if cache_bytes is not None and cache_size is not None:
        raise SoftmarginError(
            f"cache_bytes={cache_bytes!r} and cache_size={cache_size!r} set the same limit, in bytes and in MB: give "
            "one of them."
        )
    if cache_size is not None:
        return positive_number(cache_size, "cache_size") * 2**20
    return None if cache_bytes is None else positive_number(cache_bytes, "cache_bytes")


def stop_rule(tol: Any, max_iter: Any, max_seconds: Any, rule: str) -> Stop:
    """The limits of a fit, checked."""
    if isinstance(tol, bool) or not isinstance(tol, Real) or not 0 <= float(tol) < math.inf:
        raise SoftmarginError(f"tol={tol!r} must be a finite number of at least 0.")
    if float(tol) >= _UNTRAINED.get(rule, math.inf):
        raise SoftmarginError(
            f"tol={tol!r} asks for nothing, because w = 0 meets it before any training: for this stop rule it must be "
            f"below {_UNTRAINED[rule]:g}; the default is 0.001."
        )
    max_iter = None if is_no_limit(max_iter) else optional_limit(max_iter, "max_iter", Integral, "no limit")
    max_seconds = optional_limit(max_seconds, "max_seconds", Real, "no limit")
    return Stop(
        tol=float(tol),
        max_iter=None if max_iter is None else int(max_iter),
        max_seconds=None if max_seconds is None else float(max_seconds),
        rule=rule,
    )


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise SoftmarginError(f"{name}={value!r} is unknown: choose one of {', '.join(map(repr, choices))}.")
    return value


def seed(random_state: Any) -> int:
    """A seed from an integer, or drawn from a RandomState."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    if not isinstance(random_state, np.random.RandomState):
        raise SoftmarginError(
            f"random_state={random_state!r} must be an integer of at least 0, a numpy RandomState or None."
        )
    return int(random_state.randint(np.iinfo(np.int32).max))


def class_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and for each row the position of its class."""
    found = _distinct(y)
    if y.dtype.kind not in "biu" or 2 * found[0].size > y.size:
        _check_classes(y)
    return found


def _check_classes(y: np.ndarray) -> None:
    """Refuse labels that are no classes; warn of classes that look like measurements."""
    if y.dtype.kind not in "biufUO" or (y.dtype.kind == "O" and not isinstance(y[0], str)):
        raise SoftmarginError(
            f"Unknown label type: unknown. y holds {y[0]!r} ({y.dtype}), which is no class: name classes by whole "
            "numbers or text."
        )
    if y.dtype.kind == "f" and (is_fraction := y != np.rint(y)).any():
        row = int(np.argmax(is_fraction))
        raise SoftmarginError(
            f"Unknown label type: continuous. Row {row} of y holds {y[row]}, which is no class: name classes by whole "
            "numbers or text. To learn real numbers use LinearSVR or SVR, to learn their order RankSVM."
        )
    n_classes = np.unique(y).size
    if y.size > _FEW_ROWS and y.size > n_classes > 0.5 * y.size:
        warnings.warn(
            f"The number of unique classes, {n_classes}, is greater than 50% of the number of samples, {y.size}. `y` "
            "could represent a regression problem, not a classification problem.",
            UserWarning,
            stacklevel=3,
        )


def given_classes(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes as given, of which not all need to have rows, and for each row the position of its class."""
    _check_classes(y)
    found = np.unique(classes)
    if found.size < 2:
        raise SoftmarginError(f"classes={classes!r} must name at least two classes.")
    return found, codes_among(y, found)


def codes_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """For each label the position of its class; a label without one is refused."""
    codes = np.searchsorted(classes, y)
    strangers = y[classes[np.minimum(codes, classes.size - 1)] != y]
    if strangers.size:
        raise SoftmarginError(
            f"y holds {strangers.tolist()[0]!r}, which is not among the classes {classes.tolist()}: name all classes "
            "in the first call, partial_fit(X, y, classes=...)."
        )
    return codes


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same without a look at what kind of labels they are."""
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise SoftmarginError(
            f"y holds one class only ({classes[0]}): a classifier needs at least two. "
            "Check the labels, or that the split kept some rows of each class."
        )
    return classes, codes.ravel()


def ranking_targets(y: np.ndarray) -> np.ndarray:
    """y as finite float64."""
    return _finite_numbers(y, "give numbers, larger meaning further up.")


def regression_targets(y: np.ndarray, epsilon: float) -> np.ndarray:
    """y as finite float64; targets that overflow with epsilon are refused."""
    targets = _finite_numbers(
        y,
        "regression needs a number for each row. To predict classes use SVC or LinearSVC, or OrdinalSVC if they "
        "have an order.",
    )
    with np.errstate(over="ignore"):
        largest = float(np.abs(targets).max(initial=0.0)) + epsilon
    if not largest < _LARGEST_TARGET:
        raise SoftmarginError(f"targets of {largest:.3g} and more are too large to be squared: scale y.")
    return targets


def _finite_numbers(y: np.ndarray, advice: str) -> np.ndarray:
    """y as float64; words that spell numbers are numbers."""
    if y.dtype.kind in "mM":  # their numbers depend on the unit that they are stored in
        raise SoftmarginError(f"y holds dates or durations ({y.dtype}): make numbers of them, for example days.")
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        example = next((f", such as {entry!r}" for entry in y.tolist() if not _is_number(entry)), "")
        raise SoftmarginError(f"y holds entries that are not numbers{example}: {advice}") from None
    if not np.isfinite(targets).all():
        raise SoftmarginError("y holds NaN or infinity: leave such rows out, or give them a target.")
    return targets


def _is_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


def order_of(y: Any) -> list | None:
    """The classes of an ordered pandas Categorical from low to high; None if y is something else."""
    dtype: Any = getattr(y, "dtype", None)
    return list(dtype.categories) if getattr(dtype, "ordered", False) else None


def ordered_classes(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes from low to high, and for each row the rank of its class. Numbers have an order, others are given."""
    if classes is None:
        _check_ordinal_targets(y)
        found, codes = _distinct(y)
        if not all(isinstance(label, Real | np.bool_) for label in found):
            raise SoftmarginError(
                f"the labels {_shown(found)} are not numbers, and which of them is higher is not known: give all of "
                "them in ascending order, for example classes=['low', 'middle', 'high'], or use numbers."
            )
        return found, codes
    try:
        order = [] if isinstance(classes, str) else list(classes)
        rank_of = {label: rank for rank, label in enumerate(order)}
    except TypeError:  # no list, or of labels that cannot be told apart
        order, rank_of = [], {}
    if len(rank_of) < 2 or len(rank_of) < len(order):
        raise SoftmarginError(
            f"classes={classes!r} must list at least two labels in ascending order, each of them once."
        )
    found, codes = np.unique(y, return_inverse=True)
    if strangers := [label for label in found.tolist() if label not in rank_of]:
        raise SoftmarginError(f"y holds labels that are not among the classes {_shown(order)}: {_shown(strangers)}.")
    ranks = np.array([rank_of[label] for label in found.tolist()], dtype=np.int64)
    return np.array(order, dtype=object if y.dtype == object else None), ranks[codes.ravel()]


def _check_ordinal_targets(y: np.ndarray) -> None:
    """Refuse what holds no classes. Fractions may be classes (half stars), unless most of them occur only once."""
    if y.dtype.kind != "f" or (y == np.rint(y)).all():
        _check_classes(y)
        return
    n_distinct = np.unique(y).size
    if n_distinct > _DISTINCT_SHARE * y.size:
        raise SoftmarginError(
            f"Unknown label type: continuous. y holds {n_distinct} different numbers in {y.size} rows, with fractions: "
            "these look like measurements, not like a few ordered classes. If they are classes, give all of them in "
            "ascending order (classes=...); to learn the order of real numbers use RankSVM."
        )


def _shown(labels: Iterable) -> str:
    return ", ".join(repr(label) for label in np.asarray(labels).tolist()[:5])


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """sample_weight as float64, ones if None."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SoftmarginError(f"sample_weight must hold one number a row: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise SoftmarginError(
            f"sample_weight has shape {weights.shape}, but there are {n_rows} rows: give one weight a row. "
            "(Sample weights must be 1D.)"
        )
    if not np.isfinite(weights).all():
        raise SoftmarginError("sample_weight holds NaN or infinity: every weight must be a finite number.")
    if (weights < 0).any():
        raise SoftmarginError(
            f"sample_weight holds negative values (the least is {weights.min():g}): use 0 to leave a row out."
        )
    if not weights.any():
        raise SoftmarginError("sample_weight is zero for every row: there is nothing to learn from.")
    return weights


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One factor a class. "balanced" counts weights, so that a weight of 2 is the same as repeating the row."""
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(codes, weights, minlength=classes.size)
        present = mass > 0
        return np.where(present, weights.sum() / (present.sum() * np.where(present, mass, 1.0)), 1.0)
    if not isinstance(class_weight, Mapping):
        raise SoftmarginError(
            f"class_weight={class_weight!r} is unknown: use None, 'balanced' or a dictionary {{class: weight}}."
        )
    known = dict.fromkeys(classes.tolist())
    strangers = [key for key in class_weight if key not in known]
    unnamed = [label for label in known if label not in class_weight]
    if strangers and unnamed:  # a fold may lack a class; but one of each kind looks like a mistake
        raise SoftmarginError(
            f"class_weight names classes that are not in y: {strangers}, and leaves out some that are: {unnamed}. "
            "Check the names, or give every class a weight."
        )
    try:
        factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    except (TypeError, ValueError) as error:
        raise SoftmarginError(f"class_weight={class_weight!r} must give a number for each class: {error}.") from error
    if not np.isfinite(factors).all() or (factors < 0).any():
        raise SoftmarginError(f"class_weight={class_weight!r} must hold finite numbers of at least 0.")
    return factors


def signed_weights(
    classes: np.ndarray, codes: np.ndarray, class_weight: Any, sample_weight: Any, rest_unweighted: bool = False
) -> list[np.ndarray]:
    """v = s * y of each sub-problem: one for two classes, one class against the rest for more.

    `rest_unweighted=True` is LIBLINEAR's reading of class weights for more than two classes: in each sub-problem only
    the rows of the one class get their factor.
    """
    base = row_weights(sample_weight, codes.size)
    weights = weights_of_rows(classes, codes, class_weight, base)
    positives = [1] if classes.size == 2 else range(classes.size)
    rest = base if rest_unweighted and classes.size > 2 else weights
    return [np.where(codes == k, weights, -rest) for k in positives]


def weights_of_rows(classes: np.ndarray, codes: np.ndarray, class_weight: Any, sample_weight: Any) -> np.ndarray:
    """Sample weight times class weight of each row, checked."""
    base = row_weights(sample_weight, codes.size)
    weights = base * class_weights(class_weight, classes, codes, base)[codes]
    two_classes_left(codes, weights)
    return weights


def two_classes_left(codes: np.ndarray, weights: np.ndarray) -> None:
    """Refuse weights that leave one class only."""
    if np.count_nonzero(np.bincount(codes, weights)) < 2:
        raise SoftmarginError(
            "all rows with positive weights have the same class: give at least two classes a positive weight."
        )


def kernel_matrix(matrix: np.ndarray) -> None:
    """Refuse a precomputed kernel matrix that is not square or not symmetric."""
    n_rows, n_cols = matrix.shape
    if n_rows != n_cols:
        raise SoftmarginError(
            f"with kernel='precomputed' X must be the square matrix of kernel values between all training rows, but it "
            f"has shape {matrix.shape}. For prediction give K(new rows, training rows)."
        )
    step = max(1, _BLOCK_VALUES // max(1, n_rows))
    largest = difference = 0.0
    for lo in range(0, n_rows, step):
        part = matrix[lo : lo + step, lo:].astype(np.float64)
        largest = max(largest, float(np.abs(part).max()))
        difference = max(difference, float(np.abs(part - matrix[lo:, lo : lo + step].T).max()))
    if difference > _ASYMMETRY * largest:
        raise SoftmarginError(
            f"the precomputed kernel matrix is not symmetric: entries differ from their mirror images by up to "
            f"{difference:.3g}. Use (K + K.T) / 2 if that is rounding."
        )


def finite_scale(C: float, targets: list[np.ndarray]) -> None:
    """Refuse weights so large that the objective at w = 0, C times their sum, is not a number."""
    with np.errstate(over="ignore"):
        largest = C * max(float(np.abs(v).sum()) for v in targets)
    if not np.isfinite(largest):
        raise SoftmarginError(f"C={C:g} times the sum of the weights overflows: make C or the weights smaller.")
