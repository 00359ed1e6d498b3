"""The progress line, on a terminal and in a log file."""

import io
import sys

import pytest

from softmargin.core.progress import Closing, ProgressLine
from softmargin.core.trace import Record


class Terminal(io.StringIO):
    def isatty(self):
        return True


def records(n):
    return [Record(k, 0.2 * k, 10.0 + 0.5**k, 10.0, k, 2 * k) for k in range(n)]


def test_a_log_file_gets_a_line_for_each_factor_of_ten():
    stream = io.StringIO()
    line = ProgressLine("LinearSVC", 1e-3, stream=stream)
    for record in records(12):
        line(record)
    line.close("Done.")
    text = stream.getvalue().splitlines()
    assert 4 <= len(text) <= 6
    assert all(word in text[0] for word in ("iteration", "primal", "bound", "gap", "(1e-03)"))
    assert text[-1] == "LinearSVC  Done."


def test_a_terminal_gets_one_line_that_is_rewritten():
    stream = Terminal()
    line = ProgressLine("LinearSVC", 1e-3, stream=stream)
    for record in records(5):
        line(record)
    line.close("Done.")
    assert "iteration 4" in stream.getvalue()
    assert stream.getvalue().rstrip().endswith("Done.")


def test_without_rich_the_line_is_plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.live", None)
    stream = Terminal()
    line = ProgressLine("LinearSVC", 1e-3, stream=stream)
    for record in records(3):
        line(record)
    line.close()
    assert stream.getvalue().count("\r") == 4  # three records, and the last one again to end the line
    assert stream.getvalue().endswith("\n")


def test_several_solves_do_not_rewrite_each_other():
    stream = Terminal()
    for name in "ab":
        line = ProgressLine(name, 1e-3, alone=False, stream=stream)
        for record in records(3):
            line(record)
        line.close()
    assert "\r" not in stream.getvalue()


def test_the_bar_closes_on_a_log_scale_and_tells_the_time_left():
    closing = Closing(1e-4)
    for k in range(5):  # a factor of ten each second: the gap is closed after four
        closing.tell(Record(k, float(k), 1.0, 1.0 - 10.0**-k, k, k))
        assert closing.share == pytest.approx(k / 4)
        assert closing.bar().count("#") == 5 * k
        if k >= 2:
            assert closing.seconds_left == pytest.approx(4.0 - k, abs=1e-9)
    assert Closing(1e-3).seconds_left is None


def test_a_gap_that_grows_or_is_not_a_number_does_not_open_the_bar_again():
    closing = Closing(1e-2)
    for dual in (0.0, 0.9, 0.5, float("nan"), -float("inf")):
        closing.tell(Record(0, 1.0, 1.0, dual, 0, 0))
    assert closing.share == pytest.approx(0.5)
    assert closing.seconds_left is None


def test_the_line_on_a_terminal_shows_bar_gap_and_time():
    line = ProgressLine("LinearSVC", 1e-3, stream=Terminal())
    for record in records(8):
        line(record)
    text = line.bar(records(8)[-1])
    assert text.startswith("[####")
    assert "gap 7.8e-04 (tol 1e-03)  1.4 s  ~1 s left" in text
    line.close()
