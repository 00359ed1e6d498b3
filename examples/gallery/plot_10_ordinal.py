"""
Ordered labels
==============

Labels such as stars have an order, which a classifier ignores. ``OrdinalSVC`` learns one score and cuts it into classes
by ascending thresholds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, OrdinalSVC

X, y = load_diabetes(return_X_y=True)
X, grade = StandardScaler().fit_transform(X), np.digitize(y, [100, 150, 220])
model = OrdinalSVC(C=0.1, thresholds="all").fit(X[:300], grade[:300])
plain = LinearSVC(C=0.1).fit(X[:300], grade[:300])
for name, labels in (("OrdinalSVC", model.predict(X[300:])), ("LinearSVC", plain.predict(X[300:]))):
    print(f"{name:10s} off by {np.abs(labels - grade[300:]).mean():.2f} grades on average")

# %%
# The scores of new patients of each grade, side by side. The lines are the thresholds: a score above two of them has
# the label 2.

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
scores = model.predict_score(X[300:])
rng = np.random.default_rng(0)
for k in range(4):
    own = scores[grade[300:] == k]
    axes.scatter(own, k + rng.uniform(-0.25, 0.25, own.size), s=14)
for threshold in model.thresholds_:
    axes.axvline(threshold, color="0.5", linestyle="--", linewidth=1)
axes.set(xlabel="score", ylabel="true grade", yticks=range(4))
