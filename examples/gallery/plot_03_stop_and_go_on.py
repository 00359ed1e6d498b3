"""
Stop, and go on
===============

A fit that is stopped by a limit, or by Ctrl-C, keeps the best model so far with its certificate. With
``warm_start=True`` the next fit goes on exactly where the last one stopped.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import MaxAbsScaler

from softmargin import ConvergenceWarning, LinearSVC

X, y = load_digits(return_X_y=True)
X, y = MaxAbsScaler().fit_transform(X), y == 8

model = LinearSVC(C=1.0, solver="ocas", tol=1e-6, warm_start=True, max_iter=10)
ends, gaps = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # it says that the limit came first, as it is meant to here
    while not ends or model.certificate_.relative_gap > model.tol:
        model.fit(X, y)
        ends.append(model.n_iter_)
        gaps.append(model.certificate_.relative_gap)
print(f"{len(ends)} fits, {ends[-1]} iterations in all: {model.status_.name}")

# %%
# The model is the same, bit for bit, as that of a single fit without a limit.

whole = LinearSVC(C=1.0, solver="ocas", tol=1e-6).fit(X, y)
print("same weights:", bool((whole.coef_ == model.coef_).all()))

# %%
# What the judge has proven at the end of each fit:

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.semilogy(ends, gaps, "o-")
axes.axhline(model.tol, color="0.5", linestyle="--")
axes.annotate("tol", (ends[0], model.tol), xytext=(0, 4), textcoords="offset points", color="0.4")
axes.set(xlabel="iterations so far", ylabel="relative gap")
