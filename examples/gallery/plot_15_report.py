"""
A report for people
===================

A report tells somebody who did not train the model whether to trust it. It is one HTML page that needs no network, with
the verdict of the judge, charts, measures on the rows that are given, and warnings about them.
"""

# sphinx_gallery_thumbnail_path = 'pictures/report.png'
import textwrap

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from softmargin import LinearSVC, MarginDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = LinearSVC(C=1.0, tol=1e-4).fit(X[::2], y[::2])
report = model.report(X[1::2], y[1::2])

# %%
# ``report.save("report.html")`` writes the page. In a notebook it is shown where it stands last in a cell, as here:

report

# %%
# The same is there as Markdown:

for line in report.markdown.splitlines()[:5]:
    print(textwrap.fill(line, 90))

# %%
# The margins of the training rows are one of its charts. Here they are drawn by matplotlib:

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
MarginDisplay.from_estimator(model, X[::2], y[::2], ax=axes)
