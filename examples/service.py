"""A prediction service around a model file: rows by the names of their features in, labels and scores out.

    pip install fastapi uvicorn
    python -c "import examples.service as s; s.train('cancer.softmargin')"
    SOFTMARGIN_MODEL=cancer.softmargin uvicorn --factory examples.service:service

The service needs NumPy, FastAPI and softmargin; scikit-learn and Numba are not imported. A model file holds no code, so
that one from elsewhere can do nothing but predict wrongly.
"""

import os
from pathlib import Path
from reprlib import repr as shown

from fastapi import FastAPI, HTTPException

import softmargin

MAX_ROWS = 10_000  # of one request


def service(path: str | Path | None = None) -> FastAPI:
    """The application; without a path the environment names the file in SOFTMARGIN_MODEL."""
    path = path or os.environ.get("SOFTMARGIN_MODEL")
    if path is None:
        raise SystemExit("no model: set SOFTMARGIN_MODEL to the path of a model file")
    try:
        predictor = softmargin.load_predictor(path)
    except (OSError, softmargin.SoftmarginError) as error:
        raise SystemExit(f"the model cannot be loaded: {error}") from None
    names = predictor.feature_names_in_
    if names is None:
        raise SystemExit("the model does not know the names of its features: train it on a data frame")
    wanted = names.tolist()
    app = FastAPI(title=f"{predictor.kind}, {predictor.n_features_in_} features")

    @app.get("/model")
    def model() -> dict:
        classes = None if predictor.classes_ is None else predictor.classes_.tolist()
        return {"estimator": predictor.kind, "features": wanted, "classes": classes}

    @app.post("/predict")
    def predict(rows: list[dict[str, float]]) -> dict:
        if not 1 <= len(rows) <= MAX_ROWS:
            raise HTTPException(422, f"send 1 to {MAX_ROWS} rows, not {len(rows)}")
        for k, row in enumerate(rows):
            missing, strange = sorted(set(wanted) - row.keys()), sorted(row.keys() - set(wanted))
            if missing or strange:
                found = f"missing features {shown(missing)}, unknown features {shown(strange)}"
                raise HTTPException(422, f"row {k}: {found}")
        X = [[row[name] for name in wanted] for row in rows]
        try:
            answer = {
                "labels": predictor.predict(X).tolist(),
                "scores": predictor.decision_function(X).tolist(),
            }
            if predictor.has_probabilities:
                answer["probabilities"] = predictor.predict_proba(X).tolist()
        except softmargin.SoftmarginError as error:
            raise HTTPException(422, str(error)) from None
        return answer

    return app


def train(path: str | Path) -> None:
    """A model to try the service with: calibrated, with its scaler, from a data frame."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_breast_cancer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    calibrated = CalibratedClassifierCV(softmargin.LinearSVC(), ensemble=False)
    softmargin.save(make_pipeline(StandardScaler(), calibrated).fit(X, y), path)
