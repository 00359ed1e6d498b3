"""Compiled dynamic programme of `thresholds.py`."""

import numpy as np

from softmargin.core.jit import compiled


@compiled
def place_cuts(scores, ranks, weights, cost, cuts):
    """The best places of the cuts among rows in ascending order of their scores; returns the cost.

    Rows before cuts[0] get rank 0, those before cuts[1] rank 1, and so on. best[p] is the least cost of the first p
    rows when they use the ranks up to k; a row of `begins` remembers where a cheaper beginning of rank k was found.
    """
    n = scores.size
    n_ranks = cost.shape[0]
    best = np.empty(n + 1)
    begins = np.zeros((n_ranks, n + 1), dtype=np.bool_)
    best[0] = 0.0
    for p in range(n):
        best[p + 1] = best[p] + weights[p] * cost[0, ranks[p]]
    for k in range(1, n_ranks):
        running = best[0]  # the first p rows, with rank k beginning at the best place so far
        begins[k, 0] = True
        for p in range(1, n + 1):
            running += weights[p - 1] * cost[k, ranks[p - 1]]
            if best[p] <= running and (p == n or scores[p - 1] < scores[p]):
                running = best[p]
                begins[k, p] = True
            best[p] = running
    p = n
    for k in range(n_ranks - 1, 0, -1):
        while not begins[k, p]:
            p -= 1
        cuts[k - 1] = p
    return best[n]
