"""Two-class problems with the C and gamma of an RBF kernel, float64 as a user has them.

spambase              standardised; sigma = 10, C = 50                                       dense    HMG paper
connect-4             42 values in {-1, 0, 1}, no draws, a half; sigma = 1.5, C = 4.5        CSR      HMG paper
mnist 10k, 20k, 60k   digits 0 to 4 against 5 to 9, pixels 0 to 255; sigma = 3500, C = 50    dense    HMG paper
a9a, w7a, w8a         as they are; C = 1, gamma = 0.05                                       CSR
letter G              the first 15,000 rows, values / 15; C = 10, gamma = 1                  dense
usps 0                zeros against the other digits; C = 10, gamma = 1 / 128                dense
covtype 50k           class 2 against the rest, every feature in [0, 1]; C = 10, gamma = 1   dense
covtype 20k, 10       the same with the first ten columns: few features, many SV; gamma = 10 dense

The HMG paper's kernel is exp(-|x - z|^2 / (2 sigma^2)), so that gamma = 1 / (2 sigma^2). The rows of connect-4 and
covtype are drawn with a fixed seed, those of mnist are the first of the file, which is in no order.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import files
from benchmarks.datasets.files import DataFile
from benchmarks.datasets.problems import Problem

files.FILES.update(
    {
        "spambase": DataFile(
            "spambase/spambase.xz",
            57,
            "Spambase: 4,601 rows, 57 raw features, label +1 for spam",
            "UCI Machine Learning Repository, data set 'Spambase'",
        ),
        "connect-4": DataFile(
            "connect-4/connect-4.xz",
            126,
            "Connect-4: 67,557 rows, one-hot (blank, o, x) of the 42 fields; labels 1, -1 and 0 (draw)",
            "UCI Machine Learning Repository, data set 'Connect-4'",
        ),
        "letter": DataFile(
            "letter/letter.raw.xz",
            16,
            "Letter Recognition: 20,000 rows, 16 features 0 to 15, labels 1 to 26",
            "UCI Machine Learning Repository, data set 'Letter Recognition'",
        ),
        "usps": DataFile(
            "usps/usps.train.xz",
            256,
            "USPS training digits: 7,291 rows, pixels -1 to 1, labels 0 to 9",
            "'zip.train' of Hastie, Tibshirani and Friedman, The Elements of Statistical Learning",
        ),
        "w7a": DataFile(
            "web/w7a.xz",
            300,
            "Web (w7a): 24,692 rows, 300 binary features",
            "the LIBSVM data page, 'w7a' (J. Platt's web pages)",
        ),
    }
)

MNIST_ROWS = {"mnist 10k": 10_000, "mnist 20k": 20_000, "mnist 60k": 60_000}
CONNECT_4_ROWS, LETTER_ROWS, COVTYPE_ROWS, FEW_COLUMNS_ROWS = 30_555, 15_000, 50_000, 20_000
FEW_COLUMNS = 10
FIELDS = 42
LETTER_G = 7
# C, gamma
SETTINGS = {
    "spambase": (50.0, 1 / (2 * 10.0**2)),
    "connect-4": (4.5, 1 / (2 * 1.5**2)),
    **dict.fromkeys(MNIST_ROWS, (50.0, 1 / (2 * 3500.0**2))),
    "a9a": (1.0, 0.05),
    "w7a": (1.0, 0.05),
    "w8a": (1.0, 0.05),
    "letter G": (10.0, 1.0),
    "usps 0": (10.0, 1 / 128),
    "covtype 50k": (10.0, 1.0),
    "covtype 20k, 10": (10.0, 10.0),
}
NAMES = tuple(SETTINGS)
SPARSE = ("connect-4", "a9a", "w7a", "w8a")
# Also measured as float32, dense: there oneDAL computes in float32 too.
SINGLE = ("spambase", "mnist 10k", "mnist 20k", "a9a", "w7a", "letter G", "usps 0", "covtype 20k, 10")


@dataclass(frozen=True)
class KernelProblem(Problem):
    """Data, labels (-1, +1), and the parameters of the machine."""

    C: float = 1.0
    gamma: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def rows(self, index: Any) -> "KernelProblem":
        """The problem on these rows alone."""
        return replace(self, X=self.X[index], y=self.y[index])

    def shuffled(self, seed: int) -> "KernelProblem":
        """The same rows in another order; seed 0 is the order they have."""
        return self if seed == 0 else self.rows(np.random.default_rng(seed).permutation(self.n_rows))

    def part(self, n: int) -> "KernelProblem":
        """`n` rows drawn with a fixed seed, all of them if there are no more."""
        return self.rows(np.sort(np.random.default_rng(0).permutation(self.n_rows)[:n]))

    def dense(self) -> "KernelProblem":
        return replace(self, storage="dense", X=self.X.toarray()) if sp.issparse(self.X) else self

    def single(self) -> "KernelProblem":
        """The same in float32, dense."""
        dense = self.dense()
        return replace(dense, X=dense.X.astype(np.float32))


def load_kernel(name: str) -> KernelProblem:
    """The problem `name`, in the storage that its file suggests."""
    if name not in SETTINGS:
        raise ValueError(f"kernel problem {name!r} is unknown: choose one of {', '.join(NAMES)}")
    C, gamma = SETTINGS[name]
    X, y = _data(name)
    if name not in SPARSE:
        X = X.toarray() if sp.issparse(X) else X
    return KernelProblem(name, "csr" if sp.issparse(X) else "dense", X, y, C=C, gamma=gamma)


def tiny_kernel(name: str, n: int = 400) -> KernelProblem:
    """Generated rows under this name, for smoke tests: a sphere in ten dimensions."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((n, 10)), 1)
    y = np.where((X**2).sum(axis=1) + rng.standard_normal(n) > 9.0, 1.0, -1.0)
    if name in SPARSE:
        return KernelProblem(name, "csr", sp.csr_matrix(X), y, C=4.0, gamma=0.05)
    return KernelProblem(name, "dense", X, y, C=4.0, gamma=0.05)


