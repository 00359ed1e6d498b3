"""A record as an ONNX model."""

import json
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.export.formulas import decision_columns, mean_of, outputs_of, plain_labels
from softmargin.export.nodes import Arithmetic
from softmargin.io.record import ModelRecord
from softmargin.prediction.machine import Machine

OPSET, IR_VERSION = 18, 8  # of ONNX 1.13, which runtimes since 2023 read


class _Graph:
    """Nodes and constants of a graph of our own."""

    opset = OPSET

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, values: Any) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name


def onnx_model(records: list[ModelRecord], dtype: Any = np.float64) -> Any:
    """One model, or the models of several folds whose probabilities are averaged, as an ONNX ModelProto."""
    import onnx
    from onnx import helper

    kinds = {np.dtype(np.float64): onnx.TensorProto.DOUBLE, np.dtype(np.float32): onnx.TensorProto.FLOAT}
    if np.dtype(dtype) not in kinds:
        raise SoftmarginError(f"dtype={np.dtype(dtype)} cannot be the type of the input: choose float64 or float32.")
    record, machine = records[0], Machine.of(records[0])
    graph = _Graph()
    math = Arithmetic(graph)
    found = outputs_of(math, "X", record) if len(records) == 1 else mean_of(math, "X", records)
    outputs = []

    def output(name: str, inner: str, kind: int, *shape: Any) -> None:
        graph.nodes.append(helper.make_node("Identity", [inner], [name], name=name))
        outputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))

    if machine.classes is None:
        output("prediction", found.label, onnx.TensorProto.DOUBLE)
    else:
        labels = plain_labels(machine.classes)
        text, number = onnx.TensorProto.STRING, helper.np_dtype_to_tensor_dtype
        output("label", found.label, text if labels.dtype.kind == "O" else number(labels.dtype))
        if len(records) == 1:
            output("scores", found.decisions, onnx.TensorProto.DOUBLE, decision_columns(machine))
        if found.probabilities is not None:
            output("probabilities", found.probabilities, onnx.TensorProto.DOUBLE, machine.classes.size)
    rows = helper.make_tensor_value_info("X", kinds[np.dtype(dtype)], ["rows", machine.n_features])
    model = helper.make_model(
        helper.make_graph(graph.nodes, record.kind, [rows], outputs, graph.constants),
        producer_name="softmargin",
        producer_version=record.versions.get("softmargin", ""),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(model, _properties(record))
    onnx.checker.check_model(model)
    return model


def _properties(record: ModelRecord) -> dict[str, str]:
    """What a person may want to know of the model: strings."""
    names = record.arrays.get("feature_names_in_")
    certificates = record.values.get("certificates_")
    return {
        "estimator": record.kind,
        **({} if names is None else {"feature_names": json.dumps(names.tolist())}),
        **({} if certificates is None else {"certificates": json.dumps(certificates)}),
        **({"status": record.values["status_"]} if "status_" in record.values else {}),
    }
