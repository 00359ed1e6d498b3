"""What a command imports: training, tuning, evaluating and predicting start without scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import softmargin

FITS = [
    (),
    ("--loss", "squared_hinge"),
    ("--multi-class", "crammer_singer", "--no-intercept"),
    ("--kernel", "rbf"),
    ("--kernel", "linear", "--solver", "active_set"),
    ("--task", "regress"),
    ("--task", "regress", "--kernel", "rbf"),
    ("--task", "oneclass"),
    ("--task", "oneclass", "--kernel", "rbf"),
    ("--task", "rank"),
    ("--task", "ordinal"),
]
SEARCHES = [
    ("--Cs", "0.1,1"),
    ("--Cs", "0.1,1", "--kernel", "rbf", "--gammas", "0.1,1"),
    ("--Cs", "0.1,1", "--task", "regress"),
]
MANY = """
import sys
from softmargin.cli.main import main
for arguments in {commands!r}:
    sys.argv = ["softmargin", *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, 3), (arguments, end.code)
    assert "sklearn" not in sys.modules, arguments
"""


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = 3.0 + rng.standard_normal((60, 4))
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, np.digitize(X[:, 0], [2.5, 3.5]), str(path), zero_based=False)
    return path


def test_commands_do_not_import_scikit_learn(data, tmp_path):
    commands = []
    for k, options in enumerate(FITS):
        model = str(tmp_path / f"{k}.model")
        commands += [["train", str(data), model, "-q", *options], ["evaluate", model, str(data)]]
        commands += [["predict", model, str(data), str(tmp_path / f"{k}.txt")]]
    for k, options in enumerate(SEARCHES):
        commands += [["tune", str(data), str(tmp_path / f"tuned{k}"), "-q", "--cv", "2", "--widen", "0", *options]]
    stopped = str(tmp_path / "stopped.model")
    commands += [["train", str(data), stopped, "-q", "--max-iter", "1", "--solver", "ocas", "--tol", "1e-9"]]
    commands += [["train", str(data), stopped, "-q", "--resume"]]
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(commands=commands)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", FITS, ids=lambda options: " ".join(options) or "plain")
def test_a_machine_fits_what_its_estimator_fits(options, data, tmp_path, run):
    """The file of the command line loads as the estimator, which fits the same model in the same process."""
    path = tmp_path / "model"
    run("train", data, path, "-q", "-j", "1", *options)
    model = softmargin.load(path)
    X, y = softmargin.load_svmlight(data)
    again = type(model)(**model.get_params()).fit(X, y)
    for name in ("coef_", "dual_coef_", "intercept_", "thresholds_"):
        if name in vars(model):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.certificate_ == model.certificate_
