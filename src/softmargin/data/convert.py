"""From whatever holds the data to rows: the only place that asks what X is."""

from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers
from softmargin.data.csr import CSRRows
from softmargin.data.dense import DenseRows
from softmargin.data.rows import Labelled, Products, Rows, has_row_access

# Dense data become CSR if they have at least THIN_COLUMNS columns and fewer than THIN_SHARE of the entries in a sample
# of about THIN_SAMPLE rows are nonzero.
THIN_COLUMNS, THIN_SHARE, THIN_SAMPLE = 64, 0.2, 1000


def as_rows(X: Any, workers: Workers | None = None) -> Rows:
    """Rows of an array, memory map or scipy sparse matrix, in place wherever that is possible.

    In place: contiguous dense arrays (either order) and canonical CSR, of float32, float64, integers or bool. Copied:
    strided views, other sparse formats, CSR with unsorted or repeated entries, float16 and long double. A storage of
    one's own stays what it is; it must give access to single rows.
    """
    if is_storage(X):
        if not has_row_access(X):
            raise SoftmarginError(
                f"{type(X).__name__} offers products with X only, but single rows are needed here: kernels, SGD and "
                "Pegasos want data in memory. OCAS and CPA train linear models from products."
            )
        return X if workers is None else X.on(workers)
    if sp.issparse(X):
        return CSRRows(_canonical_csr(X), workers)
    array = np.asarray(X)
    if array.ndim != 2:
        raise SoftmarginError(
            f"X must be a matrix with two dimensions, but it has {array.ndim}. "
            "Use X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row."
        )
    array = _supported_type(array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    return DenseRows(_compiled_view(array), workers)


def as_checked_csr(values: np.ndarray, indices: np.ndarray, starts: np.ndarray, shape: tuple[int, int]) -> CSRRows:
    """Rows of the arrays of a CSR matrix that are known to be right: ascending indices within the columns."""
    parts = [_compiled_view(part) for part in (_supported_type(values), indices, starts)]
    return CSRRows(sp.csr_array(tuple(parts), shape=shape, copy=False))


def as_products(X: Any, workers: Workers | None = None) -> Products:
    """The same for whoever needs products only: any storage that keeps the contract `Products` stays what it is."""
    if is_storage(X):
        return X if workers is None else X.on(workers)
    return as_rows(X, workers)


def is_storage(X: Any) -> TypeGuard[Products]:
    """Whether X is a storage already, one of ours or of the user's own, rather than an array or a matrix."""
    return not isinstance(X, np.ndarray) and isinstance(X, Products)  # a protocol is slow to ask, arrays are common


def with_targets(X: Any, y: Any, metadata: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """y and the metadata of a fit, from X itself if it is a storage that brings them. Both at once are refused."""
    if not is_storage(X) or not isinstance(X, Labelled):
        return y, metadata
    given, own = {"y": y, **metadata}, X.targets()
    for name, value in given.items():
        if value is not None and own.get(name) is not None:
            raise SoftmarginError(f"{type(X).__name__} brings {name} with it: leave {name} out.")
    found = {name: own.get(name) if value is None else value for name, value in given.items()}
    return found.pop("y"), found


def column_names(X: Products) -> list[str] | None:
    """The names of the columns of a storage, if it has any."""
    return list(X.feature_names) if isinstance(X, Labelled) and X.feature_names is not None else None


def as_array(values: Any) -> np.ndarray:
    """Values that a user's function returned, sparse or not, as an array."""
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def thinned(rows: Rows, workers: Workers | None = None) -> Rows:
    """Dense rows that are mostly zeros as sparse ones, with which products are faster; others as they are."""
    flat = rows.flat
    if flat.indptr.size or rows.n_cols < THIN_COLUMNS or rows.n_rows == 0:
        return rows
    sample = rows.native()[:: -(-rows.n_rows // THIN_SAMPLE)]
    if np.count_nonzero(sample) >= THIN_SHARE * sample.size:
        return rows
    parts = [sp.csr_array(part.native()) for _, part in rows.blocks()]
    return CSRRows(_canonical_csr(sp.vstack(parts, format="csr")), workers)


def _canonical_csr(X: Any) -> Any:
    matrix = X if X.format == "csr" else X.tocsr()
    if matrix.indices.size:  # compiled code believes them
        least, most = int(matrix.indices.min()), int(matrix.indices.max())
        if least < 0 or most >= matrix.shape[1]:
            raise SoftmarginError(
                f"X is no valid sparse matrix: its column indices go from {least} to {most}, but it has "
                f"{matrix.shape[1]} columns. Check how it was made; its method check_format() says more."
            )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    parts = [_compiled_view(part) for part in (_supported_type(matrix.data), matrix.indices, matrix.indptr)]
    return type(matrix)(tuple(parts), shape=matrix.shape, copy=False)


def _supported_type(array: np.ndarray) -> np.ndarray:
    """bool becomes a view as bytes; types that compiled code does not know become the nearest float."""
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype.kind in "iu" or array.dtype in (np.float32, np.float64):
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind not in "fO":
        raise SoftmarginError(f"X has values of type {array.dtype}; real numbers are needed.")
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


class _Borrowed:
    """Hands out another array's memory as writable, for compiled code that only reads it.

    A read-only array is another type to the compiler, which would compile everything a second time.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _compiled_view(array: np.ndarray) -> np.ndarray:
    plain = np.asarray(array)
    return plain if plain.flags.writeable else np.asarray(_Borrowed(plain))
