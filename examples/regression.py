"""Predict numbers: a straight model and a curved one on the same rows, their proofs, and a picture of their errors."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SVR, LinearSVR, ResidualDisplay


def main(folder: Path = Path("demo")) -> None:
    # A number that depends on five of ten measurements, in curves and products, with noise of standard deviation 1.
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    figure, pair = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for estimator, axis in zip((LinearSVR(C=1.0, epsilon=0.5), SVR(C=10.0, epsilon=0.5)), pair, strict=True):
        model = make_pipeline(StandardScaler(), estimator).fit(X_train, y_train)
        name, certificate = type(estimator).__name__, estimator.certificate_
        print(f"{name}: R2 {model.score(X_test, y_test):.3f} on held-out rows")
        print(f"  the optimum is between {certificate.dual:.1f} and {certificate.primal:.1f}")
        ResidualDisplay.from_estimator(model, X_test, y_test, ax=axis)
        axis.set_xlabel(f"prediction of {name}")
        axis.label_outer()

    picture = folder / "residuals.png"
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=90)
    print(f"residuals: {picture}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
