"""A training state from a file that somebody changed: the fit that goes on refuses it, or ends with numbers."""

import warnings

import numpy as np
import pytest

from softmargin import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    ModelFileError,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SoftmarginError,
    load,
)
from softmargin.io.model_file import read_model, write_model

MODELS = {
    "planes": LinearSVC(solver="ocas", max_iter=4, tol=1e-9),
    "planes of wide rows": LinearSVC(solver="ocas", max_iter=4, tol=1e-9),
    "coordinates": LinearSVC(solver="coordinate", max_iter=1, tol=1e-9, warm_start=True),
    "sgd": LinearSVC(solver="sgd", max_iter=2, tol=1e-9, random_state=0),
    "ranking": RankSVM(max_iter=4, tol=1e-9),
    "ordinal": OrdinalSVC(thresholds="all", max_iter=4, tol=1e-9),
    "kernel": SVC(solver="smo", max_iter=10, tol=1e-9),
    "linear regression": LinearSVR(max_iter=4, tol=1e-9),
    "regression": SVR(solver="smo", max_iter=10, tol=1e-9),
    "linear one-class": LinearOneClassSVM(max_iter=2, tol=1e-9, warm_start=True),
    "one-class": OneClassSVM(solver="smo", max_iter=10, tol=1e-9, warm_start=True),
}


@pytest.fixture(autouse=True)
def quiet():
    """Fits here end early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=MODELS)
def stopped(request, tmp_path, make_noisy):
    """The file of a fit that was stopped, and what it was trained on."""
    X, y = make_noisy(n=60, seed=1)
    if request.param == "planes of wide rows":
        X = np.tile(X, (1, 20))
    MODELS[request.param].fit(X, y).save(tmp_path / "model", include_training_state=True)
    return tmp_path / "model", X, y


def float_arrays(record):
    """The names of the state's arrays that numbers can be put into."""
    state = {name: array for name, array in record.arrays.items() if name.startswith("state.")}
    return [name for name, array in state.items() if array.dtype == float and array.size]


def goes_on(path, X, y, factor=1.0):
    """Goes on at a C that is larger by this factor, where there is a C."""
    model = load(path)
    model.set_params(warm_start=True, max_iter=6, **({"C": factor * model.C} if "C" in model.get_params() else {}))
    model.fit(X, y)
    return model


def test_an_untouched_state_goes_on(stopped):
    path, X, y = stopped
    assert goes_on(path, X, y).certificate_.primal < np.inf


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_refused(stopped, number):
    path, _, _ = stopped
    record = read_model(path)
    for name in float_arrays(record):
        array = record.arrays[name].copy()
        array.flat[-1] = number
        write_model(path, type(record)(record.kind, record.params, record.values, record.arrays | {name: array}))
        with pytest.raises(ModelFileError, match="NaN or infinity"):
            load(path)


@pytest.mark.parametrize("factor", [1.0, 1e5])
@pytest.mark.parametrize("number", [1e308, -1e308, 1e160])
def test_huge_numbers_end_in_our_error_or_in_a_finite_model(stopped, number, factor):
    path, X, y = stopped
    record = read_model(path)
    n_refused = 0
    for name in float_arrays(record):
        array = record.arrays[name].copy()
        array.flat[0] = number
        write_model(path, type(record)(record.kind, record.params, record.values, record.arrays | {name: array}))
        try:
            model = goes_on(path, X, y, factor)
        except SoftmarginError:
            n_refused += 1
            continue
        for part in ("coef_", "intercept_", "dual_coef_"):
            assert np.isfinite(getattr(model, part, 0.0)).all(), name
    assert n_refused > 0


@pytest.mark.parametrize("number", [-1e308, -1e150, -1e20, -1.0, 1e20, 1e150])
def test_planes_that_contradict_each_other_end_in_our_error_or_in_a_finite_model(stopped, number):
    """The inner products of planes are a positive semi-definite matrix, unless somebody changed the file."""
    path, X, y = stopped
    record = read_model(path)
    for name in ("state.0.planes.gram", "state.0.planes.vectors"):
        for k in range(min(12, record.arrays[name].size) if name in record.arrays else 0):
            array = record.arrays[name].copy()
            array.flat[k] = number
            write_model(path, type(record)(record.kind, record.params, record.values, record.arrays | {name: array}))
            try:
                model = goes_on(path, X, y)
            except SoftmarginError:
                continue
            assert np.isfinite(model.coef_).all(), (name, k)


@pytest.mark.parametrize("number", [-1, 2**60])
def test_counts_that_no_solver_has(stopped, number):
    path, _, _ = stopped
    record = read_model(path)
    numbers = record.values["state"]["problems"][0]
    for name in [name for name in numbers if type(numbers[name]) is int and name != "seed"]:
        before, numbers[name] = numbers[name], number
        write_model(path, record)
        with pytest.raises(ModelFileError, match=r"cannot be|contradict"):
            load(path)
        numbers[name] = before


def test_a_state_that_has_overflowed_is_not_kept_and_the_model_is(tmp_path, make_noisy):
    """SGD may take steps that are too long: there is nothing to go on from, but the best point so far is good."""
    X, y = make_noisy(n=60, seed=1)
    model = MODELS["sgd"].fit(X, y)
    key, [state] = model._state
    model._state = key, [type(state)(**(vars(state) | {"w": np.full_like(state.w, np.inf)}))]
    model.save(tmp_path / "model", include_training_state=True)
    np.testing.assert_array_equal(load(tmp_path / "model").coef_, model.coef_)
    assert np.isfinite(goes_on(tmp_path / "model", X, y).coef_).all()
