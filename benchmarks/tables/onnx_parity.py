"""Labels and scores of ONNX graphs in ONNX Runtime, beside those of their models, on 10,000 rows of every kind of data.

Goals: the same labels, and scores within 1e-6 of the largest. The same for `load_predictor`, which needs NumPy alone.
"""

import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import softmargin
from benchmarks import record
from benchmarks.datasets import problems
from benchmarks.datasets.kernel_problems import load_kernel, tiny_kernel
from benchmarks.datasets.ranking_problems import binned, load_ranking, tiny_ranking
from benchmarks.datasets.regression_problems import (
    ONE_CLASS,
    REGRESSION,
    load_one_class,
    load_regression,
    tiny_family,
)
from benchmarks.tables import _paper

ROWS, DIFFERENCE = 10_000, 1e-6
TRAINED_LINEAR, TRAINED_KERNEL = 5_000, 2_000  # rows at most: what is compared are predictions
BATCH = 1 << 21  # values of a dense batch
KERNELS = ("spambase", "connect-4", "mnist 10k", "a9a", "w8a", "usps 0", "covtype 20k, 10", "letter G")
ALL_KERNELS = ("spambase", "a9a", "mnist 10k", "letter G")
TEXTS = ("reuters", "sms")
RANKINGS, ORDERED = ("mq2008", "mq2007-agg", "bio", "c11"), ("wine red", "wine white", "car", "california")
RANKS = 5  # of the real targets of california
COLUMNS = {
    "estimator": ("estimator", ""),
    "data": ("data", ""),
    "form": ("storage", ""),
    "n_features": ("features", ",d"),
    "n_compared": ("rows", ",d"),
    "onnx_labels": ("labels that differ, ONNX", "d"),
    "onnx_difference": ("scores differ by, of the largest", ".1e"),
    "numpy_labels": ("labels that differ, load_predictor", "d"),
    "numpy_difference": ("scores differ by, of the largest", ".1e"),
    "met": ("goals met", ""),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="DATA", help="one data set; not written without --out")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = f"ONNX graphs and load_predictor beside their models, {ROWS:,} rows"
    _paper.produce(record.Table("onnx_parity", title, COLUMNS, "1", args), _measure, _notes)


def _measure(table: record.Table) -> None:
    for kind, estimator, problem in _models(table.args):
        if table.args.only in (None, problem.name):
            _add(table, kind, estimator, problem)


