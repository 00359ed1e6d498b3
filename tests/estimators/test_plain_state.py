"""Fitted models through skops, MLflow, pickle and copies: nothing is lost, and few types have to be trusted."""

import copy
import pickle
import warnings
from importlib import import_module

import numpy as np
import pytest
import sklearn
import skops.io
from sklearn.base import is_outlier_detector
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from softmargin import (
    CPA,
    IPM,
    OCAS,
    SGD,
    SKOPS_TRUSTED_TYPES,
    SMO,
    SVC,
    SVR,
    ActiveSet,
    BlockSMO,
    ConvergenceWarning,
    KernelOCAS,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    OrdinalSVC,
    Pegasos,
    RankSVM,
    load,
)

MODELS = [
    *(LinearSVC(solver=solver) for solver in ("auto", OCAS(mixing=0.2), CPA(), Pegasos(seed=1), SGD(seed=1))),
    *(SVC(solver=solver) for solver in ("auto", "active_set", BlockSMO(size=16), SMO(), ActiveSet(start="cold"))),
    SVC(kernel="linear", solver=IPM()),
    SVC(solver=KernelOCAS(mixing=0.2)),
    SVC(kernel="precomputed"),
    *(RankSVM(solver=solver) for solver in ("auto", CPA())),
    *(OrdinalSVC(thresholds=kind) for kind in ("fitted", "immediate", "all")),
    *(LinearSVR(solver=solver, epsilon=0.1) for solver in ("auto", CPA())),
    *(SVR(solver=solver) for solver in ("auto", SMO(), ActiveSet(start="cold"))),
    SVR(kernel="linear", solver=IPM()),
    SVR(kernel="precomputed"),
    *(LinearOneClassSVM(nu=0.2, solver=solver) for solver in ("auto", OCAS(mixing=0.2))),
    *(OneClassSVM(nu=0.2, solver=solver) for solver in ("auto", "active_set", BlockSMO(size=16))),
    OneClassSVM(kernel="precomputed"),
]


def through_skops(model):
    return skops.io.loads(skops.io.dumps(model), trusted=SKOPS_TRUSTED_TYPES)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def fitted(model, X, y, **params):
    if is_outlier_detector(model):
        X = X + 2.0  # a plane tells nothing about rows on all sides of the origin
    if getattr(model, "kernel", "") == "precomputed":
        X = X @ X.T
    model = copy.deepcopy(model).set_params(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y), X


def records(model):
    traces = model.trace_ if isinstance(model.trace_, list) else [model.trace_]
    return [list(trace) for trace in traces]


def assert_same(found, model, X):
    assert type(found) is type(model)
    assert found.get_params() == model.get_params()
    for name in ("predict", "decision_function", "score_samples"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(found, name)(X), getattr(model, name)(X))
    for name in ("status_", "certificate_", "certificates_", "seconds_"):
        assert getattr(found, name) == getattr(model, name)
    assert records(found) == records(model)
    left_out = {"_training"} if getattr(model, "kernel", "") == "precomputed" else set()  # perhaps a memory map
    assert vars(found).keys() == vars(model).keys() - left_out


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(
    ("n_classes", "params"), [(2, {}), (3, {}), (3, {"warm_start": True}), (3, {"max_iter": 2, "tol": 1e-9})], ids=str
)
def test_a_fitted_model_comes_back(make_noisy, model, n_classes, params):
    model, X = fitted(model, *make_noisy(n=80, n_classes=n_classes), **params)
    for through in (through_skops, through_pickle, copy.copy, copy.deepcopy):
        assert_same(through(model), model, X)


@pytest.mark.parametrize("through", [through_skops, through_pickle])
@pytest.mark.parametrize(
    "model", [LinearSVC(solver="ocas"), RankSVM(), OrdinalSVC(thresholds="all"), LinearSVR()], ids=str
)
def test_a_fit_goes_on_exactly_where_it_stopped(make_noisy, model, through):
    X, y = make_noisy(n_classes=2)
    stopped, _ = fitted(model, X, y, max_iter=3, tol=1e-6)
    whole, _ = fitted(model, X, y, tol=1e-6)
    resumed = through(stopped).set_params(max_iter=None, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("through", [through_skops, through_pickle])
@pytest.mark.parametrize("model", [SVC(), SVR(), OneClassSVM()], ids=str)
def test_a_kernel_fit_goes_on_from_where_it_stopped(make_noisy, model, through):
    X, y = make_noisy(n_classes=2)
    whole, _ = fitted(model, X, y, tol=1e-6)
    stopped, X = fitted(model, X, y, max_iter=20, tol=1e-6, solver="smo", warm_start=True)
    resumed = through(stopped).set_params(max_iter=None).fit(X, y)
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-5)
    assert np.all(np.ravel(resumed.n_iter_) >= np.ravel(stopped.n_iter_))


