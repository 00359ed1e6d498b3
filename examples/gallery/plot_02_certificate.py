"""
The certificate
===============

A fit minimises an objective. The certificate holds the value that was reached (``primal``) and a bound that no model
can go below on these data (``dual``). The optimum lies between the two, so that their difference, the gap, says how
much there can still be to gain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC as SklearnLinearSVC

from softmargin import ConvergenceDisplay, LinearSVC, certify

X, y = load_digits(return_X_y=True)
X, y = MaxAbsScaler().fit_transform(X), y == 8
model = LinearSVC(C=1.0, solver="ocas", tol=1e-6).fit(X, y)
print(f"primal {model.certificate_.primal:.5f}, bound {model.certificate_.dual:.5f}")

# %%
# The judge that computes these figures knows the data and the model only. It can be asked again, also about the models
# of scikit-learn.

other = SklearnLinearSVC(loss="hinge", C=1.0, max_iter=100_000, random_state=0).fit(X, y)
print(f"this model, judged once more: relative gap {certify(model, X, y).relative_gap:.0e}")
print(f"the model of scikit-learn:    relative gap {certify(other, X, y).relative_gap:.0e}")

# %%
# On the left the objective falls and the bound rises until they meet. On the right the gap between them is drawn on a
# log scale, with the tolerance at which the fit ends.

figure, pair = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
ConvergenceDisplay.from_estimator(model, against="iterations", ax=pair)
pair[0].set_xlabel("iteration")
