"""The transformations of the input that a model file may hold in front of its model: scikit-learn's plain scalers.

A scaler is a short list of operations on the columns or on the rows of X. Whoever applies a scaler (predictions in
NumPy, an ONNX graph, weights into which it is folded) reads this list and needs to know nothing else about it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmargin.tasks.lazy import Lazy

NORMS = ("l1", "l2", "max")

# An operation and its operand: "subtract", "divide", "multiply" and "add" take an array with a value for each column,
# "clip" the least and the largest value, "norm" one of `NORMS`, by which each row is divided if it is not zero.
Operation = tuple[str, Any]
Params = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scaler:
    """What the rest of the library must know about one of scikit-learn's scalers.

    Attributes
    ----------
    home : the class; its name is also what a model file calls it
    params : its parameters, each with its default and a test of a value that may come from a file
    needs : the fitted arrays without which it cannot be applied, by its parameters; each has a value for every column
    keeps : fitted arrays that are stored if they are there, though predictions do not need them
    operations : what it does to X, in this order
    """

    home: Lazy
    params: Mapping[str, tuple[Any, Callable[[Any], bool]]]
    needs: Callable[[Params], tuple[str, ...]]
    keeps: tuple[str, ...]
    operations: Callable[[Params, Arrays], tuple[Operation, ...]]

    @property
    def name(self) -> str:
        return self.home.name

    def completed(self, params: Params) -> dict[str, Any]:
        """All parameters: those that are left out have their defaults."""
        return {name: params.get(name, default) for name, (default, _) in self.params.items()}


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in value)
        and value[0] < value[1]
    )


def _chosen(params: Params, **switches: str) -> tuple[str, ...]:
    """The arrays whose parameters are switched on."""
    return tuple(array for switch, array in switches.items() if params[switch])


def _moved_and_divided(centre: str, centred: str, scaled: str) -> Callable[[Params, Arrays], tuple[Operation, ...]]:
    """(x - centre) / scale_, each part as far as its parameter is switched on."""

    def operations(params: Params, arrays: Arrays) -> tuple[Operation, ...]:
        subtracting = (("subtract", arrays[centre]),) if params[centred] else ()
        dividing = (("divide", arrays["scale_"]),) if params[scaled] else ()
        return (*subtracting, *dividing)

    return operations


def _into_range(params: Params, arrays: Arrays) -> tuple[Operation, ...]:
    clipping = (("clip", tuple(map(float, params["feature_range"]))),) if params["clip"] else ()
    return (("multiply", arrays["scale_"]), ("add", arrays["min_"]), *clipping)


def _by_largest(params: Params, arrays: Arrays) -> tuple[Operation, ...]:
    clipping = (("clip", (-1.0, 1.0)),) if params["clip"] else ()
    return (("divide", arrays["scale_"]), *clipping)


_SWITCH_ON, _SWITCH_OFF = (True, _is_bool), (False, _is_bool)
_COPY = {"copy": _SWITCH_ON}
SCALERS = (
    Scaler(
        home=Lazy("sklearn.preprocessing:StandardScaler"),
        params={"with_mean": _SWITCH_ON, "with_std": _SWITCH_ON, **_COPY},
        needs=lambda params: _chosen(params, with_mean="mean_", with_std="scale_"),
        keeps=("mean_", "scale_", "var_"),
        operations=_moved_and_divided("mean_", "with_mean", "with_std"),
    ),
    Scaler(
        home=Lazy("sklearn.preprocessing:MinMaxScaler"),
        params={"feature_range": ((0.0, 1.0), _is_range), "clip": _SWITCH_OFF, **_COPY},
        needs=lambda params: ("scale_", "min_"),
        keeps=("data_min_", "data_max_", "data_range_"),
        operations=_into_range,
    ),
    Scaler(
        home=Lazy("sklearn.preprocessing:MaxAbsScaler"),
        params={"clip": _SWITCH_OFF, **_COPY},
        needs=lambda params: ("scale_",),
        keeps=("max_abs_",),
        operations=_by_largest,
    ),
    Scaler(
        home=Lazy("sklearn.preprocessing:RobustScaler"),
        params={
            "with_centering": _SWITCH_ON,
            "with_scaling": _SWITCH_ON,
            "quantile_range": ((25.0, 75.0), _is_range),
            "unit_variance": _SWITCH_OFF,
            **_COPY,
        },
        needs=lambda params: _chosen(params, with_centering="center_", with_scaling="scale_"),
        keeps=(),
        operations=_moved_and_divided("center_", "with_centering", "with_scaling"),
    ),
    Scaler(
        home=Lazy("sklearn.preprocessing:Normalizer"),
        params={"norm": ("l2", lambda value: value in NORMS), **_COPY},
        needs=lambda params: (),
        keeps=(),
        operations=lambda params, arrays: (("norm", params["norm"]),),
    ),
)
SCALER_NAMED = {scaler.name: scaler for scaler in SCALERS}

# The arrays of each method of calibration. There is one calibrator for two classes, else one for each class; `lengths`
# says how many points of the curve belong to each.
CALIBRATIONS = {
    "sigmoid": {"calibration.a": "F64 calibrators", "calibration.b": "F64 calibrators"},
    "isotonic": {
        "calibration.lengths": "I64 calibrators",
        "calibration.x": "F64 points",
        "calibration.y": "F64 points",
    },
}
