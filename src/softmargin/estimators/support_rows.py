"""Which training rows are the support vectors of a model that is judged again."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.data.convert import as_rows
from softmargin.data.rows import Rows

# Support vectors of a text file are rounded. A row that differs from one by at most this share of its length is that
# row.
_SAME_ROW = 1e-6
# Rows of the data that differ by at most this share of their length are equal: no digits were lost between them.
_EQUAL_ROWS = 1e-13


def support_rows(
    estimator: Any,
    coefficients: np.ndarray,
    rows: Rows,
    codes: np.ndarray,
    weights: np.ndarray,
    targets: np.ndarray | None = None,
) -> np.ndarray:
    """Where the support vectors stand among the rows. Of a regression `targets` are what it learned from each row."""
    found, owners = estimator.support_, np.repeat(np.arange(estimator.n_support_.size), estimator.n_support_)
    vectors = as_rows(estimator.support_vectors_)  # none if the kernel is precomputed
    n_trained = estimator.shape_fit_[0]
    kept = np.flatnonzero(weights)
    if n_trained == 0:  # an imported model does not tell
        taking_part = rows.take(kept)
        index = _matched(vectors, owners, taking_part, codes[kept])
        if targets is not None:
            index = _told_apart(index, coefficients[0], taking_part, targets[kept])
        return kept[index]
    if n_trained != rows.n_rows:
        raise SoftmarginError(
            f"the model was trained on {n_trained} rows, but X has {rows.n_rows}: certify a model on the rows it was "
            "trained on, in the same order."
        )
    orders = [owners]
    if len(coefficients) == 1:  # scikit-learn-intelex keeps the order of X, and signs tell two classes apart
        orders.append(coefficients[0] > 0)
    candidates = [found]
    if vectors.n_rows and found.max(initial=-1) < kept.size:
        candidates.append(kept[found])  # LIBSVM within scikit-learn counts without the rows of weight zero
    for index in candidates:
        same_classes = any(np.array_equal(codes[index], expected) for expected in orders)
        if same_classes and weights[index].all() and (not vectors.n_rows or _are_same(rows.take(index), vectors)):
            return index
    if not vectors.n_rows and not weights[found].all():
        raise SoftmarginError(
            "some support vectors of the model are rows of weight zero. scikit-learn counts the support vectors of a "
            "precomputed kernel, or of one that is a function, without these rows, and then predicts with the kernel "
            "values of others: fit the model on the rows of positive weight."
        )
    raise SoftmarginError(
        "the support vectors of the model are not the rows that X and y have in their places: certify a model on the "
        "rows it was trained on, in the same order and with the same weights."
    )


def _probe(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """A number for each row, dense or sparse, and how far those of equal rows may be apart."""
    probe = np.random.default_rng(0).uniform(0.5, 1.5, rows.n_cols)
    return rows.dot(probe), _SAME_ROW * np.sqrt(rows.sq_norms() * (probe @ probe))


def _are_same(first: Rows, second: Rows) -> bool:
    (numbers, slack), (others, _) = _probe(first), _probe(second)
    return bool((np.abs(numbers - others) <= slack).all())


def _matched(vectors: Rows, owners: np.ndarray, rows: Rows, codes: np.ndarray) -> np.ndarray:
    """Rows that equal the support vectors and are of their classes, each of them once."""
    (wanted, slack), (numbers, _) = _probe(vectors), _probe(rows)
    index = np.empty(owners.size, dtype=np.int64)
    left = iter(np.lexsort((numbers, codes)).tolist())
    for k in np.lexsort((wanted, owners)).tolist():
        lowest = (owners[k], wanted[k] - slack[k])
        row = next((row for row in left if (codes[row], numbers[row]) >= lowest), None)
        if row is None or (codes[row], numbers[row]) > (owners[k], wanted[k] + slack[k]):
            raise SoftmarginError(
                "some support vectors of the model are not among the rows of their class: certify a model on the rows "
                "it was trained on, with as many digits."
            )
        index[k] = row
    return index


def _told_apart(index: np.ndarray, coefficients: np.ndarray, rows: Rows, targets: np.ndarray) -> np.ndarray:
    """The same rows, but where some are equal and have other targets, those that the coefficients belong to.

    At an optimum the targets above the prediction have positive coefficients and those below it negative ones, and the
    further away a target is, the larger its coefficient.
    """
    numbers, slack = _probe(rows)
    order = np.argsort(numbers, kind="stable")
    gaps = np.diff(numbers[order]) > (_EQUAL_ROWS / _SAME_ROW) * slack[order[1:]]
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(np.append(0, gaps))
    sizes = np.bincount(group)
    index = index.copy()
    for number in np.unique(group[index][sizes[group[index]] > 1]).tolist():
        members = np.flatnonzero(group == number)
        members = members[np.argsort(targets[members], kind="stable")]
        places = np.flatnonzero(group[index] == number)
        places = places[np.argsort(coefficients[places], kind="stable")]
        n_below = np.count_nonzero(coefficients[places] < 0.0)
        index[places[:n_below]] = members[:n_below]
        index[places[n_below:]] = members[members.size - (places.size - n_below) :]
    return index
