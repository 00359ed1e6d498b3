"""Compiled part of `vectors.py`."""

from softmargin.core.jit import compiled

_CHUNK = 2048  # entries of the sum that stay in the innermost cache


@compiled(sums=True)
def combine(weights, used, A, lo, hi, out):
    """out[j] = sum over k in `used` of weights[k] A[k, j], for lo <= j < hi."""
    for start in range(lo, hi, _CHUNK):
        y = out[start : min(start + _CHUNK, hi)]
        end = start + y.size
        y[:] = 0.0
        k = 0
        while k + 4 <= used.size:
            w0, w1, w2, w3 = weights[used[k]], weights[used[k + 1]], weights[used[k + 2]], weights[used[k + 3]]
            a0, a1 = A[used[k], start:end], A[used[k + 1], start:end]
            a2, a3 = A[used[k + 2], start:end], A[used[k + 3], start:end]
            for j in range(y.size):
                y[j] += w0 * a0[j] + w1 * a1[j] + w2 * a2[j] + w3 * a3[j]
            k += 4
        while k < used.size:
            w0, a0 = weights[used[k]], A[used[k], start:end]
            for j in range(y.size):
                y[j] += w0 * a0[j]
            k += 1
