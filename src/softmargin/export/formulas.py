"""What a model computes, as ONNX nodes: the formulas of `prediction`, one by one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.export.nodes import Arithmetic
from softmargin.io.record import Calibration, ModelRecord, Step
from softmargin.kernels.functions import RBF, Laplacian, Linear, Polynomial, Sigmoid
from softmargin.prediction.labels import INSIDE_OR_OUTSIDE
from softmargin.prediction.machine import Expansion, LinearMap, Machine, Vectors

MOST_BYTES = 1 << 31  # an ONNX file is one message of Protocol Buffers, which cannot be longer
_COLUMNWISE = {"subtract": "Sub", "divide": "Div", "multiply": "Mul", "add": "Add"}


@dataclass(frozen=True)
class Outputs:
    """Names of what a graph computes: decisions of shape (n, columns), and the label or the number of each row."""

    decisions: str
    label: str
    probabilities: str | None = None


def outputs_of(math: Arithmetic, X: str, record: ModelRecord, *, label_index: bool = False) -> Outputs:
    """All of a model, from rows as they come. With `label_index` the label is the position of the class."""
    machine = Machine.of(record)
    found = columns(math, _transformed(math, math.cast(X, np.float64), record.transform), machine)
    decided = decisions(math, found, machine)
    if record.calibration is None:
        return Outputs(decided, _label(math, found, decided, machine, label_index))
    probabilities = calibrated(math, decided, record.calibration, decision_columns(machine))
    return Outputs(decided, most_probable(math, probabilities, machine.classes, label_index), probabilities)


def mean_of(math: Arithmetic, X: str, records: list[ModelRecord], *, label_index: bool = False) -> Outputs:
    """Several calibrated models, one for each fold, whose probabilities are averaged."""
    parts = [outputs_of(math, X, record) for record in records]
    names = [part.probabilities for part in parts]
    total = names[0]
    for name in names[1:]:
        total = math.apply("Add", total, name)
    mean = math.apply("Div", total, float(len(names)))
    classes = records[0].arrays["classes_"]
    return Outputs(parts[0].decisions, most_probable(math, mean, classes, label_index), mean)


def decision_columns(machine: Machine) -> int:
    if machine.pairs_are_shown:
        return machine.function.intercept.size
    if machine.votes or machine.thresholds is not None:
        assert machine.classes is not None
        return machine.classes.size
    return machine.function.intercept.size


# --- scalers ------------------------------------------------------------------------------------------------------


def _transformed(math: Arithmetic, X: str, steps: tuple[Step, ...]) -> str:
    for step in steps:
        for operation, operand in step.operations():
            if operation in _COLUMNWISE:
                X = math.apply(_COLUMNWISE[operation], X, operand)
            elif operation == "clip":
                X = math.apply("Min", math.apply("Max", X, operand[0]), operand[1])
            else:
                norms = _row_norms(math, X, operand)
                X = math.apply("Div", X, math.apply("Where", math.apply("Equal", norms, 0.0), 1.0, norms))
            if np.size(operand) == 1 and operation in _COLUMNWISE:
                # A single number in front of a matrix product would be fused into it, too: something stands between.
                X = math.apply("Max", X, -np.inf)
    return X


def _row_norms(math: Arithmetic, X: str, norm: str) -> str:
    if norm == "l2":
        return math.apply("Sqrt", math.row_sums(math.apply("Mul", X, X)))
    sizes = math.apply("Abs", X)
    return math.row_sums(sizes) if norm == "l1" else math.row_maxima(sizes)


# --- columns of the model -----------------------------------------------------------------------------------------


def columns(math: Arithmetic, X: str, machine: Machine) -> str:
    """The linear map or the expansion, shape (n, columns)."""
    function = machine.function
    if isinstance(function, LinearMap):
        products = math.apply("MatMul", X, np.ascontiguousarray(function.coef.T))
        return math.apply("Add", products, function.intercept)
    return expanded(math, X, function)


def expanded(math: Arithmetic, X: str, function: Expansion) -> str:
    """Weighted sums of kernel values, shape (n, columns)."""
    if function.kernel is None or function.vectors is None:
        values = math.columns(X, function.support)
    else:
        values = _kernel_values(math, X, function, function.vectors)
    return math.apply("Add", math.apply("MatMul", values, function.coefficients), function.intercept)


def _kernel_values(math: Arithmetic, X: str, function: Expansion, vectors: Vectors) -> str:
    """K(row, vector), shape (n, vectors)."""
    width = vectors.n_columns if vectors.used is None else vectors.used.size
    if 8 * len(vectors) * width >= MOST_BYTES:
        raise SoftmarginError(
            f"{len(vectors)} support vectors with {width} features take more than 2 GB in an ONNX graph, which holds "
            "them as dense numbers: use softmargin.load_predictor, which keeps them sparse, or a linear model."
        )
    right = vectors.block(0, len(vectors))
    left = X if vectors.used is None else math.columns(X, vectors.used)
    match function.kernel:
        case RBF(gamma):
            if vectors.used is None and len(vectors):  # distances do not change, but have more digits
                centre = right.mean(axis=0)
                right, X = right - centre, math.apply("Sub", X, centre)
                left = X
            norms = math.row_sums(math.apply("Mul", X, X))
            sums = math.apply("Add", norms, np.einsum("ij,ij->i", right, right))
            distances = math.apply("Sub", sums, math.apply("MatMul", left, 2.0 * right.T))
            return math.apply("Exp", math.apply("Mul", math.apply("Max", distances, 0.0), -gamma))
        case Laplacian(gamma):
            distances = _l1_distances(math, left, right)
            if vectors.used is not None:  # columns in which no vector has an entry
                rest = [math.row_sums(math.apply("Abs", name)) for name in (X, left)]
                distances = math.apply("Add", distances, math.apply("Sub", *rest))
            return math.apply("Exp", math.apply("Mul", math.apply("Max", distances, 0.0), -gamma))
    # Gamma goes into the vectors: ONNX Runtime would fuse a product with it into one that holds it as float32.
    match function.kernel:
        case Linear():
            return math.apply("MatMul", left, right.T)
        case Polynomial(gamma, degree, coef0):
            inner = math.apply("Add", math.apply("MatMul", left, gamma * right.T), coef0)
            return math.apply("Pow", inner, float(degree))
        case Sigmoid(gamma, coef0):
            return math.apply("Tanh", math.apply("Add", math.apply("MatMul", left, gamma * right.T), coef0))
    raise AssertionError(function.kernel)


def _l1_distances(math: Arithmetic, left: str, right: np.ndarray) -> str:
    """|row - vector|_1, shape (n, vectors): vector by vector, so that memory stays that of the result."""
    from onnx import TensorProto, helper

    names = {name: f"{left}_{name}" for name in ("vector", "difference", "size", "axes", "sums")}
    body = helper.make_graph(
        [
            helper.make_node("Sub", [left, names["vector"]], [names["difference"]]),
            helper.make_node("Abs", [names["difference"]], [names["size"]]),
            helper.make_node("ReduceSum", [names["size"], names["axes"]], [names["sums"]], keepdims=0),
        ],
        "l1_distances",
        [helper.make_tensor_value_info(names["vector"], TensorProto.DOUBLE, [right.shape[1]])],
        [helper.make_tensor_value_info(names["sums"], TensorProto.DOUBLE, [None])],
        [helper.make_tensor(names["axes"], TensorProto.INT64, [1], [1])],
    )
    return math.apply("Transpose", math.apply("Scan", right, body=body, num_scan_inputs=1), perm=[1, 0])


# --- decisions and labels -----------------------------------------------------------------------------------------


def decisions(math: Arithmetic, found: str, machine: Machine) -> str:
    """The decision function, shape (n, columns)."""
    if machine.pairs_are_shown:
        return found
    if machine.votes:
        assert machine.classes is not None
        return _one_against_one(math, found, machine.classes.size)
    if machine.thresholds is not None:
        low = np.concatenate([[-np.inf], machine.thresholds])
        high = np.concatenate([machine.thresholds, [np.inf]])
        inside = math.apply("Min", math.apply("Sub", found, low), math.apply("Sub", high, found))
        return math.apply("Max", inside, float(np.finfo(np.float64).min))
    return found


def _one_against_one(math: Arithmetic, found: str, n_classes: int) -> str:
    """`prediction.labels.one_against_one`, with the pairs of each class as columns of matrices."""
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    first, second = np.zeros((len(pairs), n_classes)), np.zeros((len(pairs), n_classes))
    first[np.arange(len(pairs)), [i for i, _ in pairs]] = 1.0
    second[np.arange(len(pairs)), [j for _, j in pairs]] = 1.0
    wins = math.cast(math.apply("GreaterOrEqual", found, 0.0), np.float64)
    # a pair that its first class does not win is a vote for its second
    votes = math.apply("Add", math.apply("MatMul", wins, first - second), second.sum(axis=0))
    clarity = math.apply("MatMul", found, first - second)
    scale = math.apply("Mul", math.apply("Add", math.apply("Abs", clarity), 1.0), 3.0)
    return math.apply("Add", votes, math.apply("Div", clarity, scale))


def _label(math: Arithmetic, found: str, decided: str, machine: Machine, label_index: bool) -> str:
    if machine.classes is None:
        return math.flat(found)
    if machine.pairs_are_shown:
        decided = _one_against_one(math, found, machine.classes.size)
    if decision_columns(machine) == 1:
        is_novelty = machine.classes is INSIDE_OR_OUTSIDE
        above = math.flat(math.apply("GreaterOrEqual" if is_novelty else "Greater", found, 0.0))
        position = math.cast(above, np.int64)
    else:
        position = math.apply("ArgMax", decided, axis=1, keepdims=0)
    return position if label_index else _class_at(math, position, machine.classes)


def most_probable(math: Arithmetic, probabilities: str, classes: np.ndarray | None, label_index: bool) -> str:
    assert classes is not None
    position = math.apply("ArgMax", probabilities, axis=1, keepdims=0)
    return position if label_index else _class_at(math, position, classes)


def _class_at(math: Arithmetic, position: str, classes: np.ndarray) -> str:
    return math.apply("Gather", plain_labels(classes), position, axis=0)


def plain_labels(classes: np.ndarray) -> np.ndarray:
    """Labels of a type that every ONNX runtime gathers: int64, float64 or strings."""
    if classes.dtype.kind in "US":
        return classes.astype(object)
    if classes.dtype.kind == "O":
        return classes
    return classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64)


# --- calibration --------------------------------------------------------------------------------------------------


def calibrated(math: Arithmetic, decided: str, calibration: Calibration, n_columns: int) -> str:
    """`prediction.calibration.probabilities`, shape (n, classes)."""
    if calibration.method == "sigmoid":
        a, b = calibration.arrays["a"], calibration.arrays["b"]
        exponent = math.apply("Add", math.apply("Mul", decided, a), b)
        found = math.apply("Div", 1.0, math.apply("Add", math.apply("Exp", exponent), 1.0))
    else:
        curves = [_curve(math, math.columns(decided, [k]), x, y) for k, (x, y) in enumerate(calibration.curves())]
        found = math.side_by_side(curves)
    if n_columns == 1:
        return math.side_by_side([math.apply("Sub", 1.0, found), found])
    sums = math.row_sums(found)
    is_nothing = math.apply("Equal", sums, 0.0)
    return math.apply("Where", is_nothing, np.full(n_columns, 1.0 / n_columns), math.apply("Div", found, sums))


def _curve(math: Arithmetic, scores: str, x: Any, y: Any) -> str:
    """Linear between the points, constant beyond them; shape (n, 1)."""
    inside = math.apply("Min", math.apply("Max", scores, float(x[0])), float(x[-1]))
    if x.size == 1:
        return math.apply("Add", math.apply("Mul", inside, 0.0), float(y[0]))
    passed = math.cast(math.apply("GreaterOrEqual", inside, np.append(x[1:-1], np.inf)), np.int64)
    piece = math.row_sums(passed)
    low, start, slope = (
        math.apply("Gather", part, piece, axis=0) for part in (x[:-1], y[:-1], np.diff(y) / np.diff(x))
    )
    return math.apply("Add", start, math.apply("Mul", math.apply("Sub", inside, low), slope))
