"""LIBLINEAR's model text: export and import of classifiers, regressions and one-class models.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2                      also if there are no classes
    label 1 -1                      of classifiers only
    nr_feature 3
    bias 1
    rho 0.5                         of one-class models only
    w
    one line a feature, with one number for two classes and one number a class for more, or with MCSVM_CS always one
    number a class; last, if bias >= 0, the line of the constant feature whose value is `bias`

A positive decision value of a two-class model means the first label. Regressions predict the decision value. One-class
models subtract rho from it, and what is negative then is an outlier. Numbers have 17 significant digits, which is
enough to give every double back.
"""

import re
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.atomic import replacing
from softmargin.io.record import ModelRecord, integer_labels
from softmargin.io.surroundings import refuse_surroundings

SIGNATURE = b"solver_type"
EXPORTED_AS = {
    "LinearSVC": "L2R_L1LOSS_SVC_DUAL",
    "LinearSVR": "L2R_L1LOSS_SVR_DUAL",
    "LinearOneClassSVM": "ONECLASS_SVM",
    "squared_hinge": "L2R_L2LOSS_SVC_DUAL",
    "squared_epsilon_insensitive": "L2R_L2LOSS_SVR_DUAL",
}
# These solvers minimise the squared loss. So does L1R_L2LOSS_SVC, but with a penalty that no model of ours has.
SQUARED = {
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
}
CRAMMER_SINGER = "MCSVM_CS"
CLASSIFIERS = (
    "L2R_LR",
    "L2R_L2LOSS_SVC_DUAL",
    "L2R_L2LOSS_SVC",
    "L2R_L1LOSS_SVC_DUAL",
    CRAMMER_SINGER,
    "L1R_L2LOSS_SVC",
    "L1R_LR",
    "L2R_LR_DUAL",
)
REGRESSIONS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
IMPORTED_AS = {
    **dict.fromkeys(CLASSIFIERS, "LinearSVC"),
    **dict.fromkeys(REGRESSIONS, "LinearSVR"),
    "ONECLASS_SVM": "LinearOneClassSVM",
}
# Larger weights, or a larger bias, are damage; up to here their products stay finite.
LARGEST = 1e150
ROWS_AT_A_TIME = 4096
KEYS = ("solver_type", "nr_class", "nr_feature", "bias")
MORE_KEYS = {"LinearSVC": ("label",), "LinearSVR": (), "LinearOneClassSVM": ("rho",)}
ALL_KEYS = (*KEYS, "label", "rho")

