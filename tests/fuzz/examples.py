"""One valid file, or several, of each format that the library reads; small, and the same in every run."""

import bz2
import gzip
import io
import lzma
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from softmargin import SVC, SVR, LinearOneClassSVM, LinearSVC, LinearSVR, OneClassSVM, OrdinalSVC, RankSVM, save

COMPRESSORS = {"": bytes, ".gz": lambda raw: gzip.compress(raw, mtime=0), ".bz2": bz2.compress, ".xz": lzma.compress}


# What `softmargin tune` leaves in the files of some of the models.
SEARCHED = (0, 7)
SEARCH = {
    "measure": "accuracy",
    "n_folds": 3,
    "params": {"C": [0.1, 1.0, 10.0], "gamma": [0.5, 0.5, 0.5]},
    "score": [0.5, 0.75, 0.7],
    "standard_error": [0.0, 0.1, 0.1],
    "support_vectors": [20.0, 15.0, 12.0],
}


@dataclass(frozen=True)
class Training:
    """What a model was trained on, so that a loaded one can go on."""

    X: Any
    y: np.ndarray
    qid: np.ndarray | None = None


@dataclass(frozen=True)
class Example:
    """A file: its bytes before compression, how it is compressed, and what its name ends in.

    `form` is the format, which says how it is damaged ("model" is our own model file) and read.
    """

    form: str
    raw: bytes
    ending: str = ""
    training: Training | None = None


def examples() -> list[Example]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # fits that are stopped early
        return [*_models(Path(folder) / "model"), *_texts(), *_arrays(), *_columns()]


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((24, 5)), 3)
    return X, np.digitize(X[:, 0] + 0.5 * rng.standard_normal(24), [-0.5, 0.5])


def _models(path: Path) -> Iterator[Example]:
    X, y = rows_and_labels()
    two, words = (y > 0).astype(int), np.array(["low", "middle", "high"])[y]
    qid = np.arange(24) // 8
    frame_like, wide = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)), np.tile(X, (1, 11))
    early = {"max_iter": 3, "tol": 1e-9, "warm_start": True}
    numbers = np.round(X[:, 0] - 2.0 * X[:, 1], 3)
    calibrated = partial(CalibratedClassifierCV, ensemble=False, cv=2)
    fits = [
        (LinearSVC(), Training(X, words), False, "softmargin"),
        (LinearSVC(**early), Training(frame_like, two), True, "softmargin"),
        (LinearSVC(**early), Training(wide, y), True, "softmargin"),
        (LinearSVC(solver="sgd", random_state=0, **early), Training(X, two), True, "softmargin"),
        (RankSVM(**early), Training(X, y, qid), True, "softmargin"),
        (OrdinalSVC(), Training(X, y), False, "softmargin"),
        (OrdinalSVC(thresholds="all", **early), Training(X, y), True, "softmargin"),
        (SVC(), Training(X, words), False, "softmargin"),
        (SVC(kernel="poly", warm_start=True), Training(frame_like, y), True, "softmargin"),
        (SVC(kernel="precomputed"), Training(X @ X.T, two), False, "softmargin"),
        (SVC(solver="active_set"), Training(X, two), True, "softmargin"),
        (LinearSVR(), Training(X, numbers), False, "softmargin"),
        (LinearSVR(**early), Training(frame_like, numbers), True, "softmargin"),
        (LinearSVR(intercept="penalised", **early), Training(wide, numbers), True, "softmargin"),
        (SVR(), Training(frame_like, numbers), False, "softmargin"),
        (SVR(kernel="precomputed"), Training(X @ X.T, numbers), False, "softmargin"),
        (SVR(solver="smo", **early), Training(X, numbers), True, "softmargin"),
        (SVR(solver="active_set", warm_start=True), Training(X, numbers), True, "softmargin"),
        (LinearOneClassSVM(), Training(X + 2.0, numbers), False, "softmargin"),
        (LinearOneClassSVM(nu=0.2, **early), Training(X + 2.0, numbers), True, "softmargin"),
        (OneClassSVM(), Training(X, numbers), False, "softmargin"),
        (OneClassSVM(kernel="poly", solver="smo", **early), Training(frame_like, numbers), True, "softmargin"),
        (make_pipeline(StandardScaler(), Normalizer(), LinearSVC()), Training(X, two), False, "softmargin"),
        (make_pipeline(MinMaxScaler(clip=True), calibrated(SVC())), Training(X, y), False, "softmargin"),
        (
            calibrated(make_pipeline(RobustScaler(), LinearSVC()), method="isotonic"),
            Training(X, y),
            False,
            "softmargin",
        ),
        (LinearSVC(), Training(X, two), False, "liblinear"),
        (LinearSVC(fit_intercept=False), Training(X, y), False, "liblinear"),
        (LinearSVR(), Training(X, numbers), False, "liblinear"),
        (LinearOneClassSVM(), Training(X + 2.0, numbers), False, "liblinear"),
        (SVC(), Training(frame_like, two), False, "libsvm"),
        (SVC(kernel="poly", coef0=1.0), Training(X, y), False, "libsvm"),
        (SVR(), Training(frame_like, numbers), False, "libsvm"),
        (SVR(epsilon=100.0), Training(X, numbers), False, "libsvm"),
        (OneClassSVM(nu=0.2), Training(X, numbers), False, "libsvm"),
    ]
    for k, (estimator, data, with_state, form) in enumerate(fits):
        estimator.fit(data.X, data.y, **({} if data.qid is None else {"qid": data.qid}))
        if k in SEARCHED:
            estimator.search_ = SEARCH
        save(estimator, path, include_training_state=with_state, format=form)
        yield Example("model" if form == "softmargin" else form, path.read_bytes(), training=data)


