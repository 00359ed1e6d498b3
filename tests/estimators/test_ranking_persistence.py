"""RankSVM and OrdinalSVC to files and back: everything bit for bit, fits that go on, and files that lie."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from softmargin import CPA, OCAS, ModelFileError, OrdinalSVC, RankSVM, SoftmarginError, certify, load
from softmargin.data import columns
from softmargin.io.model_file import read_model, write_model

MODELS = [
    RankSVM(10.0, tol=1e-5),
    RankSVM(10.0, tol=1e-5, pairs="sum", query_weight="equal", solver="cpa"),
    OrdinalSVC(10.0, tol=1e-5),
    OrdinalSVC(10.0, tol=1e-5, thresholds="all"),
    OrdinalSVC(10.0, tol=1e-5, thresholds="immediate", solver="cpa"),
]


@pytest.fixture(autouse=True)
def quiet():
    """Fits here end early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def make_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(scores, [0.2, 0.5, 0.8]), scores)


@pytest.fixture(params=[(120, 5), (40, 90)], ids=["tall", "wide"], scope="module")
def data(request):
    return make_data(*request.param)


def queries(model, y):
    return {"qid": np.arange(len(y)) % 3} if isinstance(model, RankSVM) else {}


def saved_and_loaded(model, path, **options):
    model.save(path, **options)
    return load(path)


def public(model):
    return {name: value for name, value in vars(model).items() if not name.startswith("_")}


def assert_same(found, model):
    assert type(found) is type(model)
    found, model = public(found), public(model)
    assert found.keys() == model.keys()
    for name, value in model.items():
        if isinstance(value, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        elif name == "trace_":
            assert list(found[name]) == list(value)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("model", MODELS, ids=str)
class TestRoundTrip:
    def test_everything_comes_back(self, model, data, path):
        X, y = data
        model.fit(X, y, **queries(model, y))
        found = saved_and_loaded(model, path)
        assert_same(found, model)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        again = certify(found, X, y, **queries(model, y))
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        assert again.relative_gap <= 1.1e-5

    def test_the_same_model_gives_the_same_bytes(self, model, data, path):
        X, y = data
        model.fit(X, y, **queries(model, y)).save(path)
        first = path.read_bytes()
        load(path).save(path)
        assert path.read_bytes() == first

    def test_going_on_as_if_it_had_never_been_away(self, model, data, path):
        X, y = data
        model.set_params(max_iter=4, warm_start=True).fit(X, y, **queries(model, y))
        found = saved_and_loaded(model, path, include_training_state=True)
        assert certify(found, X, y, **queries(model, y)) == certify(model, X, y, **queries(model, y))
        for max_iter in (3, 60, None):  # long enough for planes to be dropped
            for part in (model, found):
                part.set_params(max_iter=max_iter).fit(X, y, **queries(model, y))
            np.testing.assert_array_equal(found.coef_, model.coef_)
            assert (found.certificate_, found.n_iter_) == (model.certificate_, model.n_iter_)
            found = saved_and_loaded(found, path, include_training_state=True)
        model.set_params(warm_start=False)

    def test_a_model_without_its_training_still_predicts_and_can_be_judged(self, model, data, path):
        X, y = data
        model.fit(X, y, **queries(model, y)).save(path)
        record = read_model(path)
        record.values.clear()
        for name in [name for name in record.arrays if name.startswith(("trace", "dual_"))]:
            del record.arrays[name]
        write_model(path, record)
        found = load(path)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        assert np.isnan(found.certificate_.dual)
        again = certify(found, X, y, **queries(model, y))
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
        assert again.relative_gap <= 1.2e-5


def test_parameters_and_labels(data, path):
    X, y = data
    names = np.array(["low", "fair", "good", "best"])
    model = OrdinalSVC(classes=list(names), cost="zero_one", class_weight={"low": 2.0}, solver=OCAS(mixing=0.2))
    model.fit(pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]), names[y])
    found = saved_and_loaded(model, path)
    assert_same(found, model)
    assert found.classes_.tolist() == ["low", "fair", "good", "best"]
    ranker = RankSVM(solver=CPA(), max_seconds=100.0).fit(X, y)
    assert_same(saved_and_loaded(ranker, path), ranker)


def test_infinite_thresholds(data, path):
    X, y = data
    model = OrdinalSVC(thresholds="all", classes=[-1, 0, 1, 2, 3, 4]).fit(X, y)
    found = saved_and_loaded(model, path)
    assert np.isinf(found.thresholds_[[0, -1]]).all()
    assert_same(found, model)


@pytest.mark.parametrize("model", [RankSVM(tol=1e-7), OrdinalSVC(thresholds="all", tol=1e-7)], ids=str)
def test_renumbered_columns(model, path, monkeypatch):
    X, y = make_data(40, 90)
    X = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    monkeypatch.setattr(columns, "MANY_COLUMNS", 2)
    monkeypatch.setattr(columns, "MANY_ENTRIES", 2)
    model.set_params(max_iter=4, warm_start=True).fit(X, y)
    found = saved_and_loaded(model, path, include_training_state=True)
    for part in (model, found):
        part.set_params(max_iter=None).fit(X, y)
    np.testing.assert_array_equal(found.coef_, model.coef_)


def assert_goes_on_alike(model, X, y, path):
    found = saved_and_loaded(model, path, include_training_state=True)
    for part in (model, found):
        part.fit(X, y)
    np.testing.assert_array_equal(found.coef_, model.coef_)
    assert found.certificate_ == model.certificate_


