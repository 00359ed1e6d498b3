"""LinearSVC(multi_class="crammer_singer"): shapes and objective of scikit-learn, and everything around a fit."""

import _thread
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import LinearSVC as SklearnLinearSVC

from softmargin import CoordinateDescent, LinearSVC, certify, load
from softmargin.core.errors import ModelFileError, SoftmarginError
from softmargin.core.status import Status
from softmargin.estimators.warnings import ConvergenceWarning
from softmargin.io.model_file import read_model

PENALISED, NONE = {"intercept": "penalised"}, {"fit_intercept": False}
SOLVERS = ["auto", "ocas", "cpa", "coordinate"]


def joint(**parameters):
    return LinearSVC(**{"multi_class": "crammer_singer", "tol": 1e-4, **PENALISED, **parameters})


def theirs(**parameters):
    return SklearnLinearSVC(
        **{"multi_class": "crammer_singer", "tol": 1e-5, "max_iter": 100_000, "random_state": 0, **parameters}
    )


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16.0, y[:600]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_same_model_as_scikit_learn(iris, solver, n_classes, fit_intercept):
    X, y = iris
    y = y if n_classes == 3 else np.where(y == "b", "b", "other")
    own = LinearSVC(
        multi_class="crammer_singer", tol=1e-6, solver=solver, **(PENALISED if fit_intercept else NONE)
    ).fit(X, y)
    other = theirs(fit_intercept=fit_intercept).fit(X, y)
    assert own.status_ is Status.OPTIMAL
    assert own.coef_.shape == other.coef_.shape
    assert own.coef_ == pytest.approx(other.coef_, abs=5e-3)
    assert np.shape(own.decision_function(X)) == np.shape(other.decision_function(X))
    assert (own.predict(X) == other.predict(X)).mean() > 0.99
    assert own.dual_.shape == (len(y), n_classes)
    assert own.intercept_.shape == (1 if n_classes == 2 else 3,)
    judged = certify(other, X, y)
    assert own.certificate_.primal <= judged.primal * (1 + 1e-6)
    assert own.certificate_.dual <= judged.primal
    assert judged.relative_gap < 1e-3


@pytest.mark.parametrize("solver", ["ocas", "coordinate"])
def test_the_objective_on_digits_is_that_of_scikit_learn_or_less(digits, solver):
    X, y = digits
    own = joint(tol=1e-3, solver=solver).fit(X, y)
    assert own.status_ is Status.OPTIMAL
    assert own.certificate_.primal <= certify(theirs(tol=1e-6).fit(X, y), X, y).primal * (1 + 1e-3)
    assert own.score(X, y) > 0.97


def test_a_free_intercept_is_refused_with_what_to_do(iris):
    with pytest.raises(SoftmarginError, match=r"intercept='penalised', or fit_intercept=False"):
        LinearSVC(multi_class="crammer_singer").fit(*iris)
    with pytest.raises(SoftmarginError, match="multi_class='both' is unknown"):
        LinearSVC(multi_class="both").fit(*iris)
    with pytest.raises(SoftmarginError, match="the hinge loss only: set loss='hinge'"):
        joint(loss="squared_hinge").fit(*iris)
    for solver in ("sgd", "pegasos"):
        with pytest.raises(SoftmarginError, match="choose one of 'auto', 'ocas', 'coordinate', 'cpa'"):
            joint(solver=solver).fit(*iris)


def test_a_weight_of_two_is_the_row_twice(iris):
    X, y = iris
    twice = np.arange(len(y)) % 3 == 0
    weighted = joint(tol=1e-8, solver="ocas").fit(X, y, sample_weight=1.0 + twice)
    repeated = joint(tol=1e-8, solver="ocas").fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-7)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-3)


def test_class_weights_are_those_of_scikit_learn(iris):
    X, y = iris
    weights = {"a": 1.0, "b": 3.0, "c": 0.5}
    own, other = joint(class_weight=weights, tol=1e-6).fit(X, y), theirs(class_weight=weights).fit(X, y)
    assert own.coef_ == pytest.approx(other.coef_, abs=1e-2)
    assert certify(other, X, y).relative_gap < 1e-3


