"""
A curved boundary
=================

``SVC`` draws curved boundaries by a kernel. The rows that the boundary depends on are its support vectors. Free ones
lie exactly on the margin; bounded ones lie inside it, or on the wrong side.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from softmargin import SVC

X, y = make_moons(300, noise=0.2, random_state=3)
model = SVC(C=10.0, gamma=1.0, tol=1e-5).fit(X, y)
at_bound = np.isclose(np.abs(model.dual_coef_[0]), model.C)
print(f"{model.status_.name}: the relative gap is at most {model.tol}:", model.certificate_.relative_gap <= model.tol)
print(f"{(~at_bound).sum()} free and {at_bound.sum()} bounded support vectors of {len(X)} rows")

# %%
# The solid line is the boundary, the dashed ones are the margin. The rings are support vectors: those of the free ones
# lie on the dashed lines.

xs, ys = np.meshgrid(np.linspace(-1.8, 2.8, 150), np.linspace(-1.3, 1.8, 120))
scores = model.decision_function(np.column_stack([xs.ravel(), ys.ravel()])).reshape(xs.shape)
figure, axes = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
axes.contourf(xs, ys, scores, levels=[-99, 0, 99], colors=["C0", "C1"], alpha=0.12)
axes.contour(xs, ys, scores, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"], linewidths=1)
axes.scatter(*X.T, c=np.where(y == 1, "C1", "C0"), s=14)
for kind, color, name in ((~at_bound, "black", "free"), (at_bound, "0.6", "bounded")):
    axes.scatter(*X[model.support_[kind]].T, s=70, facecolors="none", edgecolors=color, label=f"{name} support vectors")
axes.legend(fontsize="small", loc="upper right")
axes.set(xticks=[], yticks=[])