def _data(name: str) -> tuple[Any, np.ndarray]:
    if name in MNIST_ROWS:
        X, digits = _mnist()
        n = MNIST_ROWS[name]
        return X[:n], _signs(digits[:n] <= 4)
    if name == "spambase":
        X, labels = files.read(name)
        X = X.toarray()
        return (X - X.mean(axis=0)) / X.std(axis=0), _signs(labels > 0)
    if name == "connect-4":
        X, labels = files.read(name)
        board = sp.csr_matrix(X[:, 2::3] - X[:, 1::3])  # x - o
        board.eliminate_zeros()
        return _drawn(board[labels != 0], _signs(labels[labels != 0] > 0), CONNECT_4_ROWS)
    if name == "letter G":
        X, labels = files.read("letter")
        return X[:LETTER_ROWS] / 15.0, _signs(labels[:LETTER_ROWS] == LETTER_G)
    if name == "usps 0":
        X, digits = files.read("usps")
        return X, _signs(digits == 0)
    if name.startswith("covtype"):
        X, labels = files.read("covtype")
        low, high = (extreme.toarray().ravel() for extreme in (X.min(axis=0), X.max(axis=0)))
        span = np.where(high > low, high - low, 1.0)
        n, width = (COVTYPE_ROWS, X.shape[1]) if name == "covtype 50k" else (FEW_COLUMNS_ROWS, FEW_COLUMNS)
        part, y = _drawn(X, _signs(labels == 2), n)
        return ((part.toarray() - low) / span)[:, :width].copy(), y
    X, labels = files.read(name)
    return X, _signs(labels > 0)


@lru_cache(maxsize=1)  # its parts follow each other
def _mnist() -> tuple[sp.csr_matrix, np.ndarray]:
    return files.read("mnist")


def _drawn(X: sp.csr_matrix, y: np.ndarray, n: int) -> tuple[sp.csr_matrix, np.ndarray]:
    index = np.sort(np.random.default_rng(0).permutation(y.size)[:n])
    return X[index], y[index]


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1.0, -1.0)
