"""Error bounds of sums of kernel values, row by row: see `errors.py`."""

from softmargin.core.jit import compiled
from softmargin.linalg.rounding import SLACK


@compiled
def split(beta, sizes, columns):
    """The positive and the negative part of beta, and |beta| times the sizes if there are any, as columns."""
    for i in range(beta.size):
        columns[i, 0] = 0.0 if beta[i] <= 0.0 else beta[i]  # also if it is not a number
        columns[i, 1] = beta[i] if beta[i] < 0.0 else 0.0
        if sizes.size > 0:
            columns[i, 2] = abs(beta[i]) * sizes[i]


@compiled
def off(sums, sizes, relative, growth, worst, least, total, summing, out):
    """How far sums are off: by the errors of their entries, which are at most `total` altogether, and by adding up."""
    for i in range(out.size):
        reach = sums[i, 0] - sums[i, 1]
        error = (relative * reach + growth * (sizes[i] * reach + sums[i, 2])) / (1.0 - worst) + least
        out[i] = (min(error * (1.0 + summing), total) + summing * reach * (1.0 + summing)) * SLACK
