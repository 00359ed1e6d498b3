"""Measures of the order that scores give to the rows of each query.

Rows of equal score have no order: every measure is its mean over all orders of them, so that scores which say nothing
are worth as much as drawing lots.
"""

from dataclasses import dataclass
from math import lgamma
from typing import Any, Literal

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.linalg.counting import ordered_pairs
from softmargin.metrics.queries import Queries, queries_of

# 2^y - 1 of larger grades would overflow when summed.
MAX_GRADE = 900.0


@dataclass(frozen=True, eq=False)
class QueryValues:
    """A measure of each query; `float()` of it is the mean.

    Attributes
    ----------
    queries : array, the queries in the order of their first rows
    values : array, the measure of each, NaN where it was left out of the mean
    """

    queries: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> float:
        """Over the queries that were not left out, each counting the same."""
        return float(np.nanmean(self.values))

    def __float__(self) -> float:
        return self.mean


def swapped_pairs(y: Any, scores: Any, qid: Any = None, sample_weight: Any = None) -> float:
    """Share of the pairs of rows of one query with y_i > y_j whose scores are in the wrong order; ties count half.

    It is an error rate: 1 - swapped_pairs is the ROC area if y has two values and there is one query.

    Parameters
    ----------
    y : array of grades or real targets, larger belonging further up
    scores : array of the same length, larger meaning further up
    qid : the query of each row, in any order and of any hashable kind; default: one query
    sample_weight : array of weights s_i; a pair counts s_i s_j
    """
    y, scores = _checked(y, scores)
    weights = None if sample_weight is None else _weights(sample_weight, y.size)
    found = ordered_pairs(scores, y, queries_of(qid, y.size).codes, weights)
    n_pairs = sum(found)
    if n_pairs == 0:
        raise SoftmarginError(
            f"all y are {y[0]:g}: there is no pair to put in order."
            if y.min() == y.max()
            else "there is no pair of rows with different y in any query, both of weight above 0: check qid."
        )
    return min((found.discordant + 0.5 * found.tied) / n_pairs, 1.0)  # sums of weights are rounded


def ndcg_by_query(
    y: Any,
    scores: Any,
    qid: Any = None,
    k: int | None = 10,
    *,
    gains: Literal["exponential", "linear"] = "exponential",
    without_relevant: Literal["skip", 0, 1] = "skip",
) -> QueryValues:
    """Normalised discounted cumulative gain of the first k rows of each query.

    DCG = sum over places p = 1..k of gain / log2(p + 1), divided by the DCG of the best order. Of rows with equal
    scores each has the mean gain of them.

    Parameters
    ----------
    y : array of grades, 0 (not relevant) or more
    scores : array of the same length, larger meaning further up
    qid : the query of each row, in any order and of any hashable kind; default: one query
    k : how many places count; None for all
    gains : "exponential" for 2^y - 1, "linear" for y (scikit-learn's `ndcg_score`)
    without_relevant : what a query without a row above 0 has: "skip" leaves it out of the mean, or 0 or 1
    """
    y, scores = _checked(y, scores)
    queries = queries_of(qid, y.size)
    if k is not None and (int(k) != k or k < 1):
        raise SoftmarginError(f"k={k!r} must be a positive integer, or None for all places.")
    gain = _gains(y, gains)
    ranking, best = _Ranking(queries, scores), _Ranking(queries, gain)
    found = _dcg(ranking, gain, k)
    ideal = _dcg(best, gain, k)
    return _by_query(queries, found, ideal, without_relevant)