def _models(args: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every kind of model, and every kind of data, in the storage that a user has them in."""
    quick = args.quick
    for name in ("generated",) if quick else (*problems.NAMES, *problems.RACE):
        problem = problems.generate(500, 30) if quick else problems.load(name)
        yield "LinearSVC", softmargin.LinearSVC(), problem
        calibrated = CalibratedClassifierCV(softmargin.LinearSVC(), ensemble=False, cv=3)
        yield "LinearSVC, sigmoid", calibrated, problem
    for name in ("generated",) if quick else problems.RAW:
        problem = problems.generate(500, 30) if quick else problems.load(name)
        yield "MaxAbsScaler, LinearSVC", make_pipeline(MaxAbsScaler(), softmargin.LinearSVC()), problem
    for name in KERNELS[:1] if quick else KERNELS:
        problem = tiny_kernel(name) if quick else load_kernel(name)
        for kernel in ("rbf", "poly", "laplacian") if name in ALL_KERNELS else ("rbf",):
            model = softmargin.SVC(C=problem.C, kernel=kernel, gamma=problem.gamma, coef0=1.0)
            yield f"SVC, {kernel}", model, problem
    yield "SVC, rbf, isotonic", _calibrated_kernel(problem), problem
    for name in () if quick else TEXTS:
        yield "SVC, rbf", softmargin.SVC(), problems.load(name)
    if not quick:
        digits = problems.load("mnist 10", "dense")
        yield "SVC, rbf, ten classes", softmargin.SVC(), digits
        joint = softmargin.LinearSVC(multi_class="crammer_singer", intercept="penalised")
        yield "LinearSVC, joint, ten classes", joint, digits
    for name in REGRESSION[:1] if quick else REGRESSION:
        problem = tiny_family(name) if quick else load_regression(name)
        yield "LinearSVR", softmargin.LinearSVR(), problem
        yield "SVR", softmargin.SVR(), problem
    for name in ONE_CLASS[:1] if quick else ONE_CLASS:
        problem = tiny_family(name, nu=0.1) if quick else load_one_class(name)
        yield "OneClassSVM", softmargin.OneClassSVM(nu=0.1), problem
        yield "LinearOneClassSVM", softmargin.LinearOneClassSVM(nu=0.1), problem
    for name in RANKINGS[:1] if quick else RANKINGS:
        yield "RankSVM", softmargin.RankSVM(), tiny_ranking(name) if quick else load_ranking(name)
    for name in ORDERED[:1] if quick else ORDERED:
        yield "OrdinalSVC", softmargin.OrdinalSVC(), _ordered(name, quick)


def _calibrated_kernel(problem: Any) -> Any:
    model = softmargin.SVC(C=problem.C, gamma=problem.gamma)
    return CalibratedClassifierCV(model, method="isotonic", ensemble=False, cv=3)


def _ordered(name: str, quick: bool) -> Any:
    problem = tiny_ranking(name) if quick else load_ranking(name)
    return binned(problem, RANKS) if name == "california" else problem


def _add(table: record.Table, kind: str, estimator: Any, problem: Any) -> None:
    rng = np.random.default_rng(0)
    n = problem.X.shape[0]
    n_rows = 200 if table.args.quick else ROWS
    compared = np.sort(rng.choice(n, n_rows, replace=n < n_rows))
    is_linear = kind.startswith(("Linear", "MaxAbs", "Rank", "Ordinal"))
    most = TRAINED_LINEAR if is_linear else TRAINED_KERNEL
    trained = np.sort(rng.permutation(n)[:most])
    qid = getattr(problem, "qid", None)
    estimator.fit(problem.X[trained], problem.y[trained], **({} if qid is None else {"qid": qid[trained]}))
    X = problem.X[compared]
    labels, scores = estimator.predict(X), _scores(estimator, X)
    onnx_labels, onnx_scores = _by_onnx(estimator, X)
    with tempfile.TemporaryDirectory() as folder:
        softmargin.save(estimator, Path(folder) / "model")
        predictor = softmargin.load_predictor(Path(folder) / "model")
    numpy_labels, numpy_scores = predictor.predict(X), _scores(predictor, X)
    largest = np.abs(scores).max() or 1.0
    has_labels = predictor.classes_ is not None
    found = {
        "onnx_labels": int(np.count_nonzero(onnx_labels != labels)) if has_labels else 0,
        "onnx_difference": float(np.abs(onnx_scores.reshape(scores.shape) - scores).max() / largest),
        "numpy_labels": int(np.count_nonzero(numpy_labels != labels)) if has_labels else 0,
        "numpy_difference": float(np.abs(numpy_scores - scores).max() / largest),
    }
    table.add(
        estimator=kind,
        data=problem.name,
        form=problem.form,
        n_features=X.shape[1],
        n_compared=len(compared),
        **found,
        runtime=version("onnxruntime"),
        met=not found["onnx_labels"]
        and not found["numpy_labels"]
        and max(found["onnx_difference"], found["numpy_difference"]) <= DIFFERENCE,
    )


def _scores(model: Any, X: Any) -> np.ndarray:
    """Probabilities, decision values or numbers: what the model has."""
    if getattr(model, "has_probabilities", hasattr(model, "predict_proba")):
        return model.predict_proba(X)
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def _by_onnx(estimator: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    import onnxruntime

    from softmargin.onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = to_onnx(estimator).SerializeToString()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    shown = ["label", "probabilities" if "probabilities" in names else "scores"] if "label" in names else names * 2
    step = max(1, min(1000, BATCH // X.shape[1]))
    parts = []
    for low in range(0, X.shape[0], step):
        rows = X[low : low + step]
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        parts.append(session.run(shown, {"X": np.asarray(dense, dtype=np.float64)}))
    labels, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return labels, scores


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    missed = [f"{row['estimator']} on {row['data']}" for row in rows if not row["met"]]
    return [
        f"goals (same labels, scores within {DIFFERENCE:g} of the largest): "
        + (f"missed by {', '.join(missed)}." if missed else f"met on all {len(rows)} lines."),
        f"rows: drawn with a fixed seed, with repetition where the data have fewer than {ROWS:,}; sparse ones are "
        "given to the graph as dense batches. Models are trained on at most "
        f"{TRAINED_LINEAR:,} rows (kernels: {TRAINED_KERNEL:,}), and see X as float64 in the same storage as the data.",
        f"run by ONNX Runtime {', '.join(sorted({row['runtime'] for row in rows}))}.",
        "scores: the decision function; of calibrated models the probabilities; of regressions and rankings the "
        "predicted numbers, which have no labels.",
    ]


if __name__ == "__main__":
    main()
