"""Fits and predictions of rows on disk: the same models and certificates as of rows in memory."""

import signal
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import (
    OCAS,
    SVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
    Status,
    Store,
    certify,
    load,
)

RNG = np.random.default_rng(11)
N, D = 400, 6
X = RNG.standard_normal((N, D))
X[:, 0] += 2.0  # so that there is a plane between the rows and the origin
SCORE = X @ RNG.standard_normal(D) + 0.5 * RNG.standard_normal(N)
Y = np.where(SCORE > 0.3, 1, -1)
GRADES = np.digitize(SCORE, [-1.0, 0.0, 1.0])
QID = np.sort(RNG.integers(0, 25, N))
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)
MANY, ONE = 2000, 1 << 20  # bytes of a chunk: ten of them and more, or a single one


def written(path, X, y, sample_weight=None, qid=None, chunk_bytes=MANY, **more):
    def part(values, where):
        return None if values is None else values[where]

    batches = (slice(lo, lo + 90) for lo in range(0, N, 90))
    parts = ((X[where], part(y, where), part(sample_weight, where), part(qid, where)) for where in batches)
    return Store.write(path, parts, chunk_bytes=chunk_bytes, **more)


CASES = {
    "two classes": (LinearSVC(C=0.1, solver="ocas"), {"y": Y}),
    "weights": (LinearSVC(C=0.1, solver="ocas", intercept="penalised"), {"y": Y, "sample_weight": WEIGHTS}),
    "words": (LinearSVC(C=0.1, solver="ocas"), {"y": np.array(["a", "b", "c", "d"])[GRADES]}),
    "joint": (
        LinearSVC(C=0.1, solver="ocas", multi_class="crammer_singer", fit_intercept=False),
        {"y": GRADES},
    ),
    "numbers": (LinearSVR(C=0.1, epsilon=0.1, solver="ocas"), {"y": SCORE, "sample_weight": WEIGHTS}),
    "ranking": (RankSVM(C=10.0), {"y": GRADES, "qid": QID}),
    "weighted ranking": (RankSVM(C=10.0), {"y": GRADES, "qid": QID, "sample_weight": WEIGHTS}),
    "ordinal": (OrdinalSVC(C=1.0), {"y": GRADES}),
    "immediate thresholds": (OrdinalSVC(C=1.0, thresholds="immediate"), {"y": GRADES}),
    "one class": (LinearOneClassSVM(nu=0.2, solver="ocas"), {"y": None}),
}
FORMS = {"dense": lambda X: X, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_array}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_the_same_fit_as_in_memory(case, form, tmp_path):
    model, targets = CASES[case]
    matrix = FORMS[form](X)
    known = {name: value for name, value in targets.items() if value is not None}
    in_memory = model.fit(matrix, **known)
    expected = {name: np.array(getattr(in_memory, name)) for name in ("coef_", "dual_") if hasattr(in_memory, name)}
    certificate = in_memory.certificate_
    for n_jobs in (1, 2):
        store = written(tmp_path / f"one{n_jobs}", matrix, **targets, chunk_bytes=ONE)
        model.set_params(n_jobs=n_jobs).fit(store)
        assert model.certificate_ == certificate
        for name, value in expected.items():
            np.testing.assert_array_equal(getattr(model, name), value)

    store = written(tmp_path / "many", matrix, **targets)
    assert len(list(store.blocks())) >= 3
    model.fit(store)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.relative_gap <= model.tol
    assert model.certificate_.primal == pytest.approx(certificate.primal, rel=2e-3)
    found, same = model.predict(store), model.predict(matrix)
    assert found.tolist() == (pytest.approx(same.tolist(), abs=1e-9) if found.dtype.kind == "f" else same.tolist())
    judged = certify(model, store)
    assert judged.primal == model.certificate_.primal
    again = model.coef_.copy()
    np.testing.assert_array_equal(model.set_params(n_jobs=1).fit(Store(store.path, memory_bytes=4400)).coef_, again)


def test_auto_takes_cutting_planes(tmp_path):
    store = written(tmp_path / "store", X, Y)
    model = LinearSVC().fit(store)
    assert "OCAS" in model.solver_
    assert "products with X only" in model.solver_
    assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearSVC(solver="coordinate"), "OCAS"),
        (LinearSVC(solver="sgd"), "OCAS"),
        (LinearSVC(loss="squared_hinge"), "products with X only, as those of a store do, but squared losses"),
        (SVC(), "Store offers products with X only"),
    ],
)
def test_what_needs_single_rows_is_refused(model, message, tmp_path):
    store = written(tmp_path / "store", X, Y)
    with pytest.raises(SoftmarginError, match=message):
        model.fit(store, *([store.y] if isinstance(model, SVC) else []))


