"""Scalers and calibrations in model files: what goes in comes out, and lies are found."""

import json

import numpy as np
import pytest

from softmargin import ModelFileError, SoftmarginError
from softmargin.io.liblinear import write_liblinear
from softmargin.io.model_file import read_model, write_model
from softmargin.io.record import Calibration, ModelRecord, Step

STANDARD = Step("scale", "StandardScaler", {"with_mean": True, "with_std": True}, {
    "mean_": np.array([1.0, -2.0, 0.5]), "scale_": np.array([2.0, 0.25, 1.0]), "var_": np.array([4.0, 0.0625, 0.0]),
}, 17)  # fmt: skip
RANGE = Step("range", "MinMaxScaler", {"feature_range": (0.0, 1.0), "clip": True}, {
    "min_": np.array([0.0, 0.5, 1.0]), "scale_": np.array([2.0, 0.25, 1.0]),
})  # fmt: skip
UNIT = Step("unit", "Normalizer", {"norm": "l2"}, {})
SIGMOID = Calibration("sigmoid", {"a": np.array([-1.5]), "b": np.array([0.25])}, "model", {"method": "sigmoid"})
CURVES = {"lengths": np.array([2, 1, 3]), "x": np.array([-1.0, 2.0, 0.0, -3.0, 0.0, 3.0])}
ISOTONIC = Calibration("isotonic", {**CURVES, "y": np.array([0.0, 1.0, 0.5, 0.1, 0.2, 0.9])}, "pipeline")


def record(transform=(), calibration=None, n_classes=2, kind="LinearSVC"):
    n_rows = 1 if n_classes == 2 else n_classes
    arrays = {"coef_": np.ones((n_rows, 3)), "intercept_": np.zeros(n_rows), "classes_": np.arange(n_classes)}
    if kind == "LinearSVR":
        arrays = {"coef_": np.ones(3), "intercept_": np.zeros(1)}
    return ModelRecord(kind, {"C": 1.0}, {}, arrays, {}, transform, calibration)


@pytest.mark.parametrize(
    ("transform", "calibration", "n_classes"),
    [((STANDARD,), None, 2), ((RANGE, UNIT), SIGMOID, 2), ((), ISOTONIC, 3), ((UNIT, STANDARD), ISOTONIC, 3)],
)
def test_what_goes_in_comes_out(tmp_path, transform, calibration, n_classes):
    write_model(tmp_path / "m", record(transform, calibration, n_classes))
    found = read_model(tmp_path / "m")
    assert found.values == {}
    assert found.arrays.keys() == {"coef_", "intercept_", "classes_"}
    for one, other in zip(transform, found.transform, strict=True):
        assert (one.name, one.kind, one.n_samples_seen) == (other.name, other.kind, other.n_samples_seen)
        assert {name: list(v) if isinstance(v, tuple) else v for name, v in one.params.items()} == other.params
        assert [o[0] for o in one.operations()] == [o[0] for o in other.operations()]
        same_arrays(one.arrays, other.arrays)
    if calibration is None:
        assert found.calibration is None
    else:
        assert (found.calibration.method, found.calibration.around) == (calibration.method, calibration.around)
        assert found.calibration.params == calibration.params
        same_arrays(calibration.arrays, found.calibration.arrays)


