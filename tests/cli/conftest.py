"""The program inside this process, and a file to train on."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from softmargin.cli.app import app


@pytest.fixture
def run():
    runner = CliRunner()

    def invoke(*arguments, code=0):
        result = runner.invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def cancer(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    path = tmp_path / "cancer.svm"
    dump_svmlight_file(X, np.where(y, 1, -1), str(path), zero_based=False)
    return path
