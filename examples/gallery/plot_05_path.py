"""
A path over C
=============

``c_path`` returns a fitted and certified model for each C. A large C fits the training rows more closely, at the price
of larger weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, c_path

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data), data.target
models = c_path(LinearSVC(), X, y, np.logspace(-4, 1, 26))
worst = max(model.certificate_.relative_gap for model in models)
print(f"{len(models)} models, the largest relative gap is {worst:.0e}")

# %%
# The weights of the features against C. The five largest at the right end have their names.

weights = np.array([model.coef_[0] for model in models])
Cs = [model.C for model in models]
named = np.argsort(-np.abs(weights[-1]))[:5]
figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for k in range(weights.shape[1]):
    is_named = k in named
    label = str(data.feature_names[k]) if is_named else None
    axes.semilogx(Cs, weights[:, k], color=None if is_named else "0.8", zorder=2 if is_named else 1, label=label)
axes.set(xlabel="C", ylabel="weight of the scaled feature")
axes.legend(fontsize="small")
