"""Train on real data, print the proof and the accuracy, and draw how the gap closed."""

import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import ConvergenceDisplay, LinearSVC, certify


def main(folder: Path = Path("demo")) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = make_pipeline(StandardScaler(), LinearSVC(C=1.0, tol=1e-6))
    model.fit(X_train, y_train)

    scaler, svc = model[0], model[-1]
    certificate = svc.certificate_
    print(f"Breast cancer, {X_train.shape[0]} rows, {X_train.shape[1]} features: {svc.n_iter_} iterations of OCAS")
    print(f"  {svc.status_}")
    print(f"  primal value        {certificate.primal:.8f}")
    print(f"  dual lower bound    {certificate.dual:.8f}")
    print(f"  relative gap        {certificate.relative_gap:.1e}   (asked for: {svc.tol:.0e})")
    again = certify(svc, scaler.transform(X_train), y_train)
    print(f"  judged once more    {again.relative_gap:.1e}   (from the data and the model alone)")
    print(f"  test accuracy       {model.score(X_test, y_test):.3f}")

    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("\nInstall softmargin[plot] to see the convergence plot.")
        return
    picture = folder / "convergence.png"
    picture.parent.mkdir(exist_ok=True)
    figure, pair = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    ConvergenceDisplay.from_estimator(svc, against="iterations", ax=pair)
    pair[0].set_xlabel("iteration")
    figure.savefig(picture, dpi=90)
    print(f"\nConvergence plot: {picture}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
