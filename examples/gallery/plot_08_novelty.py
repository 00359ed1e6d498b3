"""
Find what is unusual
====================

``OneClassSVM`` learns what is usual from rows of one kind, here benign tumours, and finds rows that are not. ``nu`` is
about the share of the training rows that may lie outside.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import NoveltyDisplay, OneClassSVM

X, y = load_breast_cancer(return_X_y=True)
benign, malignant = X[y == 1], X[y == 0]
seen, unseen = benign[:250], benign[250:]

model = make_pipeline(StandardScaler(), OneClassSVM(nu=0.05, gamma=0.01)).fit(seen)
certificate = model[-1].certificate_
print(f"Trained on {len(seen)} benign tumours; {(model.predict(seen) == -1).mean():.0%} of them lie outside")
print(f"  the optimum is between {certificate.dual:.3f} and {certificate.primal:.3f}")
print(f"  new benign tumours found novel  {(model.predict(unseen) == -1).mean():.0%} of {len(unseen)}")
print(f"  malignant tumours found novel   {(model.predict(malignant) == -1).mean():.0%} of {len(malignant)}")

# %%
# The scores of rows that the model has not seen. Those to the left of the dashed line are found novel.

kinds = np.repeat(["benign", "malignant"], [len(unseen), len(malignant)])
NoveltyDisplay.from_estimator(model, np.concatenate([unseen, malignant]), kinds)