def same_arrays(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


def changed(step, **arrays):
    return Step(step.name, step.kind, step.params, {**step.arrays, **arrays})


BAD = {
    "zero": (changed(STANDARD, scale_=np.zeros(3)), None, "divide by zero"),
    "nan": (changed(STANDARD, mean_=np.array([np.nan, 0.0, 0.0])), None, "NaN or infinity"),
    "columns": (changed(STANDARD, mean_=np.zeros(4)), None, "the number of features is 3"),
    "kind": (Step("a", "PCA", {}, {}), None, "'PCA' is unknown"),
    "missing": (Step("a", "MaxAbsScaler", {}, {}), None, r"'transform.0.scale_' is missing"),
    "array": (Step("a", "Normalizer", {}, {"scale_": np.ones(3)}), None, r"'transform.0.scale_' is unknown"),
    "parameter": (Step("a", "Normalizer", {"code": 1}, {}), None, "'code' is unknown"),
    "norm": (Step("a", "Normalizer", {"norm": "l7"}, {}), None, "cannot be 'l7'"),
    "range": (Step("a", "MinMaxScaler", {"feature_range": [1.0, 0.0]}, RANGE.arrays), None, "feature_range"),
    "method": (UNIT, Calibration("guess", {}), "'guess' is unknown"),
    "around": (UNIT, Calibration("sigmoid", SIGMOID.arrays, "house"), "'house'"),
    "calibrators": (UNIT, Calibration("sigmoid", {"a": np.ones(2), "b": np.ones(2)}), "the number of calibrators is 1"),
    "slope": (UNIT, Calibration("sigmoid", {"a": np.array([np.inf]), "b": np.ones(1)}), "NaN or infinity"),
    "lengths": (
        UNIT,
        Calibration("isotonic", {"lengths": np.array([5]), "x": np.arange(2.0), "y": np.zeros(2)}),
        "do not add up to 2",
    ),
    "curve": (
        UNIT,
        Calibration("isotonic", {"lengths": np.array([2]), "x": np.zeros(2), "y": np.zeros(2)}),
        "does not ascend",
    ),
    "probability": (
        UNIT,
        Calibration("isotonic", {"lengths": np.array([1]), "x": np.zeros(1), "y": np.array([1.5])}),
        "leaves the range",
    ),
}


@pytest.mark.parametrize(("step", "calibration", "cause"), BAD.values(), ids=BAD)
def test_lies_are_found(tmp_path, step, calibration, cause):
    with pytest.raises(ModelFileError, match=cause):
        write_model(tmp_path / "m", record((step,), calibration))
    assert not (tmp_path / "m").exists()


def test_a_regression_has_no_probabilities(tmp_path):
    with pytest.raises(ModelFileError, match="predicts no classes"):
        write_model(tmp_path / "m", record((), SIGMOID, kind="LinearSVR"))


def test_two_steps_of_the_same_name(tmp_path):
    with pytest.raises(ModelFileError, match="same name"):
        write_model(tmp_path / "m", record((UNIT, UNIT)))


@pytest.mark.parametrize(
    ("transform", "calibration", "cause"),
    [((STANDARD,), None, "StandardScaler in front of it"), ((), SIGMOID, "calibration")],
)
def test_texts_of_other_programs_hold_the_model_alone(tmp_path, transform, calibration, cause):
    with pytest.raises(SoftmarginError, match=cause):
        write_liblinear(tmp_path / "m", record(transform, calibration))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transform", "StandardScaler"),
        ("transform", []),
        ("transform", [7]),
        ("transform", [{"name": "a", "kind": "Normalizer"}]),
        ("transform", [{"name": "a", "kind": ["x"], "params": {}}]),
        ("transform", [{"name": "a", "kind": "Normalizer", "params": {"norm": [1]}}]),
        ("transform", [{"name": "a", "kind": "Normalizer", "params": {}, "n_samples_seen": -1}]),
        ("calibration", []),
        ("calibration", {"method": ["x"], "around": "model", "params": {}}),
        ("calibration", {"method": "sigmoid", "around": ["x"], "params": {}}),
        ("calibration", {"method": "sigmoid"}),
    ],
)
def test_values_of_another_form_are_refused(tmp_path, key, value):
    path = tmp_path / "m"
    write_model(path, record((UNIT,), SIGMOID))
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    model = json.loads(header["__metadata__"]["model"])
    model["values"][key] = value
    header["__metadata__"]["model"] = json.dumps(model)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(ModelFileError, match=str(path)):
        read_model(path)
