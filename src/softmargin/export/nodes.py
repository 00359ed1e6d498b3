"""Nodes of an ONNX graph, wherever they are put: into a graph of our own, or into one that skl2onnx makes.

Plain operators of the standard, on float64: those of `ai.onnx.ml` for support vector machines hold float32 only, which
loses labels near the boundary.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

LEAST_OPSET = 13  # ReduceSum and Squeeze take their axes as an input
AXES_AS_INPUT = 18  # ReduceMax does, too


class Nodes(Protocol):
    """Where nodes and constants go; each returns the name of what it computes."""

    opset: int

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str: ...

    def constant(self, values: Any) -> str: ...


class Arithmetic:
    """Formulas in terms of nodes. Operands are names, or numbers and arrays, which become constants."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def apply(self, operator: str, *operands: Any, **attributes: Any) -> str:
        names = [value if isinstance(value, str) else self.nodes.constant(value) for value in operands]
        return self.nodes.node(operator, *names, **attributes)

    def cast(self, name: str, dtype: Any) -> str:
        from onnx.helper import np_dtype_to_tensor_dtype

        return self.nodes.node("Cast", name, to=int(np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def row_sums(self, name: str) -> str:
        return self.apply("ReduceSum", name, np.array([1]), keepdims=1)

    def row_maxima(self, name: str) -> str:
        if self.nodes.opset >= AXES_AS_INPUT:
            return self.apply("ReduceMax", name, np.array([1]), keepdims=1)
        return self.apply("ReduceMax", name, axes=[1], keepdims=1)

    def columns(self, name: str, index: Any) -> str:
        return self.apply("Gather", name, np.asarray(index, dtype=np.int64), axis=1)

    def flat(self, name: str) -> str:
        """(n, 1) -> (n,)."""
        return self.apply("Squeeze", name, np.array([1]))

    def side_by_side(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else self.nodes.node("Concat", *names, axis=1)
