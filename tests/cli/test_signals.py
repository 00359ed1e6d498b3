"""Ctrl-C, SIGTERM and SIGHUP stop a fit, and the model so far is saved; a second signal does not lose it.

Signals are sent to processes and sessions of their own, which set their handlers themselves.
"""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import softmargin

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a pseudo terminal")
LIMIT = 100.0  # seconds


# Fits that take minutes on a fast machine, although an iteration takes less than a hundredth of a second: the number of
# columns and the options. Every row of the kernel problem stays in the cache, which takes 36 megabytes.
FITS = {
    "linear": (200, ["-C", "1e3", "--solver", "cpa"]),
    "kernel": (5, ["-C", "1e6", "--kernel", "rbf", "--gamma", "0.01", "--solver", "smo"]),
}


@pytest.fixture
def hard(request, tmp_path):
    """The arguments of a fit that does not end before it is stopped: a linear one, or the one that a test asks for."""
    n_columns, options = FITS[getattr(request, "param", "linear")]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, n_columns))
    y = np.where(X[:, 0] + 2 * rng.standard_normal(3000) > 0, 1, -1)
    np.savez(tmp_path / "hard.npz", X=X, y=y)
    return ["train", tmp_path / "hard.npz", tmp_path / "m", *options, "--tol", "1e-12", "--jobs", "1"]


class Screen:
    """A pseudo terminal for the standard error of a program, and what was written to it."""

    def __init__(self):
        self._master, self.end = pty.openpty()
        self.seen = b""

    def wait_for(self, words):
        """Read until the words appear (or, for None, until nobody writes any more)."""
        deadline = time.monotonic() + LIMIT
        while words is None or words not in self.seen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{words!r} did not appear: {self.seen[-2000:]!r}"
            try:
                part = os.read(self._master, 4096)
            except OSError:
                part = b""
            if not part:
                break
            self.seen += part
        return self.seen

    def close(self):
        os.close(self._master)


@pytest.fixture
def screen():
    return Screen()


def started(start, screen, *arguments, **options):
    child = start(*arguments, stderr=screen.end, **options)
    os.close(screen.end)
    return child


def assert_stopped_and_saved(child, tmp_path):
    out = child.communicate(timeout=LIMIT)[0].decode()
    assert child.returncode == 3, out
    assert "INTERRUPTED" in out
    model = softmargin.load(tmp_path / "m")
    assert model.certificate_.relative_gap < 1
    assert hasattr(model, "_state")
    assert [path.name for path in tmp_path.glob(".softmargin*")] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("hard", ["linear", "kernel"], indirect=True)
def test_a_signal_saves_the_best_model_so_far(start, screen, hard, tmp_path, number):
    child = started(start, screen, *hard)
    screen.wait_for(b"iteration 2")
    child.send_signal(number)
    assert b"--resume" in screen.wait_for(None)
    assert_stopped_and_saved(child, tmp_path)
    screen.close()


def test_more_signals_while_it_stops_and_saves_do_not_lose_the_model(start, screen, hard, tmp_path):
    """The judge and the saving are made slow, so that the signals surely come while they run."""
    slow = (
        "import time; from softmargin.estimators import persistence as p; old = p.record_of\n"
        "def record_of(*args):\n"
        "    print('saving', flush=True); time.sleep(1.0); return old(*args)\n"
        "p.record_of = record_of\n"
    )
    child = started(start, screen, *hard, prelude=slow)
    screen.wait_for(b"iteration 2")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        child.send_signal(number)
        time.sleep(0.02)
    assert child.stdout.readline() == b"saving\n"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        child.send_signal(number)
        time.sleep(0.05)
    assert b"the model so far is judged and saved" in screen.wait_for(None)
    assert_stopped_and_saved(child, tmp_path)
    screen.close()


def test_a_terminal_that_is_gone_does_not_lose_the_model(start, screen, hard, tmp_path):
    """After the terminal is closed, nothing can be written to it."""
    child = started(start, screen, *hard, stdout=subprocess.DEVNULL)
    screen.wait_for(b"iteration 2")
    screen.close()
    child.send_signal(signal.SIGHUP)
    child.wait(timeout=LIMIT)
    assert softmargin.load(tmp_path / "m").status_.name == "INTERRUPTED"


def test_signals_that_the_user_ignores_stay_ignored(start, screen, hard, tmp_path):
    """As nohup does, and shells for background jobs; SIGTERM stops all the same."""
    ignore = "import signal; " + "".join(f"signal.signal(signal.{n}, signal.SIG_IGN); " for n in ("SIGHUP", "SIGINT"))
    program = "from softmargin.cli.main import main; main()"
    command = [sys.executable, "-c", ignore + program, *map(str, hard)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=screen.end, start_new_session=True)
    os.close(screen.end)
    try:
        screen.wait_for(b"iteration 2")
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGINT)
        screen.seen = b""
        screen.wait_for(b"iteration 4")
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        screen.wait_for(None)
        assert_stopped_and_saved(child, tmp_path)
    finally:
        child.kill()
        screen.close()


def test_a_signal_before_the_fit_has_begun_writes_nothing(start, hard, tmp_path):
    """The data come from a pipe that stays open."""
    child = start("train", "-", tmp_path / "m", stdin=subprocess.PIPE)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=LIMIT)
    assert child.returncode != 0
    assert not (tmp_path / "m").exists()


def test_one_bar_for_several_classes(start, screen, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20))
    np.savez(tmp_path / "d.npz", X=X, y=np.argmax(X[:, :4], axis=1))
    child = started(start, screen, "train", tmp_path / "d.npz", tmp_path / "m", "--tol", "1e-6")
    text = screen.wait_for(None)
    out = child.communicate(timeout=LIMIT)[0]
    assert child.returncode == 0
    assert b"4 of 4 sub-problems" in text
    assert text.count(b"duality gap") <= 1
    assert b"OPTIMAL" in out
    screen.close()
