"""From svmlight text (compressed with xz) to CSR arrays, parsed once and kept as .npz.

SOFTMARGIN_DATA    folder of the data files, default `data/` in the project
SOFTMARGIN_CACHE   folder of the parsed arrays, default `softmargin-bench` in the user's cache folder
"""

import lzma
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class DataFile:
    """One file: its path below the data folder, its width, and where the data come from."""

    path: str
    n_features: int
    what: str
    origin: str


FILES = {
    "covtype": DataFile(
        "covtype/covtype.xz",
        54,
        "Covertype: 581,012 rows, 54 raw features, labels 1 to 7",
        "UCI Machine Learning Repository, data set 'Covertype'",
    ),
    "mnist": DataFile(
        "mnist/mnist.xz",
        780,
        "MNIST training digits: 60,000 rows, pixels 0 to 255, labels 0 to 9",
        "the idx files of LeCun, Cortes and Burges, or 'mnist' of the LIBSVM data page",
    ),
    "mnist.t": DataFile(
        "mnist/mnist.t.xz",
        780,
        "MNIST test digits: 10,000 rows, pixels 0 to 255, labels 0 to 9",
        "the idx files of LeCun, Cortes and Burges, or 'mnist.t' of the LIBSVM data page",
    ),
    "rcv1": DataFile(
        "rcv1/rcv1-27k.ccat.xz",
        47_236,
        "RCV1-v2: 27,613 documents, 47,236 cosine-normalised TF-IDF features, label +1 for topic CCAT",
        "the LYRL2004 vectors of RCV1-v2 (MULAN's rcv1v2 subsets 1 to 5, duplicates removed)",
    ),
    "20news-bigrams": DataFile(
        "20newsgroups/20news-orig-bigrams.binary.xz",
        1_833_441,
        "20 Newsgroups: 19,997 documents, binary words and bigrams, label +1 for the first ten groups",
        "the original 20_newsgroups archive (UCI KDD), words and bigrams without a cut-off",
    ),
    "a9a": DataFile(
        "adult/a9a.xz",
        123,
        "Adult (a9a): 32,561 rows, 123 binary features",
        "the LIBSVM data page, 'a9a' (from UCI 'Adult')",
    ),
    "a9a.t": DataFile(
        "adult/a9a.t.xz",
        123,
        "Adult (a9a.t): 16,281 test rows, 123 binary features",
        "the LIBSVM data page, 'a9a.t' (from UCI 'Adult')",
    ),
    "reuters": DataFile(
        "reuters21578/modapte.acq.train.tfidf.xz",
        11_838,
        "Reuters-21578, ModApte training part: 9,603 documents, 11,838 TF-IDF features, label +1 for topic acq",
        "the Reuters-21578 archive of D. Lewis, unigrams, log tf times idf, rows of length 1",
    ),
    "sms": DataFile(
        "sms-spam/sms.counts.xz",
        8_713,
        "SMS Spam Collection: 5,575 messages, 8,713 counts of words, label +1 for spam",
        "UCI Machine Learning Repository, data set 'SMS Spam Collection'",
    ),
    "20news": DataFile(
        "20newsgroups/20news.train.tfidf.xz",
        56_436,
        "20 Newsgroups, by date, training part: 11,314 documents, 56,436 TF-IDF features, 20 labels",
        "the 20news-bydate archive, unigrams that occur twice, log tf times idf, rows of length 1",
    ),
    "splice": DataFile(
        "splice/splice.uci.xz",
        480,
        "splice junctions: 3,190 windows of 60 letters, one-hot over 8 letters, labels 1 donor, 2 acceptor, 3 neither",
        "UCI Machine Learning Repository, data set 'Molecular Biology (Splice-junction Gene Sequences)'",
    ),
    "w8a": DataFile(
        "web/w8a.xz",
        300,
        "Web (w8a): 49,749 rows, 300 binary features",
        "the LIBSVM data page, 'w8a' (J. Platt's web pages)",
    ),
}


class MissingData(SystemExit):
    """A data file is not there; the message says which, what it is, and where to get it."""


def data_folder() -> Path:
    return Path(os.environ.get("SOFTMARGIN_DATA") or PROJECT / "data")


def cache_folder() -> Path:
    named = os.environ.get("SOFTMARGIN_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "softmargin-bench"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / "softmargin-bench"
    return folder


def read(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """The file as it is, a float64 CSR matrix and the labels: parsed the first time, later read back."""
    X, labels, _ = read_queries(name)
    return X, labels


def read_queries(name: str) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """As `read`, and the query of each row: empty if the file has none."""
    source = data_folder() / FILES[name].path
    kept = cache_folder() / f"{name}.npz"
    if kept.exists() and (not source.exists() or kept.stat().st_mtime >= source.stat().st_mtime):
        with np.load(kept) as parts:
            shape = tuple(int(size) for size in parts["shape"])
            X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
            return X, parts["labels"], parts["qid"] if "qid" in parts else np.empty(0, dtype=np.int64)
    X, labels, qid = _parse(source, FILES[name])
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".tmp", delete=False) as out:
        np.savez(out, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, labels=labels, qid=qid)
    os.replace(out.name, kept)
    return X, labels, qid


def missing(file: DataFile, how: str) -> MissingData:
    return MissingData(
        f"The file {file.path} is missing in {data_folder()}.\n"
        f"It is: {file.what}.\n"
        f"Origin: {file.origin}.\n"
        f"{how} and put it there, or name the folder that has it in SOFTMARGIN_DATA."
    )


def _parse(source: Path, file: DataFile) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    if not source.exists():
        raise missing(file, "Write it as svmlight text (indices from 1, zeros left out), compress it with xz,")
    with lzma.open(source, "rb") as text:
        X, labels, qid = load_svmlight_file(text, n_features=file.n_features, zero_based=False, query_id=True)
    X.sort_indices()
    # Made anew, so that indices are of 32 bits where these suffice: rivals know no others.
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape), labels, qid
