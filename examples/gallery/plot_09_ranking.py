"""
Rank
====

``RankSVM`` learns scores that put rows in order. Only rows of the same query are compared. Here a query is a decade of
age: who of the patients of the same age will be worse off in a year?
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from softmargin import RankingDisplay, RankSVM, c_path

X, y = load_diabetes(return_X_y=True, scaled=False)
age = X[:, 0] // 10
grade = np.digitize(y, [100, 200])  # three grades: the higher, the worse
is_seen = np.arange(len(y)) % 3 > 0
X = StandardScaler().fit(X[is_seen]).transform(X)

models = c_path(RankSVM(), X[is_seen], grade[is_seen], np.logspace(-2, 4, 13), qid=age[is_seen])
best = max(models, key=lambda model: model.score(X[~is_seen], grade[~is_seen], qid=age[~is_seen]))
print(f"{len(models)} models, all proven:", all(model.certificate_.relative_gap <= model.tol for model in models))
print(f"{best.score(X[~is_seen], grade[~is_seen], qid=age[~is_seen]):.3f} of the new pairs are in order")

# %%
# Two measures of the order of new rows against C: the share of the pairs in order, and NDCG, which looks at the first
# five places of each query. A ring marks the best value.

display = RankingDisplay.from_estimators(models, X[~is_seen], grade[~is_seen], qid=age[~is_seen], k=5)
