"""
Choose C, and gamma
===================

``LinearSVCCV`` and ``SVCCV`` choose their parameters by cross-validation. All folds share one copy of the data, and
each fit begins where the one for the next smaller C ended. Every one of the fits has a certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from softmargin import SVCCV, LinearSVCCV, RegularizationPathDisplay

# Two half circles in two of ten measurements; the other eight are noise.
X, y = make_moons(600, noise=0.25, random_state=0)
X = np.hstack([X, 0.5 * np.random.default_rng(0).standard_normal((len(X), 8))])
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

searches = LinearSVCCV(Cs=13), SVCCV(Cs=np.logspace(-2, 3, 11), gammas=[0.03, 0.1, 0.3])
for search in searches:
    search.fit(X_train, y_train)
    print(f"{type(search).__name__}: C = {search.C_:.3g}, accuracy {search.best_score_:.3f} over the folds")
    print(f"  {search.scores_.size} fits, the largest relative gap is {search.relative_gaps_.max():.0e}")
    print(f"  test accuracy {search.score(X_test, y_test):.3f}")

# %%
# Above the linear model, below the kernel model with three values of gamma. The dashed line marks the best C. Where the
# score is flat, the smaller C is the safer choice.

figure, grid = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
for search, axes in zip(searches, grid, strict=True):
    RegularizationPathDisplay.from_estimator(search, ax=axes)
    axes[0].set_ylabel(f"accuracy of {type(search).__name__}")
