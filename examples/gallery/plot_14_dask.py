"""
Rows on a Dask cluster
======================

``softmargin.dask`` trains where the rows are: partitions stay on their workers, and what travels are weight vectors.
The result is an ordinary model. Here the cluster is one process, so that the example runs anywhere.
"""

import dask.array as da
import matplotlib.pyplot as plt
from dask.distributed import Client

from softmargin import ConvergenceDisplay
from softmargin.dask import LinearSVC

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
rng = da.random.default_rng(0)
X = rng.standard_normal((20_000, 10), chunks=(2500, 10)).persist()
y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(20_000, chunks=2500) > 0.5).astype(int)

model = LinearSVC(C=0.01, tol=1e-4).fit(X, y.persist())
print(f"{X.npartitions} partitions: {model.status_.name}")
print(f"accuracy {float((model.predict(X) == y).mean().compute()):.2f}")
client.close()

# %%
# The judge worked on the cluster, too: objective and bound meet as they do in one process.

figure, pair = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
ConvergenceDisplay.from_estimator(model, against="iterations", ax=pair)
pair[0].set_xlabel("iteration")