def test_of_many_rows_an_ordinal_line_search_begins_where_the_last_one_ended(path):
    X, y = make_data(70_000, 3)
    model = OrdinalSVC(1e-4, thresholds="all", tol=1e-9, max_iter=3, warm_start=True).fit(X, y)
    assert_goes_on_alike(model, X, y, path)


def test_large_scores_are_kept_in_double(path):
    X, y = make_data(120, 5)
    X[np.argmax(y)] *= 1000.0
    model = RankSVM(100.0, tol=1e-9, max_iter=12, warm_start=True).fit(X, y)
    [state] = model._state[1]
    assert {witness.scores.dtype for witness in state.planes.witnesses} == {np.dtype("f4"), np.dtype("f8")}
    assert_goes_on_alike(model, X, y, path)


def test_formats_of_classifiers_are_refused(data, path):
    X, y = data
    for model in (RankSVM().fit(X, y), OrdinalSVC().fit(X, y)):
        with pytest.raises(SoftmarginError, match="format='liblinear' is unknown"):
            model.save(path, format="liblinear")
        with pytest.raises(SoftmarginError, match="keeps no training state"):
            model.save(path, include_training_state=True)
    assert not path.exists()


def change_array(name, function):
    def apply(record):
        record.arrays[name] = function(record.arrays[name])

    return apply


def change_value(*keys, to):
    def apply(record):
        node = record.values
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = to

    return apply


STATE = "state.0.planes."
FIRST = ("state", "problems", 0)
LIES = {
    "rank": {
        "a matrix of weights": change_array("coef_", lambda a: a[None, :]),
        "thresholds": lambda record: record.arrays.update({"thresholds_": np.zeros(2)}),
        "pairs in words": change_value("n_pairs_", to="many"),
        "no pairs": lambda record: record.values.pop("n_pairs_"),
        "two traces": change_array("trace.lengths", lambda a: np.append(a, 0)),
        "another state": change_value("state", "type", to="OrdinalState"),
        "a hinge": change_value("state", "type", to="PlaneState"),
        "fewer scores": change_array(f"{STATE}witness_scores", lambda a: a[:, :-1]),
        "scores that are none": change_array(f"{STATE}witness_scores", lambda a: np.full_like(a, np.nan)),
        "scores in bits": change_array(f"{STATE}witness_scores", lambda a: a.astype(np.uint8)),
        "coefficients of one row": change_array(f"{STATE}witness_c", lambda a: np.ones((len(a), 1))),
        "fewer planes": change_array(f"{STATE}constants", lambda a: a[:-1]),
        "capacity without end": change_value(*FIRST, "planes.capacity", to=10**12),
        "a step in words": change_value(*FIRST, "best.hint.step", to="long"),
        "more than a step": change_value(*FIRST, "best.hint.risk", to=1.0),
    },
    "ordinal": {
        "fewer thresholds": change_array("thresholds_", lambda a: a[:-1]),
        "thresholds that fall": change_array("thresholds_", lambda a: a[::-1].copy()),
        "a threshold that is none": change_array("thresholds_", lambda a: np.append(a[:-1], np.nan)),
        "more classes": change_array("classes_", lambda a: np.append(a, 9)),
        "more margins": change_array("dual_", lambda a: np.c_[a, a]),
        "one class": lambda record: record.arrays.update({"classes_": np.zeros(1), "thresholds_": np.zeros(0)}),
        "fewer bits": change_array(f"{STATE}witness_bits", lambda a: a[:, :, :-1]),
        "flat bits": change_array(f"{STATE}witness_bits", lambda a: a[:, 0]),
        "a row beyond the end": change_array(f"{STATE}witness_rows", lambda a: a + 10**6),
        "fewer fractions": change_array(f"{STATE}witness_fractions", lambda a: a[:, :-1]),
    },
}


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """Files of models with their training states."""
    X, y = make_data(60, 4)
    folder = tmp_path_factory.mktemp("unfinished")
    models = {"rank": RankSVM(10.0, tol=1e-9), "ordinal": OrdinalSVC(tol=1e-9, thresholds="all")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models.items():
            model.set_params(max_iter=5).fit(X, y).save(folder / name, include_training_state=True)
    return folder


def written(path, record):
    write_model(path, record)
    return path


@pytest.mark.parametrize(("kind", "lie"), [(kind, lie) for kind, lies in LIES.items() for lie in lies])
def test_files_that_lie_are_refused(unfinished, path, kind, lie):
    record = read_model(unfinished / kind)
    LIES[kind][lie](record)
    with pytest.raises(ModelFileError):
        load(written(path, record))


def test_a_state_of_other_classes_is_refused_by_the_fit(unfinished, path):
    record = read_model(unfinished / "ordinal")
    for name in ("witness_rows", "witness_fractions"):
        record.arrays[STATE + name] = record.arrays[STATE + name][:, :-1].copy()
    write_model(path, record)
    with pytest.raises(SoftmarginError, match="the training state belongs to other classes"):
        load(path).set_params(warm_start=True).fit(*make_data(60, 4))


def test_a_state_of_other_rows_is_not_used(unfinished):
    X, y = make_data(80, 4)
    for kind in LIES:
        model = load(unfinished / kind)
        _, states = model._state
        other = type(model)(**model.get_params()).fit(X, y)
        model._state = (other._state[0], states)
        model.set_params(warm_start=True, max_iter=None, tol=1e-4).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-4
