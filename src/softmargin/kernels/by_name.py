"""The kernel that a name and its parameters stand for, wherever these come from: an estimator or a file."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from reprlib import repr as shown
from typing import Any

from softmargin.core.errors import SoftmarginError
from softmargin.kernels.functions import RBF, Kernel, Laplacian, Linear, Polynomial, Sigmoid

LARGEST_DEGREE = 1000  # as of LIBSVM models that are read; each kernel value costs as many products


def named_kernel(name: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel | None:
    """The kernel of these parameters, which may come from a file; None is "precomputed"."""
    makers: dict[str, Callable[[], Kernel | None]] = {
        "linear": Linear,
        "rbf": lambda: RBF(_number(gamma, "gamma", above=0.0)),
        "laplacian": lambda: Laplacian(_number(gamma, "gamma", above=0.0)),
        "poly": lambda: Polynomial(_number(gamma, "gamma", above=0.0), _degree(degree), _number(coef0, "coef0")),
        "sigmoid": lambda: Sigmoid(_number(gamma, "gamma", above=0.0), _number(coef0, "coef0")),
        "precomputed": lambda: None,
    }
    if not isinstance(name, str) or name not in makers:
        raise SoftmarginError(f"kernel={shown(name)} is unknown: choose one of {', '.join(map(repr, makers))}.")
    return makers[name]()


def _number(value: Any, name: str, above: float = -math.inf) -> float:
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an integer beyond double precision
        number = math.nan
    if not above < number < math.inf:
        what = "a finite number" if above < 0.0 else "a positive, finite number"
        raise SoftmarginError(f"{name}={shown(value)} must be {what}.")
    return number


def _degree(value: Any) -> int:
    degree = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else -1
    if not 0 <= degree <= LARGEST_DEGREE:
        raise SoftmarginError(f"degree={shown(value)} must be an integer of at least 0, and at most {LARGEST_DEGREE}.")
    return degree
