"""The judge of the benchmarks for pairs: primal value and dual bound in float64, with NumPy and SciPy alone.

    primal = 1/2 |w|^2 + C / m sum over pairs of max(0, 1 - (w.x_i - w.x_j)),   y_i > y_j in the same query
    dual   = sum_k gamma_k e_k - 1/2 |X' sum_k gamma_k c_k|^2,                  gamma >= 0, sum_k gamma_k <= C

m is the number of pairs. A plane k is given by scores: its pairs are those with f_i - 1 < f_j, e_k their share, and c_k
how often each row is the lower one less how often it is the upper one, over m. It shares no code with softmargin: pairs
are counted by halving the ranks of each query, with a sorted search between the halves.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.objective import Score


def pair_score(
    X: Any,
    y: np.ndarray,
    qid: np.ndarray | None,
    C: float,
    w: np.ndarray,
    gamma: Sequence[float] | np.ndarray | None = None,
    points: Sequence[np.ndarray] = (),
) -> Score:
    """Primal value of w and, if weights and scores of planes are given, the bound they prove."""
    w = np.asarray(w, dtype=np.float64).ravel()
    halves = list(_halves(y, qid))
    n_pairs = sum(float(lower.size) * upper.size for lower, upper in halves)
    f = np.asarray(X @ w, dtype=np.float64)
    net, total = _counts(f, halves)
    primal = 0.5 * float(w @ w) + C * (total - float(net @ (f - f.mean()))) / n_pairs
    if gamma is None:
        return Score(primal)
    gamma = np.clip(np.asarray(gamma, dtype=np.float64), 0.0, None)
    gamma *= min(1.0, C / max(float(gamma.sum()), 1e-300))
    sum_net, e = np.zeros(len(y)), 0.0
    for weight, scores in zip(gamma, points, strict=True):
        net, total = _counts(np.asarray(scores, dtype=np.float64), halves)
        sum_net += weight / n_pairs * net
        e += weight / n_pairs * total
    v = X.T @ sum_net
    return Score(primal, e - 0.5 * float(v @ v))


def _halves(y: np.ndarray, qid: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of lower and of upper ranks, such that every pair is in one of these products."""
    queries = np.zeros(len(y)) if qid is None else qid
    order = np.lexsort((y, queries))
    is_new_query = np.append(True, np.diff(queries[order]) != 0)
    is_new = is_new_query | np.append(True, np.diff(y[order]) != 0)
    starts = np.append(np.flatnonzero(is_new), len(y))
    for lo, hi in pairwise([*np.flatnonzero(is_new_query[is_new]).tolist(), len(starts) - 1]):
        todo = [(lo, hi)]
        while todo:
            lo, hi = todo.pop()
            if hi - lo > 1:
                middle = (lo + hi) // 2
                yield order[starts[lo] : starts[middle]], order[starts[middle] : starts[hi]]
                todo += [(lo, middle), (middle, hi)]


def _counts(f: np.ndarray, halves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, float]:
    """How often each row is the upper one of an active pair, less how often the lower one; and how many there are."""
    net, total = np.zeros(f.size), 0.0
    for lower, upper in halves:
        by_score = lower[np.argsort(f[lower])]
        first = np.searchsorted(f[by_score], f[upper] - 1.0, side="right")  # the pairs with this one and all after it
        active = by_score.size - first
        net[upper] += active
        net[by_score] -= np.cumsum(np.bincount(first, minlength=by_score.size + 1))[:-1]
        total += float(active.sum())
    return net, total