def mean_average_precision_by_query(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    relevant: float | None = None,
    without_relevant: Literal["skip", 0, 1] = "skip",
) -> QueryValues:
    """Average precision of each query: the mean over its relevant rows of the share of relevant rows down to there.

    Of rows with equal scores it is the mean over their orders (McSherry and Najork, Computing Information Retrieval
    Performance Measures Efficiently in the Presence of Tied Scores, ECIR 2008).

    Parameters
    ----------
    y : array of grades
    scores : array of the same length, larger meaning further up
    qid : the query of each row, in any order and of any hashable kind; default: one query
    relevant : the least grade of a relevant row; default: all above 0 are relevant
    without_relevant : what a query without a relevant row has: "skip" leaves it out of the mean, or 0 or 1
    """
    y, scores = _checked(y, scores)
    queries = queries_of(qid, y.size)
    is_relevant = (y > 0 if relevant is None else y >= relevant).astype(np.float64)
    ranking = _Ranking(queries, scores)
    tied, tied_relevant = ranking.of_tie(np.ones(y.size)), ranking.of_tie(is_relevant)
    above, above_relevant = ranking.above_tie(np.ones(y.size)), ranking.above_tie(is_relevant)
    # The row at a place is relevant with chance r / n; then each tied row before it is with chance (r - 1) / (n - 1).
    before = (ranking.place - above) * (tied_relevant - 1.0) / np.maximum(tied - 1.0, 1.0)
    precision = (above_relevant + before + 1.0) / (ranking.place + 1.0)
    total = ranking.of_query(tied_relevant / tied * precision)
    return _by_query(queries, total, np.bincount(queries.codes, is_relevant), without_relevant)


def precision_by_query(
    y: Any, scores: Any, qid: Any = None, k: int = 10, *, relevant: float | None = None
) -> QueryValues:
    """The share of relevant rows among the first k places of each query; places that a query has not are not relevant.

    Parameters
    ----------
    y, scores, qid, relevant : as of `mean_average_precision_by_query`
    k : how many places count
    """
    y, scores = _checked(y, scores)
    queries = queries_of(qid, y.size)
    is_relevant = (y > 0 if relevant is None else y >= relevant).astype(np.float64)
    ranking = _Ranking(queries, scores)
    chance = ranking.of_tie(is_relevant) / ranking.of_tie(np.ones(y.size))
    return QueryValues(queries.names, ranking.of_query(np.where(ranking.place < k, chance, 0.0)) / k)


def reciprocal_rank_by_query(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    relevant: float | None = None,
    without_relevant: Literal["skip", 0, 1] = "skip",
) -> QueryValues:
    """One over the place of the first relevant row of each query; its mean is known as MRR.

    Parameters
    ----------
    y, scores, qid, relevant, without_relevant : as of `mean_average_precision_by_query`
    """
    y, scores = _checked(y, scores)
    queries = queries_of(qid, y.size)
    is_relevant = (y > 0 if relevant is None else y >= relevant).astype(np.float64)
    ranking = _Ranking(queries, scores)
    tied, tied_relevant = ranking.of_tie(np.ones(y.size)), ranking.of_tie(is_relevant)
    above, above_relevant = ranking.above_tie(np.ones(y.size)), ranking.above_tie(is_relevant)
    # Of n tied rows r are relevant: the first of these has j rows of the tie before it in C(n - 1 - j, r - 1) of the
    # C(n, r) ways to place them.
    behind = tied - 1.0 - (ranking.place - above)
    possible = (above_relevant == 0.0) & (tied_relevant > 0.0) & (behind >= tied_relevant - 1.0)
    n, r, m = tied[possible], tied_relevant[possible], behind[possible]
    chance = np.zeros(y.size)
    chance[possible] = np.exp(_log_choices(m, r - 1.0) - _log_choices(n, r))
    total = ranking.of_query(chance / (ranking.place + 1.0))
    return _by_query(queries, total, np.minimum(np.bincount(queries.codes, is_relevant), 1.0), without_relevant)


def _log_choices(n: np.ndarray, r: np.ndarray) -> np.ndarray:
    """log C(n, r), element by element."""
    log_factorial = np.vectorize(lambda count: lgamma(count + 1.0), otypes=[np.float64])
    return log_factorial(n) - log_factorial(r) - log_factorial(n - r)


