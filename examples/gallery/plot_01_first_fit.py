"""
A first fit
===========

``LinearSVC`` is used like scikit-learn's. What is new is what a fit leaves behind: a status, which says how it ended,
and a certificate, which says how good the result is.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, MarginDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), LinearSVC(C=0.1)).fit(X_train, y_train)
svc = model[-1]
print(svc.status_)
print(f"the optimum is between {svc.certificate_.dual:.4f} and {svc.certificate_.primal:.4f}")
print(f"accuracy on new rows {model.score(X_test, y_test):.3f}")

# %%
# The picture shows how far inside its class each training row lies. Rows to the left of 1 are the support vectors: they
# cost something, and the model depends on them alone. Rows to the left of 0 are misclassified.

MarginDisplay.from_estimator(svc, model[0].transform(X_train), y_train)
