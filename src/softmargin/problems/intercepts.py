"""The intercept b of a linear model, w.x + b: free, penalised, or none.

    free        b is not part of w. For every w the best b is taken, and it costs nothing. The dual vector has to
                satisfy one equation: the signed dual variables add up to the problem's total.
    penalised   b = scaling * u, where u is the last entry of w and is penalised like every other weight. That is a
                constant feature with the value `scaling`, without a column in the data.
    none        b = 0.

Problems, judges and solvers ask an intercept what they need to know; none of them asks which of the three it is.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softmargin.core.errors import SoftmarginError


class Intercept(Protocol):
    """What problems, judges and solvers ask about an intercept."""

    @property
    def is_free(self) -> bool:
        """Whether b is chosen for every w, at no cost."""
        ...

    @property
    def feature(self) -> float:
        """The value of the constant feature whose weight is the last entry of w; 0 if there is none."""
        ...

    @property
    def n_weights(self) -> int:
        """How many entries of w do not belong to a column of the data."""
        ...

    @property
    def key(self) -> str:
        """Tells it from other intercepts in the fingerprint of a problem."""
        ...

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights of the columns, and the b that the rest of w stands for (0 if b is free)."""
        ...

    def joined(self, w: np.ndarray, b: float) -> np.ndarray:
        """The whole w of a model with column weights `w` and the intercept b; a free b is left out."""
        ...

    def extended(self, slope: np.ndarray, sum_c: float) -> np.ndarray:
        """The derivative by all of w, from that by the columns and the derivative by b."""
        ...

    def square(self, b: float) -> float:
        """What b adds to |w|^2."""
        ...

    def dual_square(self, sum_beta: float) -> float:
        """What signed dual variables with this sum add to |X'beta|^2."""
        ...

    def dual_intercept(self, sum_beta: float) -> float:
        """The b of the weights that signed dual variables with this sum stand for (0 if b is free)."""
        ...

    def check(self, b: float) -> None:
        """Raise an error if no model of the problem can have this intercept."""
        ...


class _NoWeight:
    """What the free intercept and none have in common: w holds the weights of the columns only."""

    @property
    def feature(self) -> float:
        return 0.0

    @property
    def n_weights(self) -> int:
        return 0

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        return w, 0.0

    def joined(self, w: np.ndarray, b: float) -> np.ndarray:
        return w

    def extended(self, slope: np.ndarray, sum_c: float) -> np.ndarray:
        return slope

    def square(self, b: float) -> float:
        return 0.0

    def dual_square(self, sum_beta: float) -> float:
        return 0.0

    def dual_intercept(self, sum_beta: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Free(_NoWeight):
    """The best b for every w, not penalised."""

    @property
    def is_free(self) -> bool:
        return True

    @property
    def key(self) -> str:
        return "free 1.0"

    def check(self, b: float) -> None:
        pass


@dataclass(frozen=True)
class NoIntercept(_NoWeight):
    """b = 0."""

    @property
    def is_free(self) -> bool:
        return False

    @property
    def key(self) -> str:
        return "none 1.0"

    def check(self, b: float) -> None:
        if b != 0.0:
            raise SoftmarginError(f"the model has the intercept {b}, but the problem is without intercept.")


@dataclass(frozen=True)
class Penalised:
    """b = scaling * u with u the last entry of w: the constant feature of the papers and of LIBLINEAR."""

    scaling: float = 1.0

    @property
    def is_free(self) -> bool:
        return False

    @property
    def feature(self) -> float:
        return self.scaling

    @property
    def n_weights(self) -> int:
        return 1

    @property
    def key(self) -> str:
        return f"penalised {self.scaling}"

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        return w[:-1], self.scaling * float(w[-1])

    def joined(self, w: np.ndarray, b: float) -> np.ndarray:
        return np.append(w, b / self.scaling)

    def extended(self, slope: np.ndarray, sum_c: float) -> np.ndarray:
        return np.append(slope, self.scaling * sum_c)

    def square(self, b: float) -> float:
        u = b / self.scaling
        return u * u

    def dual_square(self, sum_beta: float) -> float:
        u = self.scaling * sum_beta
        return u * u

    def dual_intercept(self, sum_beta: float) -> float:
        return self.scaling * (self.scaling * sum_beta)

    def check(self, b: float) -> None:
        pass


def intercept_named(name: str, scaling: float = 1.0) -> Intercept:
    """The intercept with the name that estimators have for it: "free", "penalised" or "none"."""
    if name == "penalised":
        return Penalised(scaling)
    if name == "free":
        return Free()
    if name == "none":
        return NoIntercept()
    raise SoftmarginError(f"intercept={name!r} is unknown: choose 'free', 'penalised' or 'none'.")