_START_OF_WEIGHTS = re.compile(rb"^w[ \t\r]*$", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_CHARACTERS_OF_NUMBERS = b"0123456789+-.eE \t\r\n"


def write_liblinear(path: Any, record: ModelRecord) -> None:
    """Write a linear model as a LIBLINEAR model; the intercept becomes a feature with the constant value 1.

    One-class models have rho in the place of an intercept.
    """
    refuse_surroundings(record, "LIBLINEAR")
    coef, intercept = np.atleast_2d(record.arrays["coef_"]), record.arrays["intercept_"]
    loss = record.params.get("loss")
    header = {"solver_type": EXPORTED_AS[loss if loss in EXPORTED_AS else record.kind], "nr_class": 2}
    has_bias = bool(record.params.get("fit_intercept", False))
    if record.kind == "LinearSVC":
        labels = integer_labels(record.arrays["classes_"], "LIBLINEAR")
        if record.params.get("multi_class") == "crammer_singer":
            header["solver_type"] = CRAMMER_SINGER
            if len(labels) == 2:  # LIBLINEAR has a column for each class: the halves of the difference
                coef, intercept = np.array([-0.5, 0.5])[:, None] * coef, np.array([-0.5, 0.5]) * intercept
        elif len(labels) == 2:
            labels.reverse()
        header |= {"nr_class": len(labels), "label": " ".join(map(str, labels))}
    if not all((np.abs(part) <= LARGEST).all() for part in (coef, intercept)):
        raise SoftmarginError(f"coef_ or intercept_ holds NaN or numbers beyond {LARGEST:g}: LIBLINEAR needs numbers.")
    header |= {"nr_feature": coef.shape[1], "bias": 1 if has_bias else -1}
    if record.kind == "LinearOneClassSVM":
        header["rho"] = f"{-intercept[0]:.17g}"
    weights = np.column_stack([coef, intercept]).T if has_bias else coef.T
    with replacing(path) as file:
        file.writelines(f"{key} {value}\n".encode() for key, value in header.items())
        file.write(b"w\n")
        for start in range(0, len(weights), ROWS_AT_A_TIME):
            rows = weights[start : start + ROWS_AT_A_TIME].tolist()
            file.write("".join(" ".join(map("{:.17g}".format, row)) + " \n" for row in rows).encode())


def parse(data: bytes) -> ModelRecord:
    """A LIBLINEAR model as the record of a LinearSVC, a LinearSVR or a LinearOneClassSVM."""
    start = _START_OF_WEIGHTS.search(data)
    if start is None:
        raise ModelFileError("this LIBLINEAR model has no weights: the line 'w' is missing")
    header = _parse_header(data[: start.start()])
    n_features, bias = header["nr_feature"], header["bias"]
    if n_features < 1:
        raise ModelFileError(f"nr_feature of this LIBLINEAR model is {n_features}, but a model needs features")
    n_weights = n_features + (bias >= 0)
    kind = IMPORTED_AS[header["solver_type"]]
    arrays = {}
    if kind == "LinearSVC":
        columns, arrays["classes_"] = _parse_classifier(header, data[start.end() :], n_weights)
    elif header["nr_class"] == 2:
        columns = _parse_numbers(data[start.end() :], "weights", n_weights)[None]
    else:
        raise ModelFileError("nr_class of this LIBLINEAR model must be 2, because it has no classes")
    coef = np.ascontiguousarray(columns[:, :n_features])
    intercept = bias * columns[:, n_features] if bias >= 0 else np.zeros(len(columns))
    params: dict[str, Any] = {"fit_intercept": False}
    if bias > 0:
        params = {"fit_intercept": True, "intercept": "penalised", "intercept_scaling": bias}
    if header["solver_type"] == CRAMMER_SINGER:
        params["multi_class"] = "crammer_singer"
    if kind == "LinearSVR":
        coef = coef[0]
    elif kind == "LinearOneClassSVM":
        intercept, params = intercept - header["rho"], {}
    if header["solver_type"] in SQUARED:
        params["loss"] = SQUARED[header["solver_type"]]
    return ModelRecord(kind, params, {}, {"coef_": coef, "intercept_": intercept, **arrays})


def _parse_classifier(header: dict[str, Any], text: bytes, n_weights: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a classifier, one row for two classes or else one a class, and the classes, sorted."""
    solver, n_classes, labels = header["solver_type"], header["nr_class"], header["label"]
    if n_classes < 2 or len(labels) != n_classes or len(set(labels)) != n_classes:
        raise ModelFileError("a LIBLINEAR classifier needs two classes or more, and one label for each")
    n_columns = 1 if n_classes == 2 and solver != CRAMMER_SINGER else n_classes
    columns = _parse_numbers(text, "weights", n_weights * n_columns).reshape(-1, n_columns).T
    classes = np.array(labels, dtype=np.int64)
    order = np.argsort(classes)
    if n_classes > 2:
        columns = columns[order]
    else:  # LIBLINEAR's column is positive for its first label, ours for the larger one
        first = columns[0] if n_columns == 1 else columns[0] - columns[1]
        columns = (first if order[0] == 1 else -first)[None]
    return columns, classes[order]


def _parse_header(head: bytes) -> dict[str, Any]:
    lines: dict[str, list[str]] = {}
    for line in head.decode("latin-1").splitlines():
        key, *words = line.split() or [""]
        if key not in ALL_KEYS or key in lines:
            raise ModelFileError(f"the line {shown(line)} of this LIBLINEAR model is unknown, or occurs twice")
        lines[key] = words
    if any(len(words) != 1 for key, words in lines.items() if key != "label"):
        raise ModelFileError("a line before the weights of this LIBLINEAR model does not hold one value")
    [solver] = lines.get("solver_type", [""])
    if solver not in IMPORTED_AS:
        raise ModelFileError(f"LIBLINEAR's solver_type {shown(solver)} is unknown: {', '.join(IMPORTED_AS)} are read")
    expected = (*KEYS, *MORE_KEYS[IMPORTED_AS[solver]])
    if missing := [key for key in expected if key not in lines]:
        raise ModelFileError(f"the line {missing[0]!r} is missing: this is not a LIBLINEAR model of {solver}")
    if foreign := [key for key in lines if key not in expected]:
        raise ModelFileError(f"the line {foreign[0]!r} has no place in a LIBLINEAR model of {solver}")
    return {
        "solver_type": solver,
        **{key: _integer(lines[key][0], key) for key in ("nr_class", "nr_feature")},
        **{key: _number(lines[key][0], key) for key in ("bias", "rho") if key in lines},
        "label": [_integer(word, "label") for word in lines.get("label", [])],
    }


def _integer(word: str, key: str) -> int:
    if not _INTEGER.fullmatch(word):
        raise ModelFileError(f"{key} of this LIBLINEAR model holds {shown(word)}, which is not an integer")
    return int(word)


def _number(word: str, key: str) -> float:
    return float(_parse_numbers(word.encode("latin-1"), key, 1)[0])


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
