"""The QP over cutting planes: worked cases, every support by brute force, the gap on large ones."""

import subprocess
import sys
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmargin import SoftmarginError
from softmargin.solvers.reduced_qp import solve_reduced

TOTALS = [1e-6, 1e-3, 1.0, 1e3, 1e6]


def best_value(H, e, total):
    """Return the optimal dual value by trying every support, the zero plane included."""
    t = len(e)
    K = np.zeros((t + 1, t + 1))
    K[:t, :t] = H * total
    shift = np.append(e, 0.0)
    best = 0.0
    indices = range(t + 1)
    for chosen in chain.from_iterable(combinations(indices, size) for size in range(1, t + 2)):
        S = list(chosen)
        n = len(S)
        scale = max(1.0, np.abs(K).max())
        system = np.ones((n + 1, n + 1)) * scale
        system[:n, :n] = K[np.ix_(S, S)]
        system[n, n] = 0.0
        beta = np.linalg.lstsq(system, np.append(shift[S], scale), rcond=1e-13)[0][:n]
        if beta.min() < -1e-9:
            continue
        beta = np.maximum(beta, 0.0)
        beta /= beta.sum()
        best = max(best, total * (shift[S] @ beta - 0.5 * beta @ K[np.ix_(S, S)] @ beta))
    return best


def check(H, e, total, solution, relative=1e-10):
    """Assert feasibility, that value and gap are those of gamma, and that the gap is small."""
    t = len(e)
    gamma = solution.gamma
    assert gamma.shape == (t,)
    assert gamma.min() >= 0.0
    assert gamma.sum() <= total * (1.0 + 1e-15)
    product = H[:t, :t] @ gamma
    value = e @ gamma - 0.5 * gamma @ product
    gap = total * max(0.0, (e - product).max()) - gamma @ (e - product)
    size = max(value, 1e-3 * e.max() * total)
    # H itself carries rounding errors of this size into the gap of any gamma
    root = np.sqrt(np.diag(H)[:t])
    rounding = 1e-15 * (root.max() * (gamma @ root) * total + e.max() * total)
    assert solution.value == pytest.approx(value, rel=1e-12, abs=10.0 * rounding)
    assert solution.gap == pytest.approx(gap, abs=10.0 * rounding)
    assert 0.0 <= solution.gap <= relative * size + 10.0 * rounding


def gram(A):
    return np.ascontiguousarray(A @ A.T)


def test_one_plane_by_hand():
    # min 1/2 * 4 g^2 - 2 g: the free minimiser is 1/2
    free = solve_reduced(np.array([[4.0]]), np.array([2.0]), 10.0)
    assert free.gamma.tolist() == [0.5]
    assert free.value == 0.5
    bound = solve_reduced(np.array([[4.0]]), np.array([2.0]), 0.25)
    assert bound.gamma.tolist() == [0.25]
    assert bound.value == 0.375


def test_two_orthogonal_planes_by_hand():
    # H = I, e = (1, 1), total 1: gamma = (1/2, 1/2), value 1 - 1/4
    solution = solve_reduced(np.eye(2), np.ones(2), 1.0)
    np.testing.assert_allclose(solution.gamma, [0.5, 0.5], rtol=1e-15)
    assert solution.value == pytest.approx(0.75, rel=1e-15)


def test_no_planes():
    solution = solve_reduced(np.empty((0, 0)), np.empty(0), 1.0)
    assert solution.value == solution.gap == 0.0


def test_all_planes_zero_puts_everything_on_the_largest_offset():
    e = np.array([0.1, 0.7, 0.3])
    solution = solve_reduced(np.zeros((3, 3)), e, 2.0)
    np.testing.assert_allclose(solution.gamma, [0.0, 2.0, 0.0])


@pytest.mark.parametrize("total", TOTALS)
def test_zero_offsets_have_the_solution_zero(total):
    H = gram(np.random.default_rng(0).normal(size=(12, 5)))
    assert solve_reduced(H, np.zeros(12), total).value == 0.0
    started = solve_reduced(H, np.zeros(12), total, start=np.full(12, total))
    assert abs(started.value) <= 1e-14 * total * total * H.max()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("total", [1e-2, 1.0, 30.0])
