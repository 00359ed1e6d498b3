"""LIBLINEAR's model text: export, and import of its classifiers.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 3
    bias 1
    w
    one line a feature, with one number for two classes and one number a class for more; last, if bias >= 0, the line
    of the constant feature whose value is `bias`

A positive decision value of a two-class model means the first label. Numbers have 17 significant digits, which is
enough to give every double back.
"""

import re
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.atomic import replacing
from softmargin.io.record import ModelRecord, integer_labels

SIGNATURE = b"solver_type"
EXPORTED_AS = "L2R_L1LOSS_SVC_DUAL"
CRAMMER_SINGER = "MCSVM_CS"
CLASSIFIERS = (
    "L2R_LR",
    "L2R_L2LOSS_SVC_DUAL",
    "L2R_L2LOSS_SVC",
    EXPORTED_AS,
    CRAMMER_SINGER,
    "L1R_L2LOSS_SVC",
    "L1R_LR",
    "L2R_LR_DUAL",
)
# Larger weights, or a larger bias, are damage; up to here their products stay finite.
LARGEST = 1e150
ROWS_AT_A_TIME = 4096
KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias")

_START_OF_WEIGHTS = re.compile(rb"^w[ \t\r]*$", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_CHARACTERS_OF_NUMBERS = b"0123456789+-.eE \t\r\n"
# LIBLINEAR keeps labels as 32-bit integers.


def write_liblinear(path: Any, record: ModelRecord) -> None:
    """Write a linear classifier as a LIBLINEAR model; the intercept becomes a feature with the constant value 1."""
    coef, intercept = record.arrays["coef_"], record.arrays["intercept_"]
    labels = integer_labels(record.arrays["classes_"], "LIBLINEAR")
    has_bias = bool(record.params["fit_intercept"])
    weights = np.column_stack([coef, intercept]).T if has_bias else coef.T
    if not (np.abs(weights) <= LARGEST).all():
        raise SoftmarginError(f"coef_ or intercept_ holds NaN or numbers beyond {LARGEST:g}: LIBLINEAR needs numbers.")
    if len(labels) == 2:
        labels.reverse()
    header = {
        "solver_type": EXPORTED_AS,
        "nr_class": len(labels),
        "label": " ".join(map(str, labels)),
        "nr_feature": coef.shape[1],
        "bias": 1 if has_bias else -1,
    }
    with replacing(path) as file:
        file.writelines(f"{key} {value}\n".encode() for key, value in header.items())
        file.write(b"w\n")
        for start in range(0, len(weights), ROWS_AT_A_TIME):
            rows = weights[start : start + ROWS_AT_A_TIME].tolist()
            file.write("".join(" ".join(map("{:.17g}".format, row)) + " \n" for row in rows).encode())


def parse(data: bytes) -> ModelRecord:
    """A LIBLINEAR classifier as the record of a LinearSVC: classes sorted, bias folded into the intercept."""
    start = _START_OF_WEIGHTS.search(data)
    if start is None:
        raise ModelFileError("this LIBLINEAR model has no weights: the line 'w' is missing")
    header = _parse_header(data[: start.start()])
    solver, n_classes, n_features = header["solver_type"], header["nr_class"], header["nr_feature"]
    labels, bias = header["label"], header["bias"]
    if solver not in CLASSIFIERS:
        raise ModelFileError(f"LIBLINEAR's {shown(solver)} is not a classifier: only {', '.join(CLASSIFIERS)} are read")
    if n_classes < 2 or n_features < 1 or len(labels) != n_classes or len(set(labels)) != n_classes:
        raise ModelFileError("a LIBLINEAR classifier needs two classes or more, one label for each, and features")
    n_columns = 1 if n_classes == 2 and solver != CRAMMER_SINGER else n_classes
    weights = _parse_numbers(data[start.end() :], "weights", (n_features + (bias >= 0)) * n_columns)
    columns = weights.reshape(-1, n_columns).T
    classes = np.array(labels, dtype=np.int64)
    order = np.argsort(classes)
    if n_classes > 2:
        columns = columns[order]
    else:  # LIBLINEAR's column is positive for its first label, ours for the larger one
        first = columns[0] if n_columns == 1 else columns[0] - columns[1]
        columns = (first if order[0] == 1 else -first)[None]
    arrays = {
        "coef_": np.ascontiguousarray(columns[:, :n_features]),
        "intercept_": bias * columns[:, n_features] if bias >= 0 else np.zeros(len(columns)),
        "classes_": classes[order],
    }
    params = {"fit_intercept": True, "intercept": "penalised"} if bias >= 0 else {"fit_intercept": False}
    return ModelRecord("LinearSVC", params, {}, arrays)


def _parse_header(head: bytes) -> dict[str, Any]:
    lines: dict[str, list[str]] = {}
    for line in head.decode("latin-1").splitlines():
        key, *words = line.split() or [""]
        if key not in KEYS or key in lines:
            raise ModelFileError(f"the line {shown(line)} of this LIBLINEAR model is unknown, or occurs twice")
        lines[key] = words
    if missing := [key for key in KEYS if key not in lines]:
        # Models of regression and of one class have no labels.
        raise ModelFileError(f"the line {missing[0]!r} is missing: this is not a LIBLINEAR classifier")
    if any(len(lines[key]) != 1 for key in KEYS if key != "label"):
        raise ModelFileError("a line before the weights of this LIBLINEAR model does not hold one value")
    integers = {key: [_integer(word, key) for word in lines[key]] for key in ("nr_class", "label", "nr_feature")}
    return {
        "solver_type": lines["solver_type"][0],
        "nr_class": integers["nr_class"][0],
        "label": integers["label"],
        "nr_feature": integers["nr_feature"][0],
        "bias": float(_parse_numbers(lines["bias"][0].encode("latin-1"), "bias", 1)[0]),
    }


def _integer(word: str, key: str) -> int:
    if not _INTEGER.fullmatch(word):
        raise ModelFileError(f"{key} of this LIBLINEAR model holds {shown(word)}, which is not an integer")
    return int(word)


def _parse_numbers(text: bytes, what: str, count: int) -> np.ndarray:
    """Exactly `count` numbers; nothing of that size is allocated before they have been seen."""
    if foreign := text.translate(None, _CHARACTERS_OF_NUMBERS):
        raise ModelFileError(f"the {what} of this LIBLINEAR model hold {shown(foreign.decode('latin-1'))}")
    words = text.split()
    if len(words) != count:
        raise ModelFileError(f"this LIBLINEAR model should have {count} {what}, but has {len(words)}")
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError as error:
        raise ModelFileError(f"the {what} of this LIBLINEAR model cannot be read: {shown(str(error))}") from None
    if not (np.abs(numbers) <= LARGEST).all():
        raise ModelFileError(f"the {what} of this LIBLINEAR model hold numbers beyond {LARGEST:g}")
    return numbers
