"""Two-class problems in the storage that is asked for.

covtype          class 1 against the rest, every feature scaled to [0, 1]
mnist            digits 0 to 4 against 5 to 9, pixels / 255; as uint8 the pixels themselves, with C / 255^2
rcv1             topic CCAT against the rest
20news-bigrams   first ten groups against the others, rows of length 1
a9a, w8a         as they are
reuters          topic acq against the rest
sms              spam against the rest, counts of words as they are
spambase         every feature scaled to [0, 1]
bio              homologous proteins against the rest, features standardised (dense)
covtype raw, spambase raw      features as they are

For the race alone:
mnist even       even digits against odd ones, pixels / 255
rcv1 c11         topic C11 against the rest
mnist 10         ten digits, each against the rest, pixels / 255
20news           twenty groups, each against the rest
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import files

NAMES = ("covtype", "mnist", "rcv1", "20news-bigrams", "a9a", "w8a", "reuters", "sms", "spambase", "bio")
RAW = ("covtype raw", "spambase raw")
RACE = ("mnist even", "rcv1 c11", "mnist 10", "20news")
DENSE_BLOCK = 20_000  # rows that are float64 for a moment while a dense matrix is filled


@dataclass(frozen=True)
class Problem:
    """Data and labels: -1 and +1, or several classes, each of which is to be told from the rest.

    `C_factor` times C makes the same problem of rescaled integer data.
    """

    name: str
    storage: str
    X: Any
    y: np.ndarray
    C_factor: float = 1.0

    @property
    def signs(self) -> list[np.ndarray]:
        """The labels (-1, +1) of every sub-problem."""
        classes = np.unique(self.y)
        return [self.y] if classes.size == 2 else [np.where(self.y == label, 1.0, -1.0) for label in classes]

    @property
    def form(self) -> str:
        return f"{self.storage} {self.X.dtype}"

    @property
    def bytes(self) -> int:
        return data_bytes(self.X)


def data_bytes(X: Any) -> int:
    """What one product with X has to read: values, and for CSR indices and row starts."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def load(name: str, storage: str = "csr", dtype: str = "float64") -> Problem:
    """The problem `name` as "dense" or "csr", of the given type ("uint8" for mnist only)."""
    if name not in (*NAMES, *RAW, *RACE):
        raise ValueError(f"problem {name!r} is unknown: choose one of {', '.join((*NAMES, *RAW, *RACE))}")
    if dtype == "uint8":
        if name != "mnist":
            raise ValueError(f"{name} as uint8 is not defined: only mnist holds whole numbers below 256")
        X, labels = files.read(name)
        return Problem(name, storage, _stored(X, storage, np.uint8), _signs(name, labels), 255.0**-2)
    X, y = _scaled(name)
    return Problem(name, storage, _stored(X, storage, np.dtype(dtype)), y)


def generate(n: int, d: int, storage: str = "dense", dtype: str = "float64", density: float = 0.2) -> Problem:
    """A noisy linear problem from a fixed seed; needs no file."""
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=density, format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    if dtype == "uint8":
        X.data = np.round(255 * X.data)
        return Problem("generated", storage, _stored(X, storage, np.uint8), y, 255.0**-2)
    return Problem("generated", storage, _stored(X, storage, np.dtype(dtype)), y)


@lru_cache(maxsize=1)  # the storages of one problem follow each other; two large ones need not be kept
def _scaled(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    from benchmarks.datasets import kernel_problems, ranking_problems  # noqa: F401  (the first knows more files)

    if name == "rcv1 c11":
        topic = ranking_problems.load_ranking("c11")
        return topic.X, np.where(topic.y > 0, 1.0, -1.0)
    X, labels = files.read(name if name in files.FILES else name.split()[0])
    if name in ("covtype", "spambase"):
        X = _unit_range(X)
    elif name == "bio":
        X = sp.csr_matrix((X.toarray() - X.mean(axis=0).A1) / _deviations(X))
    elif name.startswith("mnist"):
        X.data /= 255.0
    elif name == "20news-bigrams":
        unit_rows(X)
    return X, _signs(name, labels)


def _signs(name: str, labels: np.ndarray) -> np.ndarray:
    if name in ("mnist 10", "20news"):
        return labels
    if name.startswith("covtype"):
        positive = labels == 1
    elif name == "mnist even":
        positive = labels % 2 == 0
    elif name == "mnist":
        positive = labels <= 4
    else:
        positive = labels > 0
    return np.where(positive, 1.0, -1.0)


def unit_rows(X: sp.csr_matrix) -> None:
    """Every row divided by its length, in place."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))


def _deviations(X: sp.csr_matrix) -> np.ndarray:
    found = np.sqrt(np.maximum(X.multiply(X).mean(axis=0).A1 - np.square(X.mean(axis=0).A1), 0.0))
    return np.where(found > 0.0, found, 1.0)


def _unit_range(X: sp.csr_matrix) -> sp.csr_matrix:
    """(x - min) / (max - min) of every column, zeros left out."""
    low = X.min(axis=0).toarray().ravel()
    span = X.max(axis=0).toarray().ravel() - low
    span[span == 0] = 1.0
    blocks = []
    for start in range(0, X.shape[0], DENSE_BLOCK):
        blocks.append(sp.csr_matrix((X[start : start + DENSE_BLOCK].toarray() - low) / span))
    return sp.vstack(blocks, format="csr")


def _stored(X: sp.csr_matrix, storage: str, dtype: Any) -> Any:
    if storage == "csr":
        return X.astype(dtype)
    if storage != "dense":
        raise ValueError(f"storage {storage!r} is unknown: choose 'dense' or 'csr'")
    out = np.empty(X.shape, dtype=dtype)
    for start in range(0, X.shape[0], DENSE_BLOCK):
        out[start : start + DENSE_BLOCK] = X[start : start + DENSE_BLOCK].toarray()
    return out
