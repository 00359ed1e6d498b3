"""The program inside this process or in one of its own, and a file to train on."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from softmargin.cli.app import app

# A test that was started in the background inherits an ignored SIGINT; a program at a terminal does not.
PROGRAM = (
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from softmargin.cli.main import main; main()"
)


@pytest.fixture
def run():
    runner = CliRunner()

    def invoke(*arguments, code=0, given=None):
        result = runner.invoke(app, [str(argument) for argument in arguments], input=given)
        assert code is None or result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def start():
    """The program in a process and a session of its own, which ends with the test."""
    children = []

    def start(*arguments, prelude="", **options):
        command = [sys.executable, "-c", prelude + PROGRAM, *map(str, arguments)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True} | options
        children.append(subprocess.Popen(command, **options))
        return children[-1]

    yield start
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
        child.communicate(timeout=30)


@pytest.fixture
def cancer(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    path = tmp_path / "cancer.svm"
    dump_svmlight_file(X, np.where(y, 1, -1), str(path), zero_based=False)
    return path
