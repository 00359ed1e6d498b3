"""What a function makes of the rows of a store, such as predictions, written to a .npy file chunk by chunk."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.io.atomic import replacing


def write_mapped(
    path: Path, blocks: Iterable[tuple[slice, Any]], n_rows: int, function: Callable[[Any], Any], *, overwrite: bool
) -> np.ndarray:
    """The values of the function, an entry for each row, as a memory map of the file that is written.

    The first block says which type and shape the entries have.
    """
    if path.suffix != ".npy":
        raise SoftmarginError(f"{path}: the values are written as a NumPy array, so the name must end in .npy.")
    if path.exists() and not overwrite:
        raise SoftmarginError(f"{path} exists: choose another name, or overwrite=True.")
    dtype, shape = None, ()
    with replacing(path) as file:
        for where, rows in blocks:
            found = _checked(np.asarray(function(rows.native())), where)
            if dtype is None:
                dtype, shape = found.dtype, found.shape[1:]
                header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False}
                np.lib.format.write_array_header_2_0(file, header | {"shape": (n_rows, *shape)})
            elif found.shape[1:] != shape or not np.can_cast(found.dtype, dtype, "safe"):
                raise SoftmarginError(
                    f"the function returned {_described(found.dtype, found.shape[1:])} for rows {where.start} to "
                    f"{where.stop - 1}, but {_described(dtype, shape)} for the first rows: it must be the same for all."
                )
            file.write(np.ascontiguousarray(found, dtype=dtype).data)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _checked(found: np.ndarray, where: slice) -> np.ndarray:
    n_rows = where.stop - where.start
    if found.ndim == 0 or found.shape[0] != n_rows:
        raise SoftmarginError(
            f"the function must return an array with an entry for each row, but for {n_rows} rows it returned one of "
            f"shape {found.shape}."
        )
    if found.dtype.hasobject:
        raise SoftmarginError(
            "the function returned Python objects, which a .npy file cannot hold without running code when it is read: "
            "return numbers or text, for example np.asarray(labels, dtype='U20')."
        )
    return found


def _described(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype} of shape {shape} a row" if shape else f"a {dtype} a row"