def _texts() -> Iterator[Example]:
    X, y = rows_and_labels()
    lines = []
    for k, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        features = " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1) if abs(value) > 0.5)
        lines.append((str(label), f"qid:{k // 8}", features))
    plain = "".join(f"{label} {features}\n" for label, _, features in lines) + "# the end\n"
    queries = "# a file\n\n" + "".join(f"{label} {qid} {features} # x\n" for label, qid, features in lines)
    odd = "+1 1:1e-3 2:-.5e2 3:nan\r\n-1 2:12345678901234567890 7:0.1234567890123456789\r\n1\n"
    for text in (plain, queries, odd):
        for ending in COMPRESSORS:
            yield Example("svmlight", text.encode(), ending)
    header = "a,b,c,d,e,label\n"
    table = header + "".join(f"{','.join(map(repr, row))},{label}\n" for row, label in zip(X.tolist(), y, strict=True))
    for ending in ("", ".gz", ".bz2"):
        yield Example("csv", table.encode(), ".csv" + ending)
    yield Example("csv", b'qid,x,"y"\n1,0.5,"a"\n1,1.5,"b, c"\n2,2,"a"\n', ".csv")


def _arrays() -> Iterator[Example]:
    X, y = rows_and_labels()
    for array in (X, np.asfortranarray(X.astype(np.float32)), X.astype(">i2")):
        yield Example("npy", _written(np.save, array), ".npy")
    qid = np.arange(24) // 8
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    yield Example("npz", _written(np.savez, X=X, y=y, qid=qid), ".npz")
    yield Example("npz", _written(np.savez_compressed, X=X, y=np.array(["no", "yes", "ok"])[y]), ".npz")
    yield Example("npz", _written(sp.save_npz, sparse), ".npz")


def _columns() -> Iterator[Example]:
    import pyarrow as pa
    from pyarrow import parquet

    X, y = rows_and_labels()
    columns = {f"x{j}": X[:, j] for j in range(5)} | {"label": np.array(["no", "yes", "ok"])[y], "qid": np.arange(24)}
    for compression in ("none", "snappy", "gzip"):
        file = io.BytesIO()
        parquet.write_table(pa.table(columns), file, compression=compression)
        yield Example("parquet", file.getvalue(), ".parquet")


def _written(write: Any, *arrays: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    write(file, *arrays, **named)
    return file.getvalue()
