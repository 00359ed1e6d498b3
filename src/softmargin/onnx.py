"""Models as ONNX graphs, for ONNX Runtime and whatever else reads them; needs the extra `onnx`.

    from softmargin.onnx import to_onnx

    with open("model.onnx", "wb") as file:
        file.write(to_onnx(model).SerializeToString())

The graph is made of plain operators on float64, so that its labels and scores are those of the model.
"""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError

__all__ = ["register", "to_onnx"]


def to_onnx(model: Any, *, dtype: Any = np.float64) -> Any:
    """A fitted model as an ONNX `ModelProto`.

    Parameters
    ----------
    model : estimator
        Any estimator of softmargin, a `Pipeline` of scikit-learn's plain scalers and one (`softmargin.save` names
        them), `CalibratedClassifierCV` around either, or a search, whose best model is taken.
    dtype : float64 or float32, default=float64
        The type of the input `X`, which has the shape (rows, features). Everything is computed in float64.

    Returns
    -------
    onnx.ModelProto
        The outputs are `label` and `scores` of classifiers and one-class models (`scores` is the decision function,
        with one column for two classes), and `probabilities` if the model is calibrated; `prediction` of regressions
        and rankings. A calibration with one model for each fold has no `scores`. Labels are int64, float64 or strings.
        The certificate and the names of the features are among the model's metadata.

    Raises
    ------
    SoftmarginError
        The model has a kernel that is a function, or a step that is not known.
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise SoftmarginError("to_onnx needs the package onnx: pip install 'softmargin[onnx]'.") from None
    from softmargin.estimators.stored.parts import records_of
    from softmargin.export.onnx_graph import onnx_model

    return onnx_model(records_of(model), dtype)


def register() -> None:
    """Tell skl2onnx about softmargin's estimators, so that it converts pipelines with steps of others around them.

    Call it once, before `skl2onnx.to_onnx`. Classifiers have the options `zipmap` (by default a dictionary for each
    row, from label to score; False gives an array, "columns" one output for each class), `nocl` (True: the label is the
    position of the class) and `raw_scores` (True: the decision function, also of a calibrated model; with
    ``zipmap=False`` two classes have one column then, and otherwise two). Searches stand for their best model.
    `LowRankMap` and `CalibratedClassifierCV` around our estimators are converted by us, too.
    """
    try:
        import skl2onnx  # noqa: F401
    except ImportError:
        raise SoftmarginError("register needs the package skl2onnx: pip install skl2onnx.") from None
    from softmargin.export.converters import register_all

    register_all()
