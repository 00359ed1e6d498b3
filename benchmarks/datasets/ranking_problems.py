"""Problems with ordered targets, float64 as a user has them: queries, grades, real values, two ranks.

mq2008, mq2008.t     LETOR 4.0, fold 1: grades 0 to 2, 46 features in [0, 1]; training and test queries   dense    qid
mq2007-agg           grades 0 to 2; the ranks r of 21 rankings as 1 / log2(1 + r), 0 if not ranked        dense    qid
bio                  KDD Cup 2004, homologous proteins 1, others 0; standardised, blocks as queries       dense    qid
wine red, wine white quality 3 to 9; standardised                                                         dense
car                  grades 1 to 4; one-hot                                                               dense
california           house values, standardised; also bank32nh, computer, housing, machine, pyrim         dense
ccat, c11            RCV1-v2: documents of the topic 1, others 0                                          CSR

`binned` makes grades of real values.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import files
from benchmarks.datasets.files import DataFile
from benchmarks.datasets.problems import Problem

_LETOR = "LETOR 4.0 of Microsoft Research Asia"
_UCI = "UCI Machine Learning Repository, data set"
_TORGO = "L. Torgo's regression data sets"
files.FILES.update(
    {
        "mq2008": DataFile(
            "mq2008/mq2008.fold1.train.xz",
            46,
            "MQ2008, fold 1, training part: 9,630 rows with qid (471 queries), labels 0 to 2",
            f"{_LETOR}, 'MQ2008'",
        ),
        "mq2008.t": DataFile(
            "mq2008/mq2008.fold1.test.xz",
            46,
            "MQ2008, fold 1, test part: 2,874 rows with qid (156 queries), labels 0 to 2",
            f"{_LETOR}, 'MQ2008'",
        ),
        "mq2007-agg": DataFile(
            "mq2007-agg/mq2007-agg.xz",
            21,
            "MQ2007-agg: 69,623 rows with qid (1,692 queries), ranks in 21 rankings (NULL left out), labels 0 to 2",
            f"{_LETOR}, 'MQ2007-agg'",
        ),
        "bio": DataFile(
            "kddcup04-bio/bio_train.xz",
            74,
            "Protein homology: 145,751 rows with the block as qid (153 of them), 74 features, label +1 for homology",
            "KDD Cup 2004, 'bio_train'",
        ),
        "wine red": DataFile(
            "ordinal-regression/winequality-red.xz",
            11,
            "Wine quality, red: 1,599 rows, 11 raw features, labels 3 to 8",
            f"{_UCI} 'Wine Quality'",
        ),
        "wine white": DataFile(
            "ordinal-regression/winequality-white.xz",
            11,
            "Wine quality, white: 4,898 rows, 11 raw features, labels 3 to 9",
            f"{_UCI} 'Wine Quality'",
        ),
        "car": DataFile(
            "ordinal-regression/car.xz",
            21,
            "Car evaluation: 1,728 rows, one-hot, labels 1 (unacc) to 4 (vgood)",
            f"{_UCI} 'Car Evaluation'",
        ),
        "california": DataFile(
            "ordinal-regression/cal.housing.xz",
            8,
            "California housing: 20,640 rows, 8 raw features, label the median house value",
            f"{_TORGO}, 'California Housing'",
        ),
        "bank32nh": DataFile(
            "ordinal-regression/bank32nh.xz",
            32,
            "Bank: 8,192 rows, 32 raw features, real labels",
            f"{_TORGO}, 'bank32nh'",
        ),
        "computer": DataFile(
            "ordinal-regression/cpu.small.xz",
            12,
            "Computer activity: 8,192 rows, 12 raw features, labels 0 to 99",
            f"{_TORGO}, 'Computer Activity', small",
        ),
        "housing": DataFile(
            "ordinal-regression/housing.xz", 14, "Boston housing: 506 rows, real labels", f"{_TORGO}, 'Boston Housing'"
        ),
        "machine": DataFile(
            "ordinal-regression/machine.cpu.xz", 6, "Machine CPU: 209 rows, 6 raw features", f"{_TORGO}, 'Machine CPU'"
        ),
        "pyrim": DataFile(
            "ordinal-regression/pyrim.xz",
            27,
            "Pyrimidines: 74 rows, 27 features, real labels",
            f"{_TORGO}, 'Pyrimidines'",
        ),
    }
)
TOPICS_FILE = DataFile(
    "rcv1/rcv1-27k.topics.txt",
    0,
    "the topics of the documents of rcv1-27k.ccat.xz: a line each, separated by blanks",
    "the LYRL2004 topic assignments of RCV1-v2",
)

TOPICS = {"ccat": "CCAT", "c11": "C11"}
WITH_QUERIES = ("mq2008", "mq2008.t", "mq2007-agg", "bio")
GRADED = ("wine red", "wine white", "car")
REAL = ("california", "bank32nh", "computer", "housing", "machine", "pyrim")
NAMES = (*WITH_QUERIES, *GRADED, *REAL, *TOPICS)
STANDARDISED = ("bio", "wine red", "wine white", *REAL)


@dataclass(frozen=True)
class RankingProblem(Problem):
    """Data and targets, larger belonging further up; `qid` is the query of each row, None for one query."""

    qid: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def rows(self, index: Any) -> "RankingProblem":
        """The problem on these rows alone."""
        qid = None if self.qid is None else self.qid[index]
        return replace(self, X=self.X[index], y=self.y[index], qid=qid)


def load_ranking(name: str) -> RankingProblem:
    """The problem `name`, in the storage that the list above says."""
    if name not in NAMES:
        raise ValueError(f"ranking problem {name!r} is unknown: choose one of {', '.join(NAMES)}")
    if name in TOPICS:
        X, _ = files.read("rcv1")
        return RankingProblem(name, "csr", X, _has_topic(TOPICS[name], X.shape[0]))
    X, y, qid = files.read_queries(name)
    if name == "mq2007-agg":
        X.data = 1.0 / np.log2(1.0 + X.data)
    if name == "bio":
        y = (y > 0).astype(np.float64)
    dense = _standardised(X.toarray()) if name in STANDARDISED else X.toarray()
    return RankingProblem(name, "dense", dense, y, qid=qid if name in WITH_QUERIES else None)


def tiny_ranking(name: str, n: int = 400) -> RankingProblem:
    """Generated rows under this name, for smoke tests: with queries, grades or real targets as the problem has them."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((n, 10)), 1)
    y = X[:, :3].sum(axis=1) + rng.standard_normal(n)
    if name not in REAL:
        y = np.digitize(y, [0.0] if name == "bio" or name in TOPICS else [0.0, 2.0]).astype(np.float64)
    if name in TOPICS:
        return RankingProblem(name, "csr", sp.csr_matrix(X), y)
    return RankingProblem(name, "dense", X, y, qid=rng.integers(n // 20, size=n) if name in WITH_QUERIES else None)


def binned(problem: RankingProblem, n_ranks: int) -> RankingProblem:
    """The targets in grades 1 .. n_ranks of about equally many rows; equal targets stay together."""
    edges = np.quantile(problem.y, np.arange(1, n_ranks) / n_ranks)
    return replace(problem, y=1.0 + np.searchsorted(edges, problem.y, side="left"))


def _standardised(X: np.ndarray) -> np.ndarray:
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def _has_topic(topic: str, n_rows: int) -> np.ndarray:
    source = files.data_folder() / TOPICS_FILE.path
    if not source.exists():
        raise files.missing(TOPICS_FILE, "Write it as text,")
    lines = source.read_text(encoding="utf-8").splitlines()
    if len(lines) != n_rows:
        raise ValueError(f"{TOPICS_FILE.path} has {len(lines)} lines, but the documents are {n_rows}")
    return np.array([topic in line.split() for line in lines], dtype=np.float64)
