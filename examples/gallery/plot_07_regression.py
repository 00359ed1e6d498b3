"""
Predict numbers
===============

``LinearSVR`` fits a straight model and ``SVR`` a curved one. Errors up to ``epsilon`` cost nothing, larger ones what
they exceed it by, so that single wild rows pull less than with squared errors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import SVR, LinearSVR, ResidualDisplay

# A number that depends on five of ten measurements, in curves and products, with noise of standard deviation 1.
X, y = make_friedman1(1000, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

models = [
    make_pipeline(StandardScaler(), estimator).fit(X_train, y_train)
    for estimator in (LinearSVR(C=1.0, epsilon=0.5), SVR(C=10.0, epsilon=0.5))
]
for model in models:
    name, certificate = type(model[-1]).__name__, model[-1].certificate_
    print(f"{name}: R2 {model.score(X_test, y_test):.3f} on held-out rows")
    print(f"  the optimum is between {certificate.dual:.1f} and {certificate.primal:.1f}")

# %%
# Errors on held-out rows against the prediction. Those of the straight model bend, which shows that there is something
# it cannot follow; those of the curved model do not.

figure, pair = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for model, axes in zip(models, pair, strict=True):
    ResidualDisplay.from_estimator(model, X_test, y_test, ax=axes)
    axes.set_xlabel(f"prediction of {type(model[-1]).__name__}")
    axes.label_outer()
