"""LIBSVM's model text: export and import of classifiers, regressions and one-class models.

    svm_type c_svc                  or nu_svc, epsilon_svr, nu_svr, one_class
    kernel_type polynomial          or linear, rbf, sigmoid
    degree 3                        polynomial
    gamma 0.5                       all but linear
    coef0 0                         polynomial, sigmoid
    nr_class 3                      2 if there are no classes
    total_sv 40
    rho 0.1 -0.2 0.3                one a pair of classes: (0, 1), (0, 2), (1, 2)
    label 1 2 3                     of classifiers only
    nr_sv 12 20 8                   of classifiers only: support vectors of each class, in which order they follow
    SV
    one line a support vector: a coefficient for each other class, then its features, index:value, counted from 1

The decision value of the pair (i, j) is sum coef K(sv, x) - rho, and a positive one votes for i. Ours has the same sign
for three classes and more, and the opposite one for two, where positive means the second class. Regressions and
one-class models have one such value and no classes: it is what a regression predicts, and negative for outliers.
Numbers have 17 significant digits, which is enough to give every double back.
"""

import re
from array import array
from collections.abc import Iterator
from itertools import combinations
from reprlib import repr as shown
from typing import Any, BinaryIO, cast

import numpy as np

from softmargin.core.errors import DataFormatError, ModelFileError, SoftmarginError
from softmargin.io.atomic import replacing
from softmargin.io.record import ModelRecord, integer_labels, matrix_from_arrays, matrix_to_arrays
from softmargin.io.surroundings import refuse_surroundings

