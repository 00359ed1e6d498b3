"""Problems of regression and of one class, dense and float64 as a user has them.

abalone, california, computer, wine red, wine white     numbers to learn; features and numbers standardised
mnist 0, mnist 1, mnist 8                               all images of one digit, pixels / 255                  one class
a9a                                                     all rows                                               one class

The kernel is RBF with gamma = 1 / features for regression, which is scikit-learn's "scale" for standardised features.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import files, qp_problems, ranking_problems  # noqa: F401  they know more files
from benchmarks.datasets.problems import Problem

REGRESSION = ("abalone", "california", "computer", "wine red", "wine white")
ONE_CLASS = ("mnist 0", "mnist 1", "mnist 8", "a9a")
NU, MNIST_GAMMA, A9A_GAMMA = 0.1, 0.02, 0.05


@dataclass(frozen=True)
class FamilyProblem(Problem):
    """Data, targets (none for one class), and the parameters of the machine; nu is 0 for regression."""

    C: float = 1.0
    epsilon: float = 0.0
    nu: float = 0.0
    gamma: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def part(self, n: int) -> "FamilyProblem":
        """`n` rows drawn with a fixed seed, all of them if there are no more."""
        index = np.sort(np.random.default_rng(0).permutation(self.n_rows)[:n])
        return replace(self, X=self.X[index], y=self.y[index])


def load_regression(name: str, C: float = 1.0, epsilon: float = 0.1) -> FamilyProblem:
    X, y = files.read(name)
    dense = standardised(X.toarray())
    return FamilyProblem(name, "dense", dense, standardised(y), C=C, epsilon=epsilon, gamma=1.0 / dense.shape[1])


def load_one_class(name: str) -> FamilyProblem:
    if name == "a9a":
        X, y = files.read(name)
        return FamilyProblem(name, "csr", X, np.zeros(y.size), nu=NU, gamma=A9A_GAMMA)
    X, digits = files.read("mnist")
    part = X[digits == int(name.split()[1])].toarray() / 255.0
    return FamilyProblem(name, "dense", part, np.zeros(len(part)), nu=NU, gamma=MNIST_GAMMA)


def tiny_family(name: str, n: int = 400, **parameters: Any) -> FamilyProblem:
    """Generated rows under this name, for smoke tests."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((n, 10)), 1)
    y = standardised(X[:, :3].sum(axis=1) + np.sin(3.0 * X[:, 3]) + rng.standard_normal(n))
    return FamilyProblem(name, "dense", X, y, **({"gamma": 0.1} | parameters))


def standardised(values: np.ndarray) -> np.ndarray:
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
