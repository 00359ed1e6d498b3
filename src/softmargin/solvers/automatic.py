"""The solver behind solver="auto" of linear machines: coordinate descent or cutting planes, whichever suits the data.

    few columns and many entries    cutting planes. Their iterations grow with the columns, hardly with C, and each of
                                    them passes over the data at the speed of the memory, on all threads.
    few columns and long rows       cutting planes. Coordinate descent crawls where C |x|^2 is large beside the number
                                    of columns, and the more so the more entries there are.
    many entries by columns         cutting planes: single rows would have to be gathered from all over the memory.
    several classes at once         coordinate descent, which looks only at the classes that a row may lose to; a plane
                                    looks at all of them.
    everything else                 coordinate descent, which needs few passes where the rows are short or few, whatever
                                    the number of columns.

It may crawl even so. Therefore coordinate descent gets a number of passes that grows with the columns, as the
iterations of cutting planes do. If these do not lead to the goal, cutting planes go on from its best point. What is
decided depends on counts alone, never on a clock, and so a fit that is repeated ends in the same bits.

Squared losses have Newton's method in place of cutting planes. It begins where there are few columns, and at least as
many rows.

Both solvers are given: this file knows neither of them. The state is that of the one whose turn it is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmargin.core.kinds import COORDINATES, SMOOTH
from softmargin.core.result import Solution, WeightStart
from softmargin.core.stopping import Measure
from softmargin.problems.base import Coordinates, JointCoordinates
from softmargin.solvers.base import Solver

# Cutting planes begin where there are at most so many columns, and where C mean|x|^2 is more than so many times their
# number, by the number of entries; the second number is for a free intercept, which takes coordinate descent longer.
# Measured on Adult and Web (half a million entries) and on e-mails of raw counts (60,000 entries). With more entries
# than in any of these they always begin, but where there are more columns than WIDE: there the limit is WIDE_LENGTH
# (images of digits).
FEW_COLUMNS = 1024
ENTRIES_AND_LENGTHS = ((1 << 20, 0.0, 0.0), (1 << 18, 0.4, 0.6), (0, 30.0, 30.0))
WIDE, WIDE_LENGTH = 256, 0.03
# Newton's method begins where C mean|x|^2 is at least so large: below, a few passes of coordinate descent suffice. From
# so many entries of a row on (images of digits) it grows with their square, as the cost of a matrix does; a dense
# product costs as much as if rows had this share of their entries. With many rows (types of forest) it is less, because
# coordinate descent waits for the memory at each row.
LEAST_LENGTH, SHORT_ROW, DENSE_SHARE = 0.3, 16.0, 0.2
MANY_ROWS, LEAST_LENGTH_OF_MANY = 1 << 17, 0.03
# Of a row, where Newton's method adds up squares of features: far from the largest number that there is.
LARGEST_CURVATURE = 1e200
# Data by columns are gathered by rows if they are smaller than that.
MANY_ENTRIES = 1 << 18
# Passes of coordinate descent before cutting planes take over: so many, and so many more for each column or row,
# whichever are fewer. With more than MANY_PLANES of both they would need too many planes to be of help.
FIRST_PASSES, PASSES_EACH, MANY_PLANES = 60, 6, 2000


@dataclass(frozen=True)
class Automatic:
    """Begins with one of two solvers for linear machines, and may change over to the second."""

    coordinates: Any
    planes: Any

    @property
    def needs(self) -> str:
        return self.planes.needs

    @property
    def stopping(self) -> str:
        return self.planes.stopping

    @property
    def state_type(self) -> Any:
        return (self.coordinates.state_type, self.planes.state_type)

    def init(self, problem: Any, start: Any = None) -> Any:
        if isinstance(start, self.state_type):
            return self._turn_of(start).init(problem, start)
        first = self.planes if suits_planes(problem) else self.coordinates
        return first.init(problem, start)

    def step(self, problem: Any, state: Any) -> Any:
        if isinstance(state, self.coordinates.state_type) and self._is_lost(problem, state):
            counts = self.coordinates.counts(state)
            begun = self.planes.init(problem, WeightStart(state.best))
            state = replace(begun, iterations=counts["iterations"], passes=counts["passes"])
        return self._turn_of(state).step(problem, state)

    def measure(self, problem: Any, state: Any) -> Measure:
        """Coordinate descent that gets on too slowly is followed by cutting planes, where these are of help."""
        measure = self._turn_of(state).measure(problem, state)
        return replace(measure, spent=measure.spent and not _has_few_planes(problem))

    def counts(self, state: Any) -> dict[str, int]:
        return self._turn_of(state).counts(state)

    def solution(self, problem: Any, state: Any) -> Solution:
        return self._turn_of(state).solution(problem, state)

    def is_stalled(self, state: Any) -> bool:
        """Coordinate descent that has stalled is followed by cutting planes."""
        return isinstance(state, self.planes.state_type) and self.planes.is_stalled(state)

    def remark(self, problem: Any, state: Any) -> str:
        """Which of them solved it, and why."""
        if isinstance(state, self.coordinates.state_type):
            return "Coordinate descent, because there are many features or little data."
        if self.needs == SMOOTH:
            return "Newton's method, because the loss is squared and there are few features."
        if COORDINATES not in problem.serves:
            return "Cutting planes (OCAS), because they need products with X only, and not single rows in memory."
        if suits_planes(problem):
            return "Cutting planes (OCAS), because there are few features, and much data or long rows for this C."
        return "Coordinate descent, and then cutting planes (OCAS), because the gap did not close soon enough."

    def _turn_of(self, state: Any) -> Solver:
        return self.planes if isinstance(state, self.planes.state_type) else self.coordinates

    def _is_lost(self, problem: Any, state: Any) -> bool:
        few = min(problem.n_outputs, problem.n_weights)
        is_long = self.coordinates.counts(state)["passes"] > FIRST_PASSES + PASSES_EACH * few
        is_slow = is_long or self.coordinates.measure(problem, state).spent
        return (is_slow and _has_few_planes(problem)) or self.coordinates.is_stalled(state)


def _has_few_planes(problem: Any) -> bool:
    return min(problem.n_outputs, problem.n_weights) <= MANY_PLANES


def suits_planes(problem: Any) -> bool:
    """Whether cutting planes are the better beginning; where single rows cannot be reached they are the only one."""
    if COORDINATES not in problem.serves:
        return True
    if SMOOTH in problem.serves:  # these are no planes, but Newton's method
        squares = problem.rows.sq_norms()
        largest = float(squares.max(initial=0.0)) / float(problem.coordinates.ridge.min(initial=1.0))
        is_long = problem.C * float(squares.mean()) >= _least_length(problem)
        return problem.n_weights <= min(FEW_COLUMNS, problem.n_rows) and largest < LARGEST_CURVATURE and is_long
    flat = problem.rows.flat
    n_entries = flat.values.size
    if problem.n_weights > FEW_COLUMNS or flat.fortran or isinstance(problem.coordinates, JointCoordinates):
        return flat.fortran and n_entries >= MANY_ENTRIES
    lengths = next(lengths for entries, *lengths in ENTRIES_AND_LENGTHS if n_entries >= entries)
    least, is_free = lengths[problem.intercept.is_free], problem.intercept.is_free
    if least == 0.0 and problem.n_weights > WIDE:
        least, is_free = WIDE_LENGTH, False
    if not is_free:
        least /= _share_of_smaller_side(problem.coordinates)
    return least == 0.0 or problem.C * float(problem.rows.sq_norms().mean()) > least * problem.n_weights


def _least_length(problem: Any) -> float:
    """C mean|x|^2 from which on Newton's method is faster than coordinate descent."""
    flat = problem.rows.flat
    each = min(flat.values.size / max(flat.n_rows, 1), DENSE_SHARE * flat.n_cols)
    least = LEAST_LENGTH if flat.n_rows < MANY_ROWS else LEAST_LENGTH_OF_MANY
    return least * max(1.0, each / SHORT_ROW) ** 2


def _share_of_smaller_side(given: Coordinates) -> float:
    """The part of the variables that can rise, or that can fall, whichever are fewer, as a share of one half.

    Of a class that has many more rows than the other one most stay at zero, and coordinate descent leaves them alone.
    """
    sides = [np.count_nonzero(given.hi > 0.0), np.count_nonzero(given.lo < 0.0)]
    return min(1.0, 2.0 * min(sides) / given.target.size) if min(sides) else 1.0
