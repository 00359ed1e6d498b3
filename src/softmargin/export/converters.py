"""Converters for skl2onnx, so that our estimators may stand in pipelines with steps that it knows.

skl2onnx asks twice: for the types of the outputs, and then for the nodes. The nodes are those of `formulas.py`.
"""

from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from skl2onnx import update_registered_converter
from skl2onnx.common._registration import get_converter, get_shape_calculator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

from softmargin.core.errors import SoftmarginError
from softmargin.estimators.stored.parts import (
    CalibratedClassifierCV,
    Pipeline,
    expansion_of_map,
    records_of,
    settled,
)
from softmargin.export.formulas import Outputs, decision_columns, expanded, mean_of, outputs_of, plain_labels
from softmargin.export.nodes import LEAST_OPSET, Arithmetic
from softmargin.io.record import ModelRecord
from softmargin.prediction.machine import Machine
from softmargin.tasks.records import MAPS, SEARCHES, TASKS, task_behind

_CALIBRATED = "SklearnCalibratedClassifierCV"
_OPTIONS: dict[str, list[Any]] = {  # of classifiers
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [True, False],
    "raw_scores": [True, False],
}


class _Container:
    """Nodes and constants of a graph that skl2onnx makes."""

    def __init__(self, scope: Any, container: Any) -> None:
        self._scope, self._container = scope, container
        self.opset = container.target_opset
        if self.opset < LEAST_OPSET:
            raise SoftmarginError(
                f"target_opset={self.opset} is too old for softmargin's models: at least {LEAST_OPSET} is needed."
            )

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self._scope.get_unique_variable_name(f"softmargin_{operator}")
        self.put(operator, list(inputs), name, **attributes)
        return name

    def put(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        name = self._scope.get_unique_operator_name(f"softmargin_{operator}")
        self._container.add_node(operator, inputs, output, name=name, **attributes)

    def constant(self, values: Any) -> str:
        name = self._scope.get_unique_variable_name("softmargin_constant")
        array = np.asarray(values)
        if array.dtype.kind == "O":
            self._container.add_initializer(name, TensorProto.STRING, list(array.shape), array.tolist())
            return name
        array = array.astype(np.float64) if array.dtype.kind == "f" else array
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        self._container.add_initializer(name, tensor.data_type, list(array.shape), tensor)
        return name


@cache
def register_all() -> None:
    theirs = get_shape_calculator(_CALIBRATED), get_converter(_CALIBRATED)
    for task in TASKS:
        update_registered_converter(
            task.home.load(),
            f"Softmargin{task.name}",
            _shape,
            _convert,
            options=_OPTIONS if task.target == "classes" else None,
        )
    for search in SEARCHES:  # they choose models of classes
        update_registered_converter(search.load(), f"Softmargin{search.name}", _shape, _convert, options=_OPTIONS)
    for features in MAPS:
        update_registered_converter(features.load(), f"Softmargin{features.name}", _shape_of_map, _convert_map)

    def shape(operator: Any) -> None:
        (_shape if _holds_ours(operator.raw_operator) else theirs[0])(operator)

    def convert(scope: Any, operator: Any, container: Any) -> None:
        (_convert if _holds_ours(operator.raw_operator) else theirs[1])(scope, operator, container)

    update_registered_converter(CalibratedClassifierCV, _CALIBRATED, shape, convert, options=_OPTIONS)


def _holds_ours(calibrated: Any) -> bool:
    inner = settled(calibrated.calibrated_classifiers_[0].estimator)
    return task_behind(inner[-1] if isinstance(inner, Pipeline) else inner) is not None


def _options(scope: Any, model: Any) -> dict[str, Any]:
    """One-class models have labels but no classes, and no options: their scores are always as they are."""
    if not hasattr(model, "classes_"):
        return {"zipmap": False, "nocl": False, "raw_scores": True}
    return scope.get_options(model, {"zipmap": True, "nocl": False, "raw_scores": False})


def _are_raw(options: dict[str, Any]) -> bool:
    """Whether scores stay as they are; a dictionary for each row, or an output for each class, need one of each."""
    return options["raw_scores"] and options["zipmap"] is False


def _score_type(scope: Any, model: Any) -> Any:
    """float64, but ZipMap, which makes the dictionaries, takes float32 only."""
    makes_dictionaries = _options(scope, model)["zipmap"] not in (False, "columns")
    return FloatTensorType if makes_dictionaries else DoubleTensorType


def _shape(operator: Any) -> None:
    model, scope = operator.raw_operator, operator.scope_inst
    records = records_of(model)
    machine = Machine.of(records[0])
    n_rows = operator.inputs[0].get_first_dimension()
    if machine.classes is None:
        operator.outputs[0].type = DoubleTensorType([n_rows, 1])
        return
    options = _options(scope, model)
    labels = _labels(machine, options)
    kinds = {"i": Int64TensorType, "f": DoubleTensorType, "O": StringTensorType}
    operator.outputs[0].type = kinds[labels.dtype.kind]([n_rows])
    if len(operator.outputs) > 1:
        width = _width(machine, records, options)
        operator.outputs[1].type = _score_type(scope, model)([n_rows, width])


def _shape_of_map(operator: Any) -> None:
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = DoubleTensorType([n_rows, operator.raw_operator.n_components_])


def _convert_map(scope: Any, operator: Any, container: Any) -> None:
    nodes = _Container(scope, container)
    math = Arithmetic(nodes)
    rows = math.cast(operator.inputs[0].full_name, np.float64)
    features = expanded(math, rows, expansion_of_map(operator.raw_operator))
    nodes.put("Identity", [features], operator.outputs[0].full_name)


def _labels(machine: Machine, options: dict[str, Any]) -> np.ndarray:
    """Labels as skl2onnx has them: whole numbers are integers."""
    assert machine.classes is not None
    if options["nocl"]:
        return np.arange(machine.classes.size)
    labels = plain_labels(machine.classes)
    is_whole = labels.dtype.kind == "f" and bool((labels == np.round(labels)).all())
    return labels.astype(np.int64) if is_whole else labels


def _width(machine: Machine, records: list[ModelRecord], options: dict[str, Any]) -> int:
    n_columns = decision_columns(machine)
    if records[0].calibration is not None and not options["raw_scores"]:
        return machine.classes.size if machine.classes is not None else 1
    return 2 if n_columns == 1 and not _are_raw(options) and machine.thresholds is None else n_columns


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    records = records_of(model)
    machine, nodes = Machine.of(records[0]), _Container(scope, container)
    math, X = Arithmetic(nodes), operator.inputs[0].full_name
    is_one = len(records) == 1
    found = outputs_of(math, X, records[0], label_index=True) if is_one else mean_of(math, X, records, label_index=True)
    if machine.classes is None:
        label = math.apply("Reshape", found.label, np.array([-1, 1]))
        nodes.put("Identity", [label], operator.outputs[0].full_name)
        return
    options = _options(scope, model)
    label = found.label
    if not options["nocl"]:
        label = math.apply("Gather", _labels(machine, options), label, axis=0)
    nodes.put("Identity", [label], operator.outputs[0].full_name)
    if len(operator.outputs) > 1:
        scores = _scores(math, found, machine, options, is_one)
        if _score_type(scope, model) is FloatTensorType:
            scores = math.cast(scores, np.float32)
        nodes.put("Identity", [scores], operator.outputs[1].full_name)


def _scores(math: Arithmetic, found: Outputs, machine: Machine, options: dict[str, Any], is_one: bool) -> str:
    if found.probabilities is not None and not options["raw_scores"]:
        return found.probabilities
    if not is_one:
        raise SoftmarginError(
            "raw_scores=True needs one model, but this calibration holds one for each fold: use "
            "CalibratedClassifierCV(ensemble=False), or drop raw_scores."
        )
    if decision_columns(machine) == 1 and not _are_raw(options):
        return math.side_by_side([math.apply("Neg", found.decisions), found.decisions])
    return found.decisions