SIGNATURE = b"svm_type"
EXPORTED_AS = {"SVC": "c_svc", "SVR": "epsilon_svr", "OneClassSVM": "one_class"}
# nu-SVC and nu-SVR differ in what is minimised: their models predict in the same way.
IMPORTED_AS = {"c_svc": "SVC", "nu_svc": "SVC", "epsilon_svr": "SVR", "nu_svr": "SVR", "one_class": "OneClassSVM"}
KERNELS = {"linear": "linear", "poly": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}
PARAMETERS = {"linear": (), "poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
# Estimates of probabilities, which are not read.
DROPPED = ("probA", "probB", "prob_density_marks")
REQUIRED = ("svm_type", "kernel_type", "nr_class", "total_sv", "rho")
OF_CLASSES = ("label", "nr_sv")
KEYS = (*REQUIRED, *OF_CLASSES, "degree", "gamma", "coef0", *DROPPED)
# Larger numbers are damage; up to here their products stay finite.
LARGEST = 1e150
LARGEST_DEGREE = 1000
ROWS_AT_A_TIME = 4096

_START_OF_VECTORS = re.compile(rb"^SV[ \t\r]*\n", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_FOREIGN = re.compile(rb"[^-+.:eE0-9 \t\r\n]")


# --- export -------------------------------------------------------------------------------------------------------


def write_libsvm(path: Any, record: ModelRecord) -> None:
    """Write a kernel classifier, regression or one-class model as a LIBSVM model."""
    import scipy.sparse as sp

    refuse_surroundings(record, "LIBSVM")
    kernel = _exported_kernel(record)
    of_classes: dict[str, str] = {}
    coef, rho = record.arrays["dual_coef_"], -record.arrays["intercept_"]
    n_classes = 2
    if "classes_" in record.arrays:
        labels = integer_labels(record.arrays["classes_"], "LIBSVM")
        n_classes = len(labels)
        n_support = record.arrays["n_support_"].tolist()
        of_classes = {"label": " ".join(map(str, labels)), "nr_sv": " ".join(map(str, n_support))}
        if coef.shape[1] == 0:
            raise SoftmarginError("the model has no support vectors, and LIBSVM needs some: train it for longer.")
        if n_classes == 2:
            coef, rho = -coef, -rho
    n_features = record.values["n_features_in_"]
    stored = matrix_from_arrays("support_vectors_", record.arrays, n_features)
    vectors = sp.csr_matrix(stored, dtype=np.float64, copy=True)
    vectors.sum_duplicates()  # LIBSVM relies on indices that rise
    for name, numbers in {"dual_coef_": coef, "intercept_": rho, "support_vectors_": vectors.data}.items():
        if not (np.abs(numbers) <= LARGEST).all():
            raise SoftmarginError(f"{name} holds NaN or numbers beyond {LARGEST:g}: LIBSVM needs numbers.")
    if coef.shape[1] == 0:  # a regression whose tube holds all rows: a vector that counts for nothing has the features
        coef, vectors = np.zeros((1, 1)), sp.csr_matrix((1, n_features))
    if vectors.indices.max(initial=-1) < n_features - 1:
        vectors = _with_last_feature(vectors)
    header = {
        "svm_type": EXPORTED_AS[record.kind],
        "kernel_type": KERNELS[kernel],
        **{name: _parameter(record, name) for name in PARAMETERS[kernel]},
        "nr_class": n_classes,
        "total_sv": coef.shape[1],
        "rho": " ".join(map("{:.17g}".format, rho.tolist())),
        **of_classes,
    }
    with replacing(path) as file:
        file.writelines(f"{key} {value}\n".encode() for key, value in header.items())
        file.write(b"SV\n")
        for start in range(0, coef.shape[1], ROWS_AT_A_TIME):
            where = slice(start, start + ROWS_AT_A_TIME)
            file.write("".join(_lines(coef[:, where], vectors[where])).encode())


def _exported_kernel(record: ModelRecord) -> str:
    kernel = record.params["kernel"]
    if kernel not in KERNELS:
        raise SoftmarginError(
            f"kernel={kernel!r} has no place in a LIBSVM model, which knows {', '.join(map(repr, KERNELS))}: save in "
            "the format 'softmargin'."
        )
    return kernel


def _parameter(record: ModelRecord, name: str) -> str:
    value = record.values["gamma_"] if name == "gamma" else record.params[name]
    if name == "degree" and value != int(value):
        raise SoftmarginError(f"degree={value!r} is not a whole number, which LIBSVM needs: use format='softmargin'.")
    return f"{int(value)}" if name == "degree" else f"{value:.17g}"


def _with_last_feature(vectors: Any) -> Any:
    """The same, but the first vector has the last feature, as a zero: so the text tells how many there are."""
    import scipy.sparse as sp

    indptr = vectors.indptr.copy()
    indptr[1:] += 1
    at = vectors.indptr[1]
    parts = np.insert(vectors.data, at, 0.0), np.insert(vectors.indices, at, vectors.shape[1] - 1), indptr
    return sp.csr_matrix(parts, shape=vectors.shape)


def _lines(coef: np.ndarray, vectors: Any) -> Iterator[str]:
    indices, values, ends = (vectors.indices + 1).tolist(), vectors.data.tolist(), vectors.indptr.tolist()
    for at, row in enumerate(coef.T.tolist()):
        where = slice(ends[at], ends[at + 1])
        words = [f"{number:.17g}" for number in row]
        words += [f"{index}:{value:.17g}" for index, value in zip(indices[where], values[where], strict=True)]
        yield " ".join(words) + " \n"


# --- import -------------------------------------------------------------------------------------------------------


def parse(data: bytes) -> ModelRecord:
    """A LIBSVM model as the record of an SVC, an SVR or a OneClassSVM."""
    start = _START_OF_VECTORS.search(data)
    if start is None:
        raise ModelFileError("this LIBSVM model has no support vectors: the line 'SV' is missing")
    header = _Header(data[: start.start()])
    params = header.kernel()
    parse_rest = _parse_classifier if header.kind == "SVC" else _parse_expansion
    arrays, vectors = parse_rest(header, data[start.end() :])
    arrays |= matrix_to_arrays("support_vectors_", vectors)
    values = {"gamma_": params.get("gamma", 0.0), "n_features_in_": vectors.shape[1]}
    return ModelRecord(header.kind, params, values, arrays)


def _parse_classifier(header: "_Header", body: bytes) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays of an SVC and its support vectors: classes sorted, and signs and vectors with them."""
    n_classes = header.integer("nr_class")
    if n_classes < 2:
        raise header.error("nr_class", "a classifier needs two classes or more")
    labels = header.integers("label", n_classes)
    if len(set(labels)) != n_classes:
        raise header.error("label", "a label occurs twice")
    rho = header.numbers("rho", n_classes * (n_classes - 1) // 2)
    n_support = header.integers("nr_sv", n_classes)
    total = header.integer("total_sv")
    if min(n_support) < 0 or sum(n_support) != total or total < 1:
        raise header.error("nr_sv", f"the numbers do not add up to the {total} of total_sv, or are not positive")
    coef, vectors = _parse_vectors(body, header.n_lines + 2, n_classes - 1, total)
    order, rows = _rising(labels, n_support)
    coef, rho = _reordered(order, n_support, coef, rho)
    dual_coef, intercept = (-coef, rho) if n_classes == 2 else (coef, -rho)
    arrays = {
        "classes_": np.array(labels, dtype=np.int64)[order],
        "n_support_": np.array(n_support, dtype=np.int32)[order],
        "dual_coef_": np.ascontiguousarray(dual_coef),
        "intercept_": intercept,
    }
    return arrays, vectors[rows]


def _parse_expansion(header: "_Header", body: bytes) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays of an SVR or a OneClassSVM and its support vectors, without those that count for nothing."""
    if header.integer("nr_class") != 2:
        raise header.error("nr_class", "it is 2 where there are no classes")
    rho = header.numbers("rho", 1)
    total = header.integer("total_sv")
    if total < 0:
        raise header.error("total_sv", "it is negative")
    coef, vectors = _parse_vectors(body, header.n_lines + 2, 1, total)
    used = np.flatnonzero(coef[0])
    arrays = {
        "n_support_": np.array([used.size], dtype=np.int32),
        "dual_coef_": np.ascontiguousarray(coef[:, used]),
        "intercept_": -rho,
    }
    return arrays, vectors[used]


class _Header:
    """The lines in front of the support vectors, by their first word."""

    def __init__(self, head: bytes) -> None:
        lines = head.decode("latin-1").split("\n")[:-1]
        self.n_lines = len(lines)
        self._lines: dict[str, tuple[int, list[str]]] = {}
        for at, line in enumerate(lines, 1):
            key, *words = line.split() or [""]
            if key not in KEYS or key in self._lines:
                raise ModelFileError(f"line {at}: {shown(line)} is unknown in a LIBSVM model, or occurs twice")
            self._lines[key] = at, words
        theirs = self.word("svm_type")
        if theirs not in IMPORTED_AS:
            raise self.error("svm_type", f"{shown(theirs)} is unknown: {', '.join(IMPORTED_AS)} are read")
        self.kind = IMPORTED_AS[theirs]
        required = (*REQUIRED, *OF_CLASSES) if self.kind == "SVC" else REQUIRED
        if missing := [key for key in required if key not in self._lines]:
            raise ModelFileError(f"the line {missing[0]!r} is missing: this is not a LIBSVM model of type {theirs}")
        if self.kind != "SVC" and (foreign := [key for key in OF_CLASSES if key in self._lines]):
            raise self.error(foreign[0], f"a LIBSVM model of type {theirs} has no classes, and no such line")

    def error(self, key: str, message: str) -> ModelFileError:
        return ModelFileError(f"line {self._lines[key][0]} ({key}): {message}")

    def words(self, key: str, count: int) -> list[str]:
        if key not in self._lines:
            raise ModelFileError(f"the line {key!r} is missing in this LIBSVM model")
        words = self._lines[key][1]
        if len(words) != count:
            raise self.error(key, f"{count} values are needed, but there are {len(words)}")
        return words

    def word(self, key: str) -> str:
        return self.words(key, 1)[0]

    def integers(self, key: str, count: int) -> list[int]:
        words = self.words(key, count)
        if wrong := [word for word in words if not _INTEGER.fullmatch(word)]:
            raise self.error(key, f"{shown(wrong[0])} is not an integer")
        return [int(word) for word in words]

    def integer(self, key: str) -> int:
        return self.integers(key, 1)[0]

    def numbers(self, key: str, count: int) -> np.ndarray:
        words = self.words(key, count)
        if wrong := [word for word in words if not _NUMBER.fullmatch(word) or abs(float(word)) > LARGEST]:
            raise self.error(key, f"{shown(wrong[0])} is not a number, or beyond {LARGEST:g}")
        return np.array([float(word) for word in words])

    def kernel(self) -> dict[str, Any]:
        """The kernel and its parameters, by our names."""
        found = self.word("kernel_type")
        ours = next((name for name, theirs in KERNELS.items() if theirs == found), None)
        if found == "precomputed":
            raise self.error("kernel_type", "a precomputed kernel needs its training data, which are not in the file")
        if ours is None:
            raise self.error("kernel_type", f"the kernel {shown(found)} is unknown")
        params: dict[str, Any] = {"kernel": ours}
        for name in PARAMETERS[ours]:
            params[name] = self.integer(name) if name == "degree" else float(self.numbers(name, 1)[0])
        if params.get("gamma", 1.0) <= 0.0:
            raise self.error("gamma", "it must be above 0")
        if not 0 <= params.get("degree", 1) <= LARGEST_DEGREE:
            raise self.error("degree", f"it must be between 0 and {LARGEST_DEGREE}")
        return params


def _parse_vectors(body: bytes, first_line: int, n_coef: int, total: int) -> tuple[np.ndarray, Any]:
    """Coefficients, shape (n_coef, total), and vectors: dense if at least half of their entries are there, else CSR.

    The features of a line are those of svmlight text. Nothing is allocated for lines that have not been seen.
    """
    import scipy.sparse as sp

    from softmargin.io.svmlight import load_svmlight

    if foreign := _FOREIGN.search(body):
        at = first_line + body.count(b"\n", 0, foreign.start())
        raise ModelFileError(f"line {at}: {shown(foreign[0].decode('latin-1'))} has no place in a support vector")
    if total == 0 and not body.strip():
        return np.empty((n_coef, 0)), np.empty((0, 1))
    text = _VectorText(body, first_line, n_coef)
    try:
        vectors, _ = load_svmlight(cast(BinaryIO, text), zero_based=True)
    except DataFormatError as error:
        raise ModelFileError(f"line {error.line}: {error.message.removesuffix('.')}") from None
    places = text.places
    if len(places) != total:
        raise ModelFileError(f"this LIBSVM model should have {total} support vectors, but has {len(places)}")
    for wrong, message in (
        (vectors.indices == 0, "feature 0 occurs, but LIBSVM counts features from 1"),
        (np.abs(vectors.data) > LARGEST, f"a value is beyond {LARGEST:g}"),
    ):
        if wrong.any():
            row = np.searchsorted(vectors.indptr, wrong.argmax(), side="right") - 1
            raise ModelFileError(f"line {places[row]}: {message}")
    shape = (total, max(vectors.shape[1] - 1, 1))
    vectors = sp.csr_matrix((vectors.data, vectors.indices - 1, vectors.indptr), shape=shape)
    if 2 * vectors.nnz >= shape[0] * shape[1]:
        vectors = vectors.toarray()
    return np.array(text.coefficients).reshape(total, n_coef).T, vectors


class _VectorText:
    """Support vectors as svmlight text, read piece by piece, with a label of 0 where their coefficients were.

    These are set aside, and so is the line of each vector. Blank lines in front make lines have their numbers.
    """

    def __init__(self, body: bytes, first_line: int, n_coef: int) -> None:
        self._body, self._at = body, 0
        self._line, self._n_coef = first_line, n_coef
        self._blank = b"\n" * (first_line - 1)
        self.coefficients, self.places = array("d"), array("q")

    def read(self, n: int) -> bytes:
        if self._blank:
            blank, self._blank = self._blank, b""
            return blank
        end = self._body.find(b"\n", self._at + n) + 1 or len(self._body)
        lines = self._body[self._at : end].split(b"\n")
        self._at = end
        for at, line in enumerate(lines):
            words = line.split(None, self._n_coef)
            if words:
                place = self._line + at
                self.places.append(place)
                self.coefficients.extend(_coefficients(words[: self._n_coef], self._n_coef, place))
                words = [b"0", *words[self._n_coef :]]
            lines[at] = b" ".join(words)
        self._line += len(lines) - 1
        return b"\n".join(lines)


def _coefficients(words: list[bytes], count: int, line: int) -> list[float]:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count or max(map(abs, numbers)) > LARGEST:
        raise ModelFileError(
            f"line {line}: a support vector begins with {count} coefficient{'s' * (count > 1)} up to {LARGEST:g}"
        )
    return numbers


def _rising(labels: list[int], n_support: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Classes in the order of their labels, and the support vectors in the order of these classes."""
    order = np.argsort(labels)
    owners = np.repeat(np.argsort(order), n_support)
    return order, np.argsort(owners, kind="stable")


def _reordered(order: np.ndarray, n_support: list[int], coef: np.ndarray, rho: np.ndarray) -> tuple:
    """Coefficients and rho for classes in another order: a pair that is turned round changes its sign.

    Class i has its coefficients against j in row j, or in row j - 1 if j > i.
    """
    n_classes = len(order)
    ends = np.cumsum([0, *n_support])
    old = [slice(*ends[i : i + 2]) for i in range(n_classes)]
    new_ends = np.cumsum([0, *np.array(n_support)[order]])
    new = [slice(*new_ends[i : i + 2]) for i in range(n_classes)]
    number = {pair: at for at, pair in enumerate(combinations(range(n_classes), 2))}
    new_coef, new_rho = np.empty_like(coef), np.empty_like(rho)
    for (a, b), at in number.items():
        i, j = int(order[a]), int(order[b])
        sign = 1.0 if i < j else -1.0
        new_rho[at] = sign * rho[number[min(i, j), max(i, j)]]
        new_coef[b - 1, new[a]] = sign * coef[j - (j > i), old[i]]
        new_coef[a, new[b]] = sign * coef[i - (i > j), old[j]]
    return new_coef, new_rho