def test_targets_come_from_one_place(tmp_path):
    store = written(tmp_path / "store", X, Y, WEIGHTS, QID)
    with pytest.raises(SoftmarginError, match="Store brings y with it: leave y out"):
        LinearSVC().fit(store, Y)
    with pytest.raises(SoftmarginError, match="Store brings sample_weight with it"):
        LinearSVC().fit(store, sample_weight=WEIGHTS)
    with pytest.raises(SoftmarginError, match="Store brings qid with it"):
        RankSVM().fit(store, qid=QID)
    bare = Store.write(tmp_path / "bare", [X])
    with pytest.raises(SoftmarginError, match="requires y to be passed"):
        LinearSVC().fit(bare)
    np.testing.assert_array_equal(LinearSVC(solver="ocas").fit(bare, Y).coef_, LinearSVC(solver="ocas").fit(X, Y).coef_)
    with pytest.raises(SoftmarginError, match="5 targets for 400 rows"):
        LinearSVC().fit(bare, Y[:5])
    with pytest.raises(ValueError, match="requires y to be passed"):
        LinearSVC().fit(X)


def test_labels_that_are_no_classes(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown label type: continuous. Row 0 of y holds .*LinearSVR"):
        LinearSVC().fit(written(tmp_path / "store", X, SCORE))
    with pytest.raises(SoftmarginError, match="y holds one class only"):
        LinearSVC().fit(written(tmp_path / "ones", X, np.ones(N)))
    with pytest.raises(SoftmarginError, match="y holds entries that are not numbers, such as 'a'"):
        LinearSVR().fit(written(tmp_path / "words", X, np.array(["a"] * N)))


def test_columns_are_those_of_the_model(tmp_path):
    store = written(tmp_path / "store", X, Y, feature_names="abcdef")
    model = LinearSVC().fit(store)
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(SoftmarginError, match="column 4 of X is called 'f', but the model was trained with 'e'"):
        model.predict(written(tmp_path / "other", X, Y, feature_names="abcdfe"))
    with pytest.raises(SoftmarginError, match="X has 5 features, but the model was trained on 6"):
        model.predict(Store.write(tmp_path / "narrow", [X[:, :5]]))
    unnamed = written(tmp_path / "unnamed", X, Y)
    np.testing.assert_array_equal(model.predict(unnamed), model.predict(store))
    assert not hasattr(model.fit(unnamed), "feature_names_in_")


def test_a_fit_goes_on_where_it_was_stopped(tmp_path):
    store = written(tmp_path / "store", X, Y)
    whole = LinearSVC(tol=1e-6).fit(store)
    model = LinearSVC(tol=1e-6, max_iter=3, warm_start=True)
    with pytest.warns(match="max_iter"):
        model.fit(store)
    model.save(tmp_path / "model", include_training_state=True)
    resumed = load(tmp_path / "model").set_params(max_iter=None, warm_start=True).fit(Store(store.path))
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.n_iter_ == whole.n_iter_


def test_an_interrupt_keeps_the_best_model(tmp_path):
    store = written(tmp_path / "store", X, Y)
    model = LinearSVC(tol=1e-9)
    plain = OCAS.step

    def step(self, problem, state):
        if state.iterations == 4:
            signal.raise_signal(signal.SIGINT)
        return plain(self, problem, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OCAS, "step", step)
        with pytest.raises(KeyboardInterrupt):
            model.fit(store)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.relative_gap < 1.0


def test_a_damaged_chunk_ends_the_fit_with_its_name(tmp_path):
    store = written(tmp_path / "store", X, Y)
    path = store.path / "chunk-000003.bin"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(SoftmarginError, match=r"chunk-000003\.bin: the checksum"):
        LinearSVC().fit(Store(store.path))


def test_memory_does_not_grow_with_the_columns_times_rows(tmp_path):
    """What a fit allocates beside the chunks is a number of vectors, a small part of the data here."""
    rng = np.random.default_rng(0)
    n, d = 4000, 500
    batches = (
        (part, np.where(part[:, 0] + 0.1 * part[:, 1] > 0, 1, -1)) for part in rng.standard_normal((8, n // 8, d))
    )
    store = Store.write(tmp_path / "store", batches, chunk_bytes=1 << 20)
    LinearSVC(C=1e-3).fit(store)  # compiled now
    tracemalloc.start()
    LinearSVC(C=1e-3).fit(Store(store.path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * 8 * n * d
