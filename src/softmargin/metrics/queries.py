"""Rows grouped by query: qid in any order and of any hashable kind becomes codes 0, 1, ..."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError

# Bool, integers, floats, text and times: kinds that NumPy can sort.
SORTABLE = "biufSUmM"


@dataclass(frozen=True, eq=False)
class Queries:
    """`codes` of each row, and the `names` that they stand for, in the order of their first rows."""

    codes: np.ndarray
    names: np.ndarray


def queries_of(qid: Any, n_rows: int) -> Queries:
    """The queries of `n_rows` rows; without qid all rows are one query, of the name 0. Rows of one need not be
    adjacent."""
    if qid is None:
        return Queries(np.zeros(n_rows, dtype=np.int64), np.zeros(1, dtype=np.int64))
    if not hasattr(qid, "__array__"):
        qid = list(qid)
    if len(qid) != n_rows:
        raise SoftmarginError(f"qid has {len(qid)} entries, but y has {n_rows}: one for every row, please.")
    if isinstance(qid, list):
        return _looked_up(qid)
    array = np.asarray(qid)
    if array.ndim != 1:
        raise SoftmarginError(f"qid has the shape {array.shape}: one query for every row, please.")
    return _sorted(array) if array.dtype.kind in SORTABLE else _looked_up(array.tolist())


def _sorted(qid: np.ndarray) -> Queries:
    if (qid != qid).any():
        raise _missing(int(np.flatnonzero(qid != qid)[0]))
    _, first, codes = np.unique(qid, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Queries(place[codes], qid[first[order]])


def _looked_up(qid: list) -> Queries:
    code: dict[Any, int] = {}
    try:
        codes = np.array([code.setdefault(name, len(code)) for name in qid], dtype=np.int64)
    except TypeError:
        raise SoftmarginError("qid holds entries that cannot be hashed: use numbers, text or tuples.") from None
    if any((name != name) is True for name in code):
        raise _missing(next(row for row, name in enumerate(qid) if (name != name) is True))
    names = np.empty(len(code), dtype=object)
    names[:] = list(code)
    return Queries(codes, names)


def _missing(row: int) -> SoftmarginError:
    return SoftmarginError(f"qid is missing (not a number) in row {row}: leave such rows out, or give them a query.")
