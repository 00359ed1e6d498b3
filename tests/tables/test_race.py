"""The race of linear SVMs says which of its cells were not measured."""

from itertools import product

from benchmarks.tables import linear_race


def _rows(problem, without=()):
    hinge = [(C, tol, "hinge") for C, tol in product(linear_race.CS, linear_race.TOLS)]
    squared = [(C, max(linear_race.TOLS), "squared_hinge") for C in linear_race.SQUARED_CS]
    cells = [cell for cell in hinge + squared if cell not in without]
    return [{"problem": problem, "C": C, "tol": tol, "loss": loss} for C, tol, loss in cells]


def test_cells_that_are_missing_are_named():
    assert linear_race._unmeasured(_rows("a9a")) == []
    rows = _rows("mnist 10", without={(100.0, 1e-6, "hinge"), (1.0, 1e-3, "squared_hinge")}) + _rows("a9a")
    assert linear_race._unmeasured(rows) == [
        "mnist 10 C=1 gap 0.001 squared_hinge",
        "mnist 10 C=100 gap 1e-06 hinge",
    ]


def test_a_problem_that_is_no_part_of_the_race_has_no_cells():
    assert linear_race._unmeasured([{"problem": "generated", "C": 1.0, "tol": 1e-3, "loss": "hinge"}]) == []
