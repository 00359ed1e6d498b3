"""One large index in sparse data: columns that never occur cost no memory, and too many of them are refused."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin import LinearSVC, RankSVM, SoftmarginError

N_FEATURES = 2**31 - 1


@pytest.fixture
def narrow():
    X = sp.random(60, 5, 0.6, format="csr", random_state=0)
    return X, (X[:, [0]].toarray().ravel() > 0.3).astype(int)


def widened(X, n_features):
    """The last column moves to the end of so many."""
    return sp.csr_matrix((X.data, np.where(X.indices == 4, n_features - 1, X.indices), X.indptr), (60, n_features))


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearSVC(intercept="penalised"), RankSVM()], ids=repr)
def test_the_same_model_with_columns_that_never_occur(narrow, estimator):
    X, y = narrow
    expected = estimator.fit(X, y).coef_.ravel()
    primal = estimator.certificate_.primal
    found = estimator.fit(widened(X, 10**6), y).coef_.ravel()
    np.testing.assert_array_equal(found[[0, 1, 2, 3, -1]], expected)
    assert np.count_nonzero(found) == np.count_nonzero(expected)
    assert estimator.certificate_.primal == primal


def test_a_fit_that_was_stopped_goes_on(narrow):
    X, y = narrow
    X = widened(X, 10**6)
    model = LinearSVC(solver="ocas", tol=1e-9, max_iter=3, warm_start=True)
    with pytest.warns(UserWarning, match="limit on iterations"):
        model.fit(X, y)
    model.set_params(max_iter=None).fit(X, y)
    straight = LinearSVC(solver="ocas", tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.coef_, straight.coef_)


def test_no_dense_vector_is_made_of_them(tmp_path):
    """Training and predicting with 2^31 - 1 columns, of which each vector would take 16 GiB, within half of that."""
    code = f"""
        import resource
        import numpy as np, scipy.sparse as sp
        from softmargin import SVC, load
        X = sp.csr_matrix((np.ones(6), [0, 1, 0, 1, 2, {N_FEATURES - 1}], [0, 1, 2, 3, 4, 6]), shape=(5, {N_FEATURES}))
        for kernel in ("linear", "rbf", "poly", "laplacian"):
            SVC(kernel=kernel).fit(X, [0, 1, 0, 1, 1])
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        for kernel in ("linear", "rbf", "poly", "laplacian"):
            model = SVC(kernel=kernel).fit(X, [0, 1, 0, 1, 1])
            model.save({str(tmp_path / "m")!r})
            assert load({str(tmp_path / "m")!r}).predict(X).tolist() == model.predict(X).tolist()
        model = SVC(kernel="rbf").fit(X, [0, 1, 0, 1, 1])
        model.save({str(tmp_path / "t")!r}, format="libsvm")
        assert load({str(tmp_path / "t")!r}).predict(X).tolist() == model.predict(X).tolist()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_more_weights_than_memory_are_refused_beforehand(narrow, monkeypatch):
    X, y = narrow
    monkeypatch.setattr("softmargin.estimators.linear_work.free_bytes", lambda: 2**20)
    with pytest.raises(SoftmarginError, match=r"weights of 10000000 features need .* 5 of the features occur"):
        LinearSVC().fit(widened(X, 10**7), y)
