"""Kernel functions, the matrix of a kernel, and caches of its rows: `docs/compose.md` shows them in use."""

from typing import TYPE_CHECKING

from softmargin.core.exports import on_demand

if TYPE_CHECKING:
    from softmargin.kernels.cached import CachedRows as CachedRows
    from softmargin.kernels.cached import RowStore as RowStore
    from softmargin.kernels.cached import WholeMatrix as WholeMatrix
    from softmargin.kernels.functions import RBF as RBF
    from softmargin.kernels.functions import Custom as Custom
    from softmargin.kernels.functions import Laplacian as Laplacian
    from softmargin.kernels.functions import Linear as Linear
    from softmargin.kernels.functions import Polynomial as Polynomial
    from softmargin.kernels.functions import Sigmoid as Sigmoid
    from softmargin.kernels.matrix import DirectRows as DirectRows
    from softmargin.kernels.matrix import KernelRows as KernelRows
    from softmargin.kernels.precomputed import PrecomputedRows as PrecomputedRows

_HOMES = {
    "Linear": ".functions",
    "RBF": ".functions",
    "Polynomial": ".functions",
    "Sigmoid": ".functions",
    "Laplacian": ".functions",
    "Custom": ".functions",
    "KernelRows": ".matrix",
    "DirectRows": ".matrix",
    "PrecomputedRows": ".precomputed",
    "RowStore": ".cached",
    "CachedRows": ".cached",
    "WholeMatrix": ".cached",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = on_demand(__name__, _HOMES)
