"""The exact judge itself: optima worked out by hand, and that it notices what is wrong."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from exact.objective import EXP_ERROR, JointTask, KernelTask, LinearTask, exp_minus
from exact.problems import Problem
from exact.rational import BoxQP, dyadic, maximise, solve_symmetric
from exact.verdict import faults_of

HALF = Fraction(1, 2)


def fractions(rows):
    return [[Fraction(value) for value in row] for row in rows]


def hinge(X, y, costs, free=True):
    vectors = [[sign * Fraction(v) for v in x] for x, sign in zip(X, y, strict=True)]
    return LinearTask(vectors, [Fraction(c) for c in costs], [[sign] if free else [] for sign in y])


def test_two_points_with_room_between_them():
    """x = -1, 1: w = 1, b = 0 has no loss, and any shorter w pays 2 C per unit."""
    task = hinge([[-1], [1]], [-1, 1], [1, 1])
    assert task.optimum.lower == task.optimum.upper == HALF
    assert task.primal([Fraction(1)], [Fraction(0)]).lower == HALF
    assert task.primal([Fraction(0)], [Fraction(0)]).lower == 2


def test_two_points_with_little_C():
    """alpha = C: w = 2 C, value 2 C - 1/2 (2 C)^2."""
    C = Fraction(1, 8)
    task = hinge([[-1], [1]], [-1, 1], [C, C])
    assert task.optimum.lower == task.optimum.upper == 2 * C - 2 * C**2


def test_the_same_row_in_both_classes():
    """Nothing separates them: w = 0, and the lighter row is lost with a hinge of 2."""
    task = hinge([[3], [3]], [-1, 1], [5, 2])
    assert task.optimum.lower == task.optimum.upper == 4


def test_without_intercept():
    """max 2 a - 1/2 a^2 (x = 1 and x = 1 of one class, no intercept): a = 1 in all, value 1/2."""
    task = hinge([[1], [1]], [1, 1], [3, 3], free=False)
    assert task.optimum.lower == task.optimum.upper == HALF


def test_squared_losses():
    """x = 2, no intercept: 1/2 w^2 + C (1 - 2 w)^2 is least at w = 4 C / (1 + 8 C), where it is C / (1 + 8 C)."""
    for C in (Fraction(1, 8), Fraction(3)):
        task = replace(hinge([[2]], [1], [C], free=False), squared=True)
        least = C / (1 + 8 * C)
        assert task.optimum.lower == task.optimum.upper == least
        assert task.primal([4 * C / (1 + 8 * C)], []).lower == least


def test_squared_losses_with_an_intercept():
    """The same row in both classes: w = 0, and b is the mean of the labels, weighted. Weight 0 leaves a row out."""
    task = replace(hinge([[3], [3], [5]], [-1, 1, 1], [5, 2, 0]), squared=True)
    b = Fraction(-3, 7)
    assert task.optimum.lower == task.optimum.upper == 5 * (1 + b) ** 2 + 2 * (1 - b) ** 2
    assert task.primal([Fraction(0)], [b]).lower == task.optimum.lower


def test_ascending_thresholds_are_a_constraint():
    """Ranks 0, 1, 2 at the one point x = 0: w = 0, and theta_0 = theta_1 = 0 loses 4; without the order it is 4 too for
    single rows, but a heavy middle row pulls its thresholds apart."""
    vectors = fractions([[0], [0], [0], [0]])
    coefficients = [[1, 0], [-1, 0], [0, 1], [0, -1]]  # -z e_k of rank 0 at 0, rank 1 at 0 and 1, rank 2 at 1
    crossed = LinearTask(vectors, [Fraction(5), Fraction(1), Fraction(1), Fraction(5)], coefficients)
    ordered = replace(crossed, ascending=True)
    # free: theta_0 = 1, theta_1 = -1, only rank 1 loses (2 each); in order: theta_0 = theta_1 = t costs
    # 5 (1 - t)+ + (1 + t)+ + (1 - t)+ + 5 (1 + t)+, least 12 for t in [-1, 1]
    assert crossed.optimum.lower == crossed.optimum.upper == 4
    assert ordered.optimum.lower == ordered.optimum.upper == 12


def test_kernel_and_linear_task_agree():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.integers(-3, 4, (6, 2)).tolist()
        y = [1, -1, 1, -1, 1, -1]
        costs = [Fraction(int(c)) for c in rng.integers(1, 4, 6)]
        K = fractions([[sum(a * b for a, b in zip(x, z, strict=True)) for z in X] for x in X])
        kernel = KernelTask(K, Fraction(0), y, costs)
        assert kernel.optimum == hinge(X, y, costs).optimum


def tube(X, y, cost, epsilon):
    """A regression with a free intercept, over rows of integers."""
    vectors = fractions([*X, *([-v for v in x] for x in X)])
    margins = [Fraction(t) - epsilon for t in y] + [-Fraction(t) - epsilon for t in y]
    return LinearTask(vectors, [Fraction(cost)] * len(margins), [[1]] * len(X) + [[-1]] * len(X), margins=margins)


def test_a_line_through_two_points_with_a_tube():
    """x = -1, 1 and y = -1, 1 with epsilon = 1/2: w = 1/2, b = 0 touches both, and any shorter w pays 2 C a unit."""
    task = tube([[-1], [1]], [-1, 1], 1, HALF)
    assert task.optimum.lower == task.optimum.upper == HALF**3
    assert task.primal([HALF], [Fraction(0)]).lower == HALF**3
    assert task.primal([Fraction(0)], [Fraction(0)]).lower == 1  # each of both misses its tube by 1/2


def test_numbers_that_fit_into_the_tube():
    task = tube([[-1], [1]], [-1, 1], 1, Fraction(1))
    assert task.optimum.lower == task.optimum.upper == 0


def test_one_class_of_two_rows():
    """x = 1, 3 and nu = 1/2, so that sum(a) = 1: all of it goes to the row next to the origin, w = 1, value -1/2."""
    rows, costs, zeros = fractions([[1], [3]]), [Fraction(1)] * 2, [Fraction(0)] * 2
    task = LinearTask(rows, costs, [[1], [1]], margins=zeros, total=Fraction(1))
    assert task.optimum.lower == task.optimum.upper == -HALF
    assert task.primal([Fraction(1)], [Fraction(-1)]).lower == -HALF
    K = fractions([[1, 3], [3, 9]])
    kernel = KernelTask(K, Fraction(0), [1, 1], costs, zeros, total=Fraction(1))
    assert kernel.optimum == task.optimum
    assert kernel.primal([Fraction(1), Fraction(0)], Fraction(-1)).lower == -HALF


def test_one_class_around_the_origin():
    task = LinearTask(
        fractions([[-1], [2]]), [Fraction(1)] * 2, [[1], [1]], margins=[Fraction(0)] * 2, total=Fraction(1)
    )
    assert task.optimum.lower == task.optimum.upper == 0


def test_kernel_and_linear_regression_agree():
    rng = np.random.default_rng(2)
    for _ in range(20):
        X, y = rng.integers(-3, 4, (5, 2)).tolist(), rng.integers(-3, 4, 5).tolist()
        task = tube(X, y, 2, HALF)
        K = fractions([[sum(a * b for a, b in zip(x, z, strict=True)) for z in X] for x in X])
        kernel = KernelTask(K, Fraction(0), [1] * 5 + [-1] * 5, task.costs, task.margins, [*range(5)] * 2)
        assert kernel.optimum == task.optimum
        assert kernel.optimum.lower == kernel.optimum.upper


def test_optimum_proves_itself_on_degenerate_programs():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n = int(rng.integers(2, 9))
        V = rng.integers(-1, 2, (n, 2))
        Q = fractions((V @ V.T).tolist())
        A = [rng.choice([-1, 1], n).tolist()] if rng.random() < 0.7 else []
        found = maximise(BoxQP(Q, [1] * n, [Fraction(int(c)) for c in rng.integers(0, 3, n)], A))
        assert found.lower == found.upper


def test_singular_systems():
    assert solve_symmetric([[2, 0], [0, 4]], [2, 2]).solution == [8, 4]  # over the denominator 8
    assert solve_symmetric([[1, 1], [1, 1]], [3, 3]).rise is None
    assert solve_symmetric([[1, 1], [1, 1]], [3, 2]).rise == [1, -1]


def test_exp_is_as_exact_as_it_says():
    e = sum(Fraction(1, k) for k in _factorials(100))
    assert abs(exp_minus(Fraction(1)) - 1 / e) <= EXP_ERROR
    assert abs(exp_minus(Fraction(64)) - 1 / e**64) <= EXP_ERROR
    assert exp_minus(Fraction(0)) == 1
    assert exp_minus(Fraction(10) ** 600) == 0


def _factorials(n):
    value = 1
    for k in range(1, n):
        yield value
        value *= k


@pytest.mark.parametrize("values", [[0.1, 1e300, -5e-324, 0.0], [0.0], [3.0, -0.5]])
def test_floats_are_taken_exactly(values):
    integers, exponent = dyadic(values)
    assert [Fraction(v) * Fraction(2) ** exponent for v in integers] == [Fraction(v) for v in values]


def _with(model, certificates):
    model.certificates_ = certificates
    model.certificate_ = type(certificates[0]).combine(certificates)
    return model


ESTIMATORS = ["LinearSVC", "SVC", "RankSVM", "OrdinalSVC", "LinearSVR", "SVR", "LinearOneClassSVM", "OneClassSVM"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_false_bracket_is_noticed(estimator):
    X, y = np.array([[-1.0], [0.5], [0.7], [3.0]]), [0, 1, 0, 1]
    is_one_class = "OneClass" in estimator
    problem = Problem(-1, estimator, {"nu" if is_one_class else "C": 1.0, "tol": 1e-9}, X, y)
    model = problem.fit()
    [certificate] = model.certificates_
    size = abs(certificate.primal)
    wide = replace(certificate, primal=1e6, dual=-1e6, gap=2e6)
    assert not list(faults_of(problem, _with(model, [replace(wide, relative_gap=0.0)])))
    low = replace(wide, primal=certificate.primal - 1e-12 * size)
    assert "below the exact objective" in next(faults_of(problem, _with(model, [low])))
    high = replace(wide, dual=certificate.primal + 1e-12 * size)
    assert "above the exact optimum" in next(faults_of(problem, _with(model, [high])))
    missing = replace(wide, dual=float("nan"))
    assert "NaN" in next(faults_of(problem, _with(model, [missing])))


def test_three_classes_at_three_points():
    """Row i is the unit vector e_i of class i, so that w_k = a (e_k - mean). With a = 1 no row loses, and the value is
    1/2 * 3 * 2/3 = 1; a smaller C makes it shorter."""
    X = fractions(np.eye(3).tolist())
    task = JointTask(X, [0, 1, 2], [Fraction(1)] * 3, 3)
    W = fractions((3 * np.eye(3) - 1).tolist())
    W = [[v / 3 for v in w] for w in W]
    assert task.optimum.lower == task.optimum.upper == task.primal(W).lower == 1
    little = JointTask(X, [0, 1, 2], [Fraction(1, 10)] * 3, 3)
    assert little.optimum.lower == little.optimum.upper < Fraction(3, 10)
    assert task.primal([[Fraction(0)] * 3] * 3).lower == 3


def test_a_joint_problem_of_two_classes_is_a_hinge():
    """1/2 |v|^2 / 2 + c hinge: half of the hinge problem at twice the cost."""
    X, y = [[1, 2], [-1, 0], [3, 1], [0, -2]], [1, -1, -1, 1]
    joint = JointTask(fractions(X), [1, 0, 0, 1], [Fraction(1)] * 4, 2)
    plain = hinge(X, y, [2] * 4, free=False)
    assert joint.optimum.lower == joint.optimum.upper == plain.optimum.lower / 2


def test_a_gap_that_is_too_small_is_noticed():
    problem = Problem(-1, "LinearSVC", {"C": 1.0}, np.array([[-1.0], [1.0]]), [0, 1])
    model = problem.fit()
    model.coef_, model.intercept_ = np.array([[0.0]]), np.array([0.0])  # objective 2, optimum 1/2
    [certificate] = model.certificates_
    assert not list(faults_of(problem, _with(model, [replace(certificate, primal=2.0, dual=0.5, gap=1.5)])))
    [fault] = faults_of(problem, _with(model, [replace(certificate, primal=2.0, dual=0.5, gap=1.4)]))
    assert "below the exact gap" in fault


def test_a_model_that_is_not_a_number_is_noticed():
    problem = Problem(-1, "LinearSVC", {}, np.array([[-1.0], [1.0]]), [0, 1])
    model = problem.fit()
    model.coef_ = np.full_like(model.coef_, np.nan)
    assert "no finite numbers" in next(faults_of(problem, model))


def test_a_false_claim_of_optimality_is_noticed():
    problem = Problem(-1, "LinearSVC", {"C": 1.0}, np.array([[-1.0], [1.0]]), [0, 1])
    model = problem.fit()
    [certificate] = model.certificates_
    open_gap = replace(certificate, primal=9.0, dual=0.0, gap=9.0, relative_gap=1.0)
    assert any("exceeds tol" in fault for fault in faults_of(problem, _with(model, [open_gap])))
