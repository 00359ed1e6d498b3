"""`load_predictor`: a model file as something that predicts, and nothing else. NumPy is all it needs.

Rows may also be a scipy.sparse matrix, for which scipy is there already. Everything is computed in float64.
"""

import os
from collections.abc import Iterator
from reprlib import repr as shown
from typing import Any

import numpy as np

from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.io.model_file import read_model
from softmargin.io.record import ModelRecord
from softmargin.prediction.calibration import probabilities
from softmargin.prediction.expansion import expanded
from softmargin.prediction.labels import finite_scores
from softmargin.prediction.machine import LinearMap, Machine
from softmargin.prediction.transforms import keeps_zeros, transformed, transformed_csr

_BLOCK = 1 << 21  # entries of sparse rows that are made dense at a time, where a scaler moves the zeros


class Predictor:
    """A model that predicts without scikit-learn, the compiler and scipy; `softmargin.load_predictor` makes it.

    It predicts what the model and what was saved around it, scalers and a calibration, predict together.

    Attributes
    ----------
    kind : str
        The name of the estimator, such as "LinearSVC".
    classes_ : ndarray or None
        The labels that `predict` may return; None for regressions and rankings, which predict numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str or None
        The names of the columns, if the model was trained on a data frame.
    has_probabilities : bool
        Whether a calibration was saved with the model, so that there is `predict_proba`.

    Examples
    --------
    >>> import softmargin
    >>> model = softmargin.LinearSVC().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> softmargin.save(model, "levels.softmargin")  # doctest: +SKIP
    >>> softmargin.load_predictor("levels.softmargin").predict([[0.5]])  # doctest: +SKIP
    array(['low'], dtype='<U4')
    """

    def __init__(self, record: ModelRecord) -> None:
        self._machine = Machine.of(record)
        self._steps, self._calibration = record.transform, record.calibration
        self._keeps_zeros = keeps_zeros(self._steps)
        self.kind = record.kind
        self.classes_ = self._machine.classes
        self.n_features_in_ = self._machine.n_features
        self.feature_names_in_: np.ndarray | None = record.arrays.get("feature_names_in_")
        self.has_probabilities = self._calibration is not None
        names = self.feature_names_in_
        if names is not None and names.size != self.n_features_in_:
            raise ModelFileError(f"there are {names.size} names for {self.n_features_in_} features.")
        for step in self._steps:
            for name, array in step.arrays.items():
                if array.size != self.n_features_in_:
                    raise ModelFileError(
                        f"{name} of {step.kind} has {array.size} values for {self.n_features_in_} features."
                    )

    def __repr__(self) -> str:
        steps = "".join(f"{step.kind} -> " for step in self._steps)
        end = f" -> {self._calibration.method} calibration" if self._calibration is not None else ""
        return f"<Predictor: {steps}{self.kind}{end}, {self.n_features_in_} features>"

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row; of a regression or a ranking its number.

        With a calibration the label is the most probable class, as CalibratedClassifierCV has it.
        """
        if self._calibration is not None:
            assert self.classes_ is not None
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self._machine.labels(self._columns(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each row, or of each row and class; of a regression or a ranking what `predict` returns."""
        return self._machine.decisions(self._columns(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """A probability for each row and class, if the model was saved with a calibration."""
        if self._calibration is None:
            raise SoftmarginError(
                "this model has no probabilities: save a CalibratedClassifierCV(model, ensemble=False) around it, or "
                "use decision_function."
            )
        return probabilities(self.decision_function(X), self._calibration)

    def _columns(self, X: Any) -> np.ndarray:
        """The columns of the linear map or of the expansion, for all rows."""
        rows = self._checked(X)
        return finite_scores(np.concatenate([self._computed(block) for block in self._blocks(rows)]))

    def _computed(self, rows: Any) -> np.ndarray:
        function = self._machine.function
        with np.errstate(over="ignore", invalid="ignore"):  # `finite_scores` finds what came of it
            if isinstance(function, LinearMap):
                return np.asarray(rows @ function.coef.T + function.intercept, dtype=np.float64)
            return np.asarray(expanded(function, rows), dtype=np.float64)

    def _blocks(self, rows: Any) -> Iterator[Any]:
        """The rows behind the scalers: at once, unless sparse rows become dense."""
        if not hasattr(rows, "indptr"):
            yield transformed(rows, self._steps)
        elif self._keeps_zeros:
            yield transformed_csr(rows, self._steps)
        else:
            step = max(1, _BLOCK // self.n_features_in_)
            for low in range(0, max(rows.shape[0], 1), step):
                yield transformed(rows[low : low + step].toarray(), self._steps)

    def _checked(self, X: Any) -> Any:
        """X as a float64 array or a CSR matrix, with the columns that the model was trained on and finite values."""
        self._check_names(X)
        if hasattr(X, "tocsr"):
            rows = X.tocsr()
            values = rows.data
        else:
            values = rows = _as_numbers(X)
        if rows.ndim != 2:
            raise SoftmarginError(
                f"X must be a matrix with two dimensions, but it has {rows.ndim}. Use [x] for a single row x."
            )
        if rows.shape[1] != self.n_features_in_:
            raise SoftmarginError(
                f"X has {rows.shape[1]} features, but the model was trained on {self.n_features_in_}."
            )
        if not np.isfinite(values).all():
            raise SoftmarginError("X holds NaN or infinity: fill in or leave out rows with missing values.")
        return rows

    def _check_names(self, X: Any) -> None:
        """Whether a data frame has the columns of the training, in their order."""
        columns, names = getattr(X, "columns", None), self.feature_names_in_
        if columns is None or names is None:
            return
        found, wanted = list(columns), names.tolist()
        if found == wanted:
            return
        if missing := [name for name in wanted if name not in found]:
            raise SoftmarginError(f"X lacks columns that the model was trained on: {shown(missing)}.")
        if strange := [name for name in found if name not in wanted]:
            raise SoftmarginError(f"X has columns that the model does not know: {shown(strange)}.")
        raise SoftmarginError("the columns of X are in another order than in training: use X[model.feature_names_in_].")


def _as_numbers(X: Any) -> np.ndarray:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise SoftmarginError("X holds something else than numbers, or rows of different lengths.") from None


def load_predictor(path: Any) -> Predictor:
    """What predicts with the model in a file, without scikit-learn, the compiler and scipy.

    Parameters
    ----------
    path : str or path
        A file that `softmargin.save`, `save` of an estimator or `softmargin train` wrote, or a model file of LIBLINEAR
        or LIBSVM.

    Returns
    -------
    Predictor
        It has `predict`, `decision_function` and, if the model was calibrated, `predict_proba`.

    Raises
    ------
    ModelFileError
        The file is damaged, of another format, or from a newer version. Loading never runs code from the file.
    """
    record = read_model(path)
    try:
        return Predictor(record)
    except SoftmarginError as error:
        raise ModelFileError(f"{os.fsdecode(path)}: {str(error).removesuffix('.')}.") from None
