"""How rows are reached, and the only place that knows dense from sparse: `docs/compose.md` shows it in use."""

from typing import TYPE_CHECKING

from softmargin.core.exports import on_demand

if TYPE_CHECKING:
    from softmargin.data.convert import as_rows as as_rows
    from softmargin.data.csr import CSRRows as CSRRows
    from softmargin.data.dense import DenseRows as DenseRows
    from softmargin.data.rows import Products as Products
    from softmargin.data.rows import RowAccess as RowAccess

_HOMES = {
    "as_rows": ".convert",
    "Products": ".rows",
    "RowAccess": ".rows",
    "DenseRows": ".dense",
    "CSRRows": ".csr",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = on_demand(__name__, _HOMES)