@pytest.mark.parametrize("solver", ["ocas", "coordinate"])
def test_sparse_dense_single_and_threads(digits, solver):
    X, y = digits
    X = X[:200].astype(np.float32)
    dense = joint(solver=solver).fit(X, y[:200])
    sparse = joint(solver=solver).fit(sp.csr_matrix(X), y[:200])
    threads = joint(solver=solver, n_jobs=2).fit(X, y[:200])
    assert sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=2e-4)
    assert np.array_equal(threads.coef_, dense.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_that_was_stopped_goes_on(digits, solver, tmp_path):
    X, y = digits
    model = joint(solver=solver, max_iter=3, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_ITER
    model.save(tmp_path / "model", include_training_state=True)
    again = load(tmp_path / "model").set_params(max_iter=None).fit(X, y)
    model.set_params(max_iter=None).fit(X, y)
    assert model.status_ is again.status_ is Status.OPTIMAL
    assert model.n_iter_ > 3
    assert again.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [PENALISED, NONE], ids=str)
def test_a_warm_start_from_weights(iris, n_classes, options):
    X, y = iris
    y = y if n_classes == 3 else np.where(y == "b", "b", "other")
    model = LinearSVC(multi_class="crammer_singer", solver="ocas", warm_start=True, tol=1e-4, **options).fit(X, y)
    model.fit(X[1:], y[1:])  # other rows: only the weights are of use
    assert model.status_ is Status.OPTIMAL
    first = model.trace_["primal"][0]
    assert first <= 1.02 * model.certificate_.primal


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [PENALISED, NONE], ids=str)
def test_files_give_the_model_back(iris, n_classes, options, tmp_path):
    X, y = iris
    codes = np.searchsorted(["a", "b", "c"], y) if n_classes == 3 else (y == "b").astype(int)
    model = LinearSVC(multi_class="crammer_singer", **options).fit(X, codes)
    model.save(tmp_path / "own")
    again = load(tmp_path / "own")
    assert again.multi_class == "crammer_singer"
    assert np.array_equal(again.dual_, model.dual_)
    assert again.certificate_ == model.certificate_
    assert np.array_equal(again.trace_["primal"], model.trace_["primal"])
    assert certify(again, X, codes) == certify(model, X, codes)
    assert certify(model, X, codes).primal == pytest.approx(model.certificate_.primal, rel=1e-12)

    model.save(tmp_path / "text", format="liblinear")
    assert (tmp_path / "text").read_text().startswith("solver_type MCSVM_CS\n")
    text = load(tmp_path / "text")
    assert text.multi_class == "crammer_singer"
    assert np.array_equal(text.coef_, model.coef_)
    assert text.decision_function(X) == pytest.approx(model.decision_function(X))


def test_a_file_whose_parts_belong_to_another_form_is_refused(iris, tmp_path):
    from dataclasses import replace

    from softmargin.io.model_file import write_model

    X, y = iris
    joint().fit(X, y).save(tmp_path / "model")
    record = read_model(tmp_path / "model")
    write_model(tmp_path / "other", replace(record, params={**record.params, "multi_class": "ovr"}))
    with pytest.raises(ModelFileError, match="certificates for 3 sub-problems"):
        load(tmp_path / "other")


def test_a_model_without_rows_of_one_class_in_effect(iris):
    """A class whose rows have no weight has no weights either, and does not matter."""
    X, y = iris
    model = joint(tol=1e-6).fit(X, y, sample_weight=(y != "c").astype(float))
    assert model.status_ is Status.OPTIMAL
    assert model.coef_.shape == (3, 4)
    assert model.score(X[y != "c"], y[y != "c"]) == 1.0


def test_seeds_and_solver_objects(digits):
    X, y = digits
    first, same, other = (joint(solver=CoordinateDescent(seed=seed)).fit(X, y) for seed in (1, 1, 2))
    assert np.array_equal(first.coef_, same.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


def test_one_trace_and_one_certificate(iris):
    model = joint().fit(*iris)
    assert len(model.certificates_) == 1
    assert model.trace_["dual"][-1] <= model.certificate_.primal
    assert model.dual_[np.arange(150), np.searchsorted(["a", "b", "c"], iris[1])].max() == 0.0


@pytest.mark.parametrize("solver", ["ocas", "coordinate"])
def test_an_interrupt_leaves_the_best_model_so_far(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 60))
    y = (X @ rng.standard_normal((60, 8)) + 3.0 * rng.standard_normal((4000, 8))).argmax(axis=1)
    joint(solver=solver, tol=0.5).fit(X[:50], y[:50])  # compiled before the clock runs
    model = joint(C=10.0, solver=solver, tol=1e-12)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    timer.join()
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.dual <= model.certificate_.primal <= 10.0 * len(y) * (1 + 1e-9)
    assert model.coef_.shape == (8, 60)
