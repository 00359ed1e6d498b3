"""The variables of a working set: their values and bounds, and the kinks of regression.

    min 1/2 beta'K beta - p'beta + epsilon sum |beta_i|,   lo <= beta <= hi

A variable of regression may be on either side of zero. At zero the slope of the objective, and with it the variable's
wish g, jumps by 2 epsilon, but pivots (`inner.py`) need an objective without kinks. So such a variable is always on one
of its two segments, from lo to 0 or from 0 to hi, and zero is a bound of both; `other` is the far end of the segment
that it is not on. A variable at zero may change to its other segment (`flip`), if it wants away from zero in that
direction.

Variables of classification and of one class have one segment, from lo to hi.
"""

import numpy as np

# Vectors that are kept of the variables: from `beta` to `other`.
_N_VECTORS = 8


class Segments:
    """Variables in places 0 .. size - 1, each on one segment; `index` are their rows in the whole problem.

    `side` is 1 at the lower end of the segment, -1 at the upper, 0 if the variable is free. `matrix` is the kernel
    matrix of the variables.
    """

    def __init__(self, room: int, epsilon: float) -> None:
        self.size = 0
        self.epsilon = epsilon
        self.has_kinks = False
        self._matrix = np.empty((0, 0))
        self._index = np.empty(0, dtype=np.int64)
        self._values = np.empty((_N_VECTORS, 0))
        self.grow(room)

    def grow(self, room: int) -> None:
        """Make room for so many variables."""
        m, matrix, values = self.size, self._matrix, self._values
        self._matrix = np.empty((room, room))
        self._matrix[:m, :m] = matrix[:m, :m]
        self._index = np.append(self._index[:m], np.full(room - m, -1))
        self._values = np.zeros((_N_VECTORS, room))
        self._values[:, :m] = values[:, :m]

    @property
    def room(self) -> int:
        return self._index.size

    @property
    def values(self) -> np.ndarray:
        """All that is known of the variables: the vectors below, one after the other."""
        return self._values[:, : self.size]

    @property
    def matrix(self) -> np.ndarray:
        return self._matrix[: self.size, : self.size]

    @property
    def index(self) -> np.ndarray:
        return self._index[: self.size]

    @property
    def beta(self) -> np.ndarray:
        return self._values[0, : self.size]

    @property
    def g(self) -> np.ndarray:
        return self._values[1, : self.size]

    @property
    def lo(self) -> np.ndarray:
        return self._values[2, : self.size]

    @property
    def hi(self) -> np.ndarray:
        return self._values[3, : self.size]

    @property
    def side(self) -> np.ndarray:
        return self._values[4, : self.size]

    @property
    def barred(self) -> np.ndarray:
        """1 for variables that entered in vain, until something moves."""
        return self._values[5, : self.size]

    @property
    def retired(self) -> np.ndarray:
        """1 for variables that are zero for good: neither free nor at a bound that they could want away from."""
        return self._values[6, : self.size]

    @property
    def other(self) -> np.ndarray:
        """The far end of the segment that a variable is not on, beyond zero; 0 if it has one segment only."""
        return self._values[7, : self.size]

    @property
    def shift(self) -> np.ndarray:
        """What the wishes of variables with two segments differ by from p - K beta."""
        return self.epsilon * np.sign(self.other)

    def place_on_segments(self, places: np.ndarray, beta: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
        """Set beta and bounds of these places; variables that may be on either side of zero get one segment."""
        kinks = (lo < 0.0) & (hi > 0.0)
        is_below = kinks & (beta < 0.0)
        is_above = kinks & (beta >= 0.0)
        self.beta[places] = beta
        self.lo[places], self.hi[places] = np.where(is_above, 0.0, lo), np.where(is_below, 0.0, hi)
        self.other[places] = np.where(is_above, lo, np.where(is_below, hi, 0.0))
        self.side[places] = sides_of(beta, self.lo[places], self.hi[places])
        self.has_kinks |= bool(kinks.any())

    def flip(self, k: int) -> None:
        """Change a variable at zero to its other segment."""
        jump = 2.0 * self.epsilon
        if self.other[k] < 0.0:
            self.lo[k], self.hi[k], self.other[k] = self.other[k], 0.0, self.hi[k]
            self.side[k], self.g[k] = -1.0, self.g[k] + jump
        else:
            self.lo[k], self.hi[k], self.other[k] = 0.0, self.other[k], self.lo[k]
            self.side[k], self.g[k] = 1.0, self.g[k] - jump

    def wishes_at_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The wishes of the variables that may rise, minus infinity for others; and of those that may fall, infinity.

        A variable at zero may change its segment, and so may rise and fall.
        """
        rise = np.where(self.side > 0.0, self.g, -np.inf)
        fall = np.where(self.side < 0.0, self.g, np.inf)
        if self.has_kinks:
            both, jump = self._at_kink(), 2.0 * self.epsilon
            rise = np.where(both & (self.side < 0.0), self.g - jump, rise)
            fall = np.where(both & (self.side > 0.0), self.g + jump, fall)
        return rise, fall

    def cross_kinks(self, prices: np.ndarray) -> None:
        """Put variables at zero that want to their other segment there, and give them that price, in place."""
        if self.has_kinks:
            beyond = -prices - 2.0 * self.epsilon
            for k in (self._at_kink() & (beyond > np.maximum(prices, 0.0))).nonzero()[0].tolist():
                self.flip(k)
                prices[k] = beyond[k]

    def _at_kink(self) -> np.ndarray:
        """Which variables could change to another segment."""
        return (self.other != 0.0) & (self.beta == 0.0) & (self.side != 0.0)

    def move_last(self, k: int) -> None:
        """Give up place k: the last variable moves there."""
        last = self.size - 1
        if k != last:
            matrix = self.matrix
            matrix[k] = matrix[last]
            matrix[:, k] = matrix[:, last]
            matrix[k, k] = matrix[last, last]
            self._values[:, k] = self._values[:, last]
            self._index[k] = self._index[last]
        self._matrix[last], self._matrix[:, last] = 0.0, 0.0
        self._values[:, last] = 0.0
        self._index[last] = -1
        self.size = last

    def shrink(self, size: int) -> None:
        """Give up all places from this one on; none of them is free."""
        self._index[size : self.size] = -1
        self.size = size


def sides_of(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """1 at the lower bound, -1 at the upper, 0 between."""
    return np.subtract(beta <= lo, beta >= hi, dtype=np.float64)
