"""Regressions and one-class models of LIBLINEAR and LIBSVM on the command line: they are used like ours."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes

import softmargin

# (arguments of train, the format, what certify must be told)
CASES = {
    "LinearSVR": (["regress", "-C", "0.5", "--epsilon", "5", "--no-intercept"], "liblinear", {"C": 0.5, "epsilon": 5}),
    "SVR": (["regress", "-C", "50", "--epsilon", "5", "--kernel", "rbf"], "libsvm", {"C": 50, "epsilon": 5}),
    "LinearOneClassSVM": (["oneclass", "--nu", "0.2"], "liblinear", {"nu": 0.2}),
    "OneClassSVM": (["oneclass", "--nu", "0.2", "--kernel", "rbf"], "libsvm", {"nu": 0.2}),
}


@pytest.fixture
def diabetes(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    path = tmp_path / "diabetes.svm"
    dump_svmlight_file(np.round(X, 4) + 0.2, y, str(path), zero_based=False)
    return path


def flag(name):
    return "-C" if name == "C" else f"--{name}"


@pytest.mark.parametrize("name", CASES)
def test_they_are_used_like_ours(run, diabetes, tmp_path, name):
    options, form, problem = CASES[name]
    model, text = tmp_path / "m", tmp_path / "m.txt"
    run("train", diabetes, model, "--task", *options, "-q")
    softmargin.load(model).save(text, format=form)
    ours, theirs = (np.array(run("predict", path, diabetes).stdout.split(), dtype=float) for path in (model, text))
    np.testing.assert_allclose(theirs, ours, rtol=1e-12)
    evaluated = [json.loads(run("evaluate", path, diabetes, "--json").stdout) for path in (model, text)]
    assert evaluated[1] == pytest.approx(evaluated[0])
    assert json.loads(run("info", text, "--json").stdout)["estimator"] == name
    given = [word for key, value in problem.items() for word in (flag(key), value)]
    judged = json.loads(run("certify", text, diabetes, *given, "--json").stdout)
    assert judged["primal"] == pytest.approx(softmargin.load(model).certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_what_they_do_not_say_must_be_given(run, diabetes, tmp_path, name):
    options, form, problem = CASES[name]
    model, text = tmp_path / "m", tmp_path / "m.txt"
    run("train", diabetes, model, "--task", *options, "-q")
    softmargin.load(model).save(text, format=form)
    for key, value in problem.items():
        given = [word for other in problem.keys() - {key} for word in (flag(other), problem[other])]
        error = run("certify", text, diabetes, *given, code=1).stderr
        assert f"does not say which {key}" in error
        assert f"give {flag(key)}." in error
        assert f"leave {flag(key)} out" in run("certify", model, diabetes, flag(key), value, code=1).stderr
    for key in {"C", "epsilon", "nu"} - problem.keys():
        error = run("certify", text, diabetes, flag(key), "0.5", code=1).stderr
        assert f"holds a {name} model, which has no {key}: drop {flag(key)}." in error