def test_small_problems_match_all_supports(seed, total):
    rng = np.random.default_rng(seed)
    t = 7
    for rank in (1, 2, 4, 9):
        A = rng.normal(size=(t, rank))
        A[2] = 0.0
        A[4] = A[1]
        e = rng.uniform(size=t)
        e[4] = e[1]
        H = gram(A)
        solution = solve_reduced(H, e, total)
        check(H, e, total, solution)
        assert solution.value == pytest.approx(best_value(H, e, total), rel=1e-9)


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize(("t", "rank"), [(1, 1), (30, 1), (30, 4), (60, 20), (200, 50), (80, 300)])
def test_gap_is_small_for_every_total_and_rank(t, rank, total):
    rng = np.random.default_rng(t + rank)
    A = rng.normal(size=(t, rank))
    A[rng.random(t) < 0.1] = 0.0
    A[t // 2] = A[0]
    e = rng.uniform(size=t)
    H = gram(A)
    check(H, e, total, solve_reduced(H, e, total))


@pytest.mark.parametrize("exponent", [-12, -6, 6, 12])
def test_scale_of_the_planes_does_not_matter(exponent):
    rng = np.random.default_rng(5)
    H = gram(rng.normal(size=(40, 10)))
    e = rng.uniform(size=40)
    scale = 2.0 ** round(exponent * np.log2(10.0))
    plain = solve_reduced(H, e, 3.0)
    scaled = solve_reduced(H * scale, e, 3.0 / scale)
    np.testing.assert_allclose(scaled.gamma * scale, plain.gamma, rtol=1e-12)
    assert scaled.value * scale == pytest.approx(plain.value, rel=1e-14)


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-7, 1e-9, 0.0])
@pytest.mark.parametrize("total", [0.1, 10.0, 1e4])
def test_nearly_parallel_planes(noise, total):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(1, 30))
    A = a + noise * rng.normal(size=(100, 30))
    e = 0.5 + noise * rng.uniform(size=100)
    H = gram(A)
    check(H, e, total, solve_reduced(H, e, total))
    check(H, e, total, solve_reduced(H, e, total, start=np.full(100, total / 100)))


def test_planes_of_very_different_length():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(60, 8)) * 10.0 ** rng.uniform(-4, 2, size=(60, 1))
    e = rng.uniform(size=60)
    H = gram(A)
    for total in (1e-4, 1e-1, 1e2):
        check(H, e, total, solve_reduced(H, e, total))


@settings(max_examples=150, deadline=None)
@given(
    t=st.integers(1, 25),
    rank=st.integers(1, 12),
    log_total=st.floats(-6, 3),
    grid=st.booleans(),
    start=st.sampled_from(["none", "negative", "too large", "corner", "dense"]),
    seed=st.integers(0, 10**6),
)
def test_any_start_gives_the_optimum_and_is_not_worsened(t, rank, log_total, grid, start, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(t, rank))
    e = rng.uniform(size=t)
    if grid:  # ties and duplicates
        A, e = np.round(A), np.round(2.0 * e) / 2.0
    total = 10.0**log_total
    starts = {
        "none": None,
        "negative": rng.normal(size=t) * total / t,
        "too large": rng.uniform(size=t) * 5.0 * total,
        "corner": np.eye(t)[0] * total,
        "dense": np.full(t, total / t),
    }
    first = starts[start]
    H = gram(A)
    solution = solve_reduced(H, e, total, start=first)
    check(H, e, total, solution)
    assert solution.n_pivots <= 5 * t + 200
    if first is not None:
        first = np.maximum(first, 0.0)
        first *= min(1.0, total / max(first.sum(), 1e-300))
        before = e @ first - 0.5 * first @ H @ first
        size = (np.abs(H).max() * total + e.max()) * total
        assert solution.value >= before - 1e-14 * size


def test_larger_capacity_and_views_are_read_in_place():
    rng = np.random.default_rng(7)
    t = 20
    H = gram(rng.normal(size=(t, 6)))
    e = rng.uniform(size=t)
    expected = solve_reduced(H, e, 4.0).gamma
    room = np.full((t + 9, t + 9), np.nan)
    room[:t, :t] = H
    readonly = H.copy()
    readonly.flags.writeable = False
    for form in (
        room,
        room[:t, :t],
        room[:t],
        np.asfortranarray(H),
        H.astype(object).astype(float),
        readonly,
    ):
        np.testing.assert_array_equal(solve_reduced(form, e, 4.0).gamma, expected)


def test_tolerance_stops_early():
    rng = np.random.default_rng(8)
    H = gram(rng.normal(size=(200, 80)))
    e = rng.uniform(size=200)
    exact = solve_reduced(H, e, 10.0)
    rough = solve_reduced(H, e, 10.0, tol=0.05 * exact.value)
    assert rough.gap <= 0.05 * exact.value
    assert rough.n_pivots < exact.n_pivots
    assert solve_reduced(H, e, 10.0, start=rough.gamma, tol=0.05 * exact.value).n_pivots == 0
    assert solve_reduced(H, e, 10.0, start=exact.gamma).n_pivots < 20


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan, np.inf])
def test_total_must_be_positive_and_finite(total):
    with pytest.raises(ValueError, match="total must be a positive finite number"):
        solve_reduced(np.eye(2), np.ones(2), total)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="one for each entry of e"):
        solve_reduced(np.eye(2), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="3 entries for 2 planes"):
        solve_reduced(np.eye(2), np.ones(2), 1.0, start=np.ones(3))