@pytest.mark.parametrize("through", [through_skops, through_pickle])
def test_learning_goes_on(make_noisy, through):
    X, y = make_noisy()
    for model in (SVC(solver="active_set"), SVR(solver="active_set")):
        model = through(model.fit(X[:150], y[:150])).partial_fit(X[150:], y[150:])
        assert model.certificate_.relative_gap <= 1e-3
        np.testing.assert_array_equal(model.row_ids_, np.arange(len(y)))


@pytest.mark.parametrize("through", [through_pickle, copy.deepcopy])
@pytest.mark.parametrize("model", [LinearSVR(), SVR(), LinearOneClassSVM(), OneClassSVM()], ids=str)
def test_weights_are_routed_to_a_model_that_asked_for_them(make_noisy, model, through):
    """skops 0.16 stores no metadata requests, not of scikit-learn's own estimators either."""
    X, y = make_noisy(n=80)
    weights = np.linspace(0.1, 2.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        asked = through(copy.deepcopy(model).set_fit_request(sample_weight=True).fit(X + 2.0, y))
        routed = make_pipeline(MinMaxScaler(), asked).fit(X, y, sample_weight=weights)
    scaled = MinMaxScaler().fit_transform(X)
    direct = copy.deepcopy(model).fit(scaled, y, weights)
    np.testing.assert_array_equal(routed.predict(X), direct.predict(scaled))
    assert routed[-1].certificate_.primal == direct.certificate_.primal


@pytest.mark.parametrize(
    ("model", "form"),
    [
        (LinearSVC(), "liblinear"),
        (LinearSVR(), "liblinear"),
        (LinearOneClassSVM(), "liblinear"),
        (SVC(), "libsvm"),
        (SVR(), "libsvm"),
        (OneClassSVM(), "libsvm"),
    ],
    ids=str,
)
def test_an_imported_model_has_no_status_and_comes_back_as_well(binary, tmp_path, model, form):
    model, X = fitted(model, *binary)
    model.save(tmp_path / "model", format=form)
    imported = load(tmp_path / "model")
    found = through_skops(imported)
    np.testing.assert_array_equal(found.predict(X), imported.predict(X))
    assert np.isnan(found.certificate_.primal)


def test_the_trusted_types_are_there_and_no_others():
    """A name that has moved would be trusted in vain."""
    for name in SKOPS_TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert getattr(import_module(module), kind).__module__ == module
    assert len(SKOPS_TRUSTED_TYPES) == len(set(SKOPS_TRUSTED_TYPES))


def test_every_estimator_and_solver_is_trusted():
    names = {name.rpartition(".")[2] for name in SKOPS_TRUSTED_TYPES}
    kinds = {type(model).__name__ for model in MODELS}
    assert {"SVR", "LinearSVR", "OneClassSVM", "LinearOneClassSVM"} <= kinds <= names


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_calibrated_model_through_skops(binary, method):
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), method=method).fit(*binary)
    np.testing.assert_array_equal(through_skops(model).predict_proba(binary[0]), model.predict_proba(binary[0]))


def test_skops_loads_nothing_of_ours_that_is_not_trusted(binary):
    stored = skops.io.dumps(LinearSVC(solver=OCAS()).fit(*binary))
    assert set(skops.io.get_untrusted_types(data=stored)) <= set(SKOPS_TRUSTED_TYPES)
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException, match="LinearSVC"):
        skops.io.loads(stored)


@pytest.mark.filterwarnings("ignore")  # of MLflow and what it imports
def test_mlflow_round_trip(three_classes, tmp_path):
    flavour = pytest.importorskip(
        "mlflow.sklearn", reason="MLflow, more than a gigabyte with what it needs, is missing"
    )
    X, y = three_classes
    model = SVC().fit(X, y)
    flavour.save_model(
        model, str(tmp_path / "model"), pip_requirements=["softmargin"], skops_trusted_types=SKOPS_TRUSTED_TYPES
    )
    assert_same(flavour.load_model(str(tmp_path / "model")), model, X)
