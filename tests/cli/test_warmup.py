"""`softmargin warmup` leaves nothing to compile."""

import json
import os
import subprocess
import sys

# Fits as users make them, in shapes of their own; prints the compiled functions that were not in the cache.
FITS = """
import sys, warnings
import numpy as np
from numba.core import event
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
import softmargin
X, y = load_iris(return_X_y=True)
warnings.simplefilter("ignore")
joint = softmargin.LinearSVC(multi_class="crammer_singer", intercept="penalised")
with event.install_recorder("numba:compile") as recorder:
    for Z in (X, X.astype(np.float32), csr_matrix(X), csr_matrix(X.astype(np.float32))):
        for model in (softmargin.LinearSVC(), joint, softmargin.SVC(), softmargin.OrdinalSVC(), softmargin.RankSVM()):
            model.fit(Z, y).predict(Z)
        for model in (softmargin.LinearSVR(), softmargin.SVR(), softmargin.LinearSVC(loss="squared_hinge")):
            model.fit(Z, y).predict(Z)
        for model in (softmargin.OneClassSVM(), softmargin.LinearOneClassSVM()):
            model.fit(Z).predict(Z)
    many = np.random.default_rng(0).standard_normal((2500, 5))
    for Z in (many, csr_matrix(np.where(many > 1.0, many, 0.0))):
        softmargin.SVC().fit(Z, many[:, 0] > 0.0)
        softmargin.SVC().fit(Z, np.digitize(many[:, 0], [-1.0, 1.0]))
        softmargin.SVR().fit(Z, many[:, 0])
print([str(found.data["dispatcher"]) for _, found in recorder.buffer if found.is_start])
"""


def test_after_warming_up_fits_compile_nothing(start):
    """Both in processes of their own, with the cache that all tests share."""
    out, told = start("warmup", "--json").communicate(timeout=900)
    found = json.loads(out)
    assert told == b""
    assert found["functions"] > 50
    assert os.path.isdir(found["cache"])
    done = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