def cutting_plane_run(n, d, total, max_planes, noise=0.5, seed=0):
    """Train a hinge-loss machine by plain cutting planes, check every QP, return planes, gap and pivots."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sign(X @ rng.normal(size=d) / np.sqrt(d) + noise * rng.normal(size=n))
    A = np.zeros((max_planes, d))
    H = np.zeros((max_planes, max_planes))
    e = np.zeros(max_planes)
    w = np.zeros(d)
    gamma = np.zeros(0)
    upper, lower = np.inf, 0.0
    pivots = []
    for t in range(1, max_planes + 1):
        margins = y * (X @ w)
        upper = min(upper, 0.5 * w @ w + total * np.maximum(0.0, 1.0 - margins).mean())
        if upper - lower <= 1e-9 * upper:
            break
        A[t - 1] = -(y * (margins < 1.0)) @ X / n
        e[t - 1] = np.mean(margins < 1.0)
        H[t - 1, :t] = H[:t, t - 1] = A[:t] @ A[t - 1]
        solution = solve_reduced(H, e[:t], total, start=gamma)
        check(H, e[:t], total, solution)
        assert solution.value >= lower - 1e-13 * max(lower, 1.0)
        lower = solution.value
        gamma = solution.gamma
        w = -gamma @ A[:t]
        pivots.append(solution.n_pivots)
    return len(pivots), (upper - lower) / upper, np.mean(pivots)


@pytest.mark.parametrize(("d", "total"), [(5, 1.0), (5, 1e3), (20, 1.0), (20, 100.0), (60, 1.0)])
def test_cutting_planes_converge_to_a_tight_gap(d, total):
    planes, relative_gap, pivots = cutting_plane_run(300, d, total, max_planes=400)
    assert relative_gap <= 1e-9
    assert planes < 400
    assert pivots < 15


def test_a_long_run_with_a_large_total():
    planes, relative_gap, _ = cutting_plane_run(1000, 40, 1e5, max_planes=600)
    assert planes == 600
    assert relative_gap < 1.0


@pytest.mark.parametrize(("d", "block"), [(50, 1), (500, 10)])
def test_two_thousand_planes_added_with_warm_starts(d, block):
    rng = np.random.default_rng(d)
    A = rng.normal(size=(2000, d)) / np.sqrt(d)
    e = rng.uniform(size=2000)
    H = gram(A)
    gamma = None
    for t in range(block, 2001, block):
        solution = solve_reduced(H, e[:t], 5.0, start=gamma)
        if t % 100 == 0 or t < 50:
            check(H, e[:t], 5.0, solution)
        gamma = solution.gamma
    cold = solve_reduced(H, e, 5.0)
    check(H, e, 5.0, cold)
    assert cold.value == pytest.approx(solution.value, rel=1e-11)


def test_importing_does_not_import_numba():
    code = "import sys, softmargin.solvers.reduced_qp; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_weights_to_start_from_that_are_not_finite_are_refused():
    """As an overflow in a damaged training state leaves them."""
    H = np.array([[2.0, 0.5], [0.5, 1.0]])
    for start in ([np.inf, 0.5], [np.inf, np.inf]):
        with np.errstate(invalid="ignore"), pytest.raises(SoftmarginError, match="that no planes can have"):
            solve_reduced(H, np.ones(2), 1.0, np.array(start))


@pytest.mark.parametrize("exponent", [-320, -150, 150, 320])
def test_planes_of_any_length_have_the_same_value(exponent):
    rng = np.random.default_rng(0)
    A, e = rng.standard_normal((30, 6)), rng.uniform(0.5, 2.0, 30)
    unit = 2.0**exponent
    gamma = np.zeros(0)
    for t in range(1, 31):  # one plane after the other, as cutting planes do
        expected = solve_reduced(A[:t] @ A[:t].T, e[:t], 5.0)
        found = solve_reduced((A[:t] @ A[:t].T) * unit * unit, e[:t], 5.0 / unit / unit, gamma)
        gamma = found.gamma
        assert found.value * unit * unit == pytest.approx(expected.value, rel=1e-9)


def test_a_short_plane_beside_very_long_ones():
    long = 1e12 * np.array([[1.0, 0.2], [-0.3, 1.0]])
    A, e = np.vstack([long, [[-4.0, 1.0]]]), np.array([1e12, 1e12, 4.0])
    solution = solve_reduced(A @ A.T, e, 100.0)
    w = -(solution.gamma @ A)
    risk = max(0.0, float((A @ w + e).max()))
    assert solution.gamma[2] > 1.0
    assert 0.5 * w @ w + 100.0 * risk == pytest.approx(solution.value, rel=1e-3)
