"""Choose C by cross-validation: a linear model and a kernel model, with the proofs of all fits, and a picture."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from softmargin import SVCCV, LinearSVCCV, RegularizationPathDisplay


def main(folder: Path = Path("demo")) -> None:
    # Two half circles in two of ten measurements; the other eight are noise.
    X, y = make_moons(600, noise=0.25, random_state=0)
    X = np.hstack([X, 0.5 * np.random.default_rng(0).standard_normal((len(X), 8))])
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    figure, grid = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    searches = (LinearSVCCV(Cs=13), SVCCV(Cs=np.logspace(-2, 3, 11), gammas=[0.03, 0.1, 0.3]))
    for search, axes in zip(searches, grid, strict=True):
        search.fit(X_train, y_train)
        name = type(search).__name__
        print(f"{name}: C = {search.C_:.3g}, accuracy {search.best_score_:.3f} over the folds")
        print(f"  {search.scores_.size} fits, the largest relative gap is {search.relative_gaps_.max():.0e}")
        print(f"  test accuracy {search.score(X_test, y_test):.3f}")
        RegularizationPathDisplay.from_estimator(search, ax=axes)
        axes[0].set_ylabel(f"accuracy of {name}")

    picture = folder / "choose_C.png"
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=90)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
