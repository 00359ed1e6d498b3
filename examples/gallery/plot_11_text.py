"""
Text: many words, sparse rows
=============================

Texts as counts of words have few entries of very many columns. Sparse matrices are used in place, without a dense copy.
The texts here are made up: 20,000 of them, from 50,000 words that are as unequally frequent as those of a language.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix

from softmargin import LinearSVC, MarginDisplay

N_TEXTS, N_WORDS, LENGTH = 20_000, 50_000, 60
rng = np.random.default_rng(0)
frequency = 1.0 / np.arange(1, N_WORDS + 1)
topics = []
for _ in range(2):  # both topics use all words, but some of them more and others less
    shares = frequency * np.exp(0.4 * rng.standard_normal(N_WORDS))
    topics.append(np.cumsum(shares / shares.sum()))
y = rng.integers(0, 2, N_TEXTS)
drawn = rng.random((N_TEXTS, LENGTH))
words = np.where(y[:, None] == 1, np.searchsorted(topics[1], drawn), np.searchsorted(topics[0], drawn))
words = np.minimum(words, N_WORDS - 1)
X = csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, LENGTH)), (N_TEXTS, N_WORDS))
X.sum_duplicates()
X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr()  # every text has the length 1

half = N_TEXTS // 2
model = LinearSVC(C=1.0).fit(X[:half], y[:half])
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} different ones a text")
print(f"solved by: {model.solver_}")
print(f"{model.status_.name}, accuracy on new texts {model.score(X[half:], y[half:]):.3f}")

# %%
# On the left the margins of the training texts. On the right the weights, from the most frequent word to the rarest:
# what a frequent word says is known best.

figure, pair = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
MarginDisplay.from_estimator(model, X[:half], y[:half], ax=pair[0])
pair[1].semilogx(np.arange(1, N_WORDS + 1), model.coef_[0], ".", markersize=2)
pair[1].set(xlabel="word, by frequency", ylabel="weight")