class _Ranking:
    """The rows by query and falling score. Arrays it gives have one entry for each row in this order."""

    def __init__(self, queries: Queries, scores: np.ndarray) -> None:
        self.order = np.lexsort((-scores, queries.codes))
        self.code, scores = queries.codes[self.order], scores[self.order]
        new_query = np.diff(self.code, prepend=-1) != 0
        new_tie = new_query | np.r_[True, scores[1:] != scores[:-1]]
        self._first_of_query = np.flatnonzero(new_query)[self.code]
        self._ties = np.flatnonzero(new_tie)
        self._tie = np.cumsum(new_tie) - 1
        self.place = np.arange(self.code.size) - self._first_of_query  # from 0

    def of_tie(self, values: np.ndarray) -> np.ndarray:
        """The sum over the rows that tie with each, itself included."""
        return np.add.reduceat(values[self.order], self._ties)[self._tie]

    def above_tie(self, values: np.ndarray) -> np.ndarray:
        """The sum over the rows of the same query with larger scores."""
        before = np.r_[0.0, np.cumsum(values[self.order])]
        return before[self._ties[self._tie]] - before[self._first_of_query]

    def of_query(self, values: np.ndarray) -> np.ndarray:
        """Sums of values in this order, one for each query."""
        return np.bincount(self.code, values)


def _dcg(ranking: _Ranking, gain: np.ndarray, k: int | None) -> np.ndarray:
    mean_gain = ranking.of_tie(gain) / ranking.of_tie(np.ones(gain.size))
    discounted = mean_gain / np.log2(ranking.place + 2.0)
    return ranking.of_query(discounted if k is None else np.where(ranking.place < k, discounted, 0.0))


def _gains(y: np.ndarray, gains: str) -> np.ndarray:
    if y.min() < 0:
        raise SoftmarginError(f"y holds {y.min():g}: grades begin with 0 for not relevant. Pass y > 0, or shift them.")
    if gains == "linear":
        return y
    if gains != "exponential":
        raise SoftmarginError(f"gains={gains!r} is unknown: choose 'exponential' (2^y - 1) or 'linear' (y).")
    if y.max() > MAX_GRADE:
        raise SoftmarginError(f"y holds {y.max():g}, and 2^y is too large: choose gains='linear', or rescale y.")
    return np.exp2(y) - 1.0


def _by_query(queries: Queries, part: np.ndarray, whole: np.ndarray, without_relevant: Any) -> QueryValues:
    """part / whole, and what is asked for where the whole is 0."""
    if without_relevant not in ("skip", 0, 1):
        raise SoftmarginError(f"without_relevant={without_relevant!r} is unknown: choose 'skip', 0 or 1.")
    has_relevant = whole > 0
    if not has_relevant.any():
        raise SoftmarginError(
            "no row of any query is relevant: there is nothing to find. Check y, and what its 0 means."
        )
    otherwise = np.nan if without_relevant == "skip" else float(without_relevant)
    values = np.where(has_relevant, part / np.where(has_relevant, whole, 1.0), otherwise)
    return QueryValues(queries.names, values)


def _checked(y: Any, scores: Any) -> tuple[np.ndarray, np.ndarray]:
    y, scores = _numbers("y", y), _numbers("scores", scores)
    if y.shape != scores.shape or y.ndim != 1:
        raise SoftmarginError(f"y has the shape {y.shape}, scores {scores.shape}: one of each for every row, please.")
    if y.size == 0:
        raise SoftmarginError("y is empty: there is nothing to measure.")
    return y, scores


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    weights = _numbers("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise SoftmarginError(f"sample_weight has the shape {weights.shape}, but y has {n_rows} rows: one for each.")
    if weights.min() < 0:
        raise SoftmarginError(f"sample_weight holds {weights.min():g}: weights are 0 or more.")
    return weights


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SoftmarginError(
            f"{name} holds entries that are not numbers: give numbers, larger meaning further up."
        ) from None
    if not np.isfinite(array).all():
        raise SoftmarginError(f"{name} holds {array[~np.isfinite(array)][0]}: leave such rows out.")
    return array
