"""The hard problems that every solver must pass: ugly, degenerate, badly scaled."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, make_classification


@dataclass(frozen=True)
class Hard:
    """One problem: data, labels +-1, weights, and the values of C worth trying on it."""

    name: str
    X: object
    y: np.ndarray
    s: np.ndarray | None = None
    Cs: tuple = (1e-6, 1.0, 1e6)
    intercepts: tuple = field(default=("none", "free", "penalised"))

    def __str__(self):
        return self.name

    @property
    def v(self):
        return self.y * (np.ones(len(self.y)) if self.s is None else self.s)


def catalogue():
    rng = np.random.default_rng(20)
    noisy = rng.standard_normal((60, 5))
    labels = np.where(noisy[:, 0] + 0.8 * rng.standard_normal(60) > 0, 1.0, -1.0)
    two = np.array([1.0, -1.0])
    cancer = load_breast_cancer()
    digits = load_digits()
    wide, wide_y = make_classification(40, 300, n_informative=10, random_state=3)
    tall, tall_y = make_classification(3000, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=4)
    sparse = sp.random(80, 50, density=0.05, format="csr", random_state=5)

    return [
        Hard("one example", np.array([[1.0, 2.0]]), np.array([1.0])),
        Hard("two examples", np.array([[1.0], [-1.0]]), two),
        Hard("duplicates with opposite labels", np.ones((6, 3)), np.array([1, -1, 1, -1, 1, -1.0])),
        Hard("all rows twice, once with the other label", np.vstack([noisy, noisy]), np.append(labels, -labels)),
        Hard("all-zero rows", np.zeros((5, 3)), np.array([1, 1, 1, -1, -1.0])),
        Hard("some zero rows", noisy * (np.arange(60) % 3 > 0)[:, None], labels),
        Hard("constant features", np.column_stack([noisy, np.full(60, 7.0)]), labels),
        Hard("only a constant feature", np.full((20, 1), 3.0), labels[:20]),
        Hard("one class", noisy, np.ones(60)),
        Hard("noisy", noisy, labels, Cs=(1e-6, 1e-3, 1.0, 1e3, 1e6)),
        Hard("separable", np.vstack([noisy + 8, noisy - 8]), np.repeat([1.0, -1.0], 60)),
        Hard(
            "unscaled features",
            cancer.data[::3],
            np.where(cancer.target[::3], 1.0, -1.0),
            Cs=(1e-6, 1e-2, 1.0, 1e6),
        ),
        Hard("columns from 1e-6 to 1e6", noisy * 10.0 ** np.array([-6, -3, 0, 3, 6]), labels, Cs=(1e-6, 1.0)),
        Hard("n < d", wide, np.where(wide_y, 1.0, -1.0)),
        Hard("n >> d", tall, np.where(tall_y, 1.0, -1.0), Cs=(1e-6, 1.0, 1e3)),
        Hard("float32", digits.data[:200].astype(np.float32), np.where(digits.target[:200] < 5, 1.0, -1.0)),
        Hard("sparse with empty rows", sparse, np.where(rng.random(80) < 0.4, 1.0, -1.0)),
        Hard("weights of 0", noisy, labels, s=np.where(np.arange(60) % 2, 0.0, 1.0)),
        Hard("weights over ten decades", noisy, labels, s=10.0 ** rng.uniform(-5, 5, 60), Cs=(1e-6, 1.0)),
        Hard("one feature", noisy[:, :1], labels),
        Hard(
            "ties everywhere",
            rng.integers(-1, 2, (70, 3)).astype(float),
            np.where(rng.random(70) < 0.5, 1.0, -1.0),
        ),
    ]
