"""
Data larger than memory
=======================

A store is a folder of rows in binary chunks. Linear models train on it chunk by chunk, with the same certificate as on
arrays.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from softmargin import ConvergenceDisplay, LinearSVC, Store


def batches():
    """Rows as a program reads or computes them: one batch after the other, never all at once."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(50)
    for _ in range(8):
        X = rng.standard_normal((5000, 50)).astype(np.float32)
        yield X, np.where(X @ w + rng.standard_normal(5000) > 0, 1, -1)


folder = TemporaryDirectory()
store = Store.write(Path(folder.name) / "train.store", batches(), chunk_bytes=2**20)
print(f"{len(store.y)} rows in chunks of one MiB")

model = LinearSVC(C=0.01, tol=1e-5).fit(store)
print(model.solver_)
print(f"{model.status_.name}, accuracy {(model.predict(store) == store.y).mean():.2f}")

# %%
# An iteration reads all rows twice. The picture shows how many of them it took.

figure, pair = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
ConvergenceDisplay.from_estimator(model, against="iterations", ax=pair)
pair[0].set_xlabel("iteration")

# %%
# The rows are no longer needed.

folder.cleanup()
