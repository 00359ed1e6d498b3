"""What is done with a file, damaged or not: everything that the library and the command line read it with.

A model that was read must be usable: it predicts a few rows, is shown, and goes on training if it has a state.
"""

import contextlib
import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from examples import Example

from softmargin import SoftmarginError, load, load_predictor, load_svmlight
from softmargin.cli import showing
from softmargin.estimators.record_scoring import predictor_of
from softmargin.io import svmlight
from softmargin.io.model_file import read_model
from softmargin.io.tables import load_table
from softmargin.tasks.records import task_behind

DENSE_COLUMNS = 10**5  # rows to predict have zeros written out up to here


def read(example: Example, path: Path) -> bool:
    """Whether the file was read, rather than refused; any error but the library's own is a defect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = {"svmlight": _read_svmlight}.get(example.form, _read_table)
        if example.form in ("model", "liblinear", "libsvm"):
            return _read_model(example, path)
        return reader(path)


def _read_model(example: Example, path: Path) -> bool:
    was_read = _succeeds(lambda: _predict_light(path)) | _succeeds(lambda: _predict_in_numpy(path))
    with contextlib.redirect_stdout(io.StringIO()):
        _succeeds(lambda: showing.info(path, as_json=True, n_weights=3))
        _succeeds(lambda: showing.info(path, as_json=False, n_weights=None))
    return _succeeds(lambda: _use(load(path), example)) or was_read


def _predict_light(path: Path) -> None:
    predictor = predictor_of(read_model(path))
    scores = predictor.scores(_rows(predictor.n_features), 1)
    if predictor.classes is not None:
        predictor.labels(scores)


def _predict_in_numpy(path: Path) -> None:
    predictor = load_predictor(path)
    predictor.predict(_rows(predictor.n_features_in_))


def _use(model: Any, example: Example) -> None:
    rows = _rows(model.n_features_in_)
    if task_behind(model) is None:  # a pipeline or a calibration: scikit-learn's own errors are good ones
        with contextlib.suppress(ValueError):
            model.predict(rows)
        return
    _succeeds(lambda: model.set_params(n_jobs=None).predict(rows))
    if not hasattr(model, "_state") and not hasattr(model, "_training"):
        return
    data = example.training
    assert data is not None
    with contextlib.suppress(ValueError):  # scikit-learn's, too
        model.set_params(warm_start=True, max_iter=3, max_seconds=0.5, n_jobs=None, verbose=0)
        model.fit(data.X, data.y, **({} if data.qid is None else {"qid": data.qid}))
        for name in ("coef_", "intercept_", "dual_coef_"):
            part = getattr(model, name, np.zeros(1))
            if not np.isfinite(part if isinstance(part, np.ndarray) else part.data).all():
                raise ArithmeticError(f"{name} of a continued fit is not finite")
    if hasattr(model, "_training"):
        with contextlib.suppress(ValueError):
            model.partial_fit(data.X[:2], data.y[:2])


def _rows(n_features: int) -> Any:
    if n_features <= DENSE_COLUMNS:
        return np.ones((3, n_features))
    return sp.csr_matrix((np.ones(2), [0, n_features - 1], [0, 1, 1, 2]), shape=(3, n_features))


def _read_svmlight(path: Path) -> bool:
    """By both parsers, which must agree."""
    found = []
    for small_bytes in (2**18, 0):
        svmlight._SMALL_BYTES = small_bytes
        for queries in (False, True):
            found.append(_outcome(lambda with_queries=queries: load_svmlight(path, query_id=with_queries)))
    for plain, compiled in zip(found[:2], found[2:], strict=True):
        if plain != compiled:
            raise AssertionError(f"the parsers disagree: {plain} and {compiled}")
    _read_table(path)
    return not isinstance(found[0], str)


def _outcome(read_file: Any) -> Any:
    """What was read, in a form that can be compared; or the message."""
    try:
        X, *rest = read_file()
    except SoftmarginError as error:
        return str(error)
    parts = (X.data, X.indices, X.indptr, *rest)
    return [X.shape, *(np.asarray(part).tobytes() for part in parts)]


def _read_table(path: Path) -> bool:
    label = {".npy": -1}.get(path.suffix)
    results = [
        _succeeds(lambda: _touch(load_table(path))),
        _succeeds(lambda: _touch(load_table(path, label=label, query_id=True))),
    ]
    return any(results)


def _touch(table: Any) -> None:
    """Everything that was read is looked at: a memory map may end early."""
    np.asarray(table.X.data if sp.issparse(table.X) else table.X).sum()
    for part in (table.y, table.qid):
        if part is not None:
            part.tolist()


def _succeeds(action: Any) -> bool:
    try:
        action()
    except SoftmarginError:
        return False
    return True


def written(raw: bytes, example: Example, folder: Path) -> Path:
    path = folder / f"file{example.ending}"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(raw)
    return path
