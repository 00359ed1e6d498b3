"""The progress line, on a terminal and in a log file."""

import io
import sys

from softmargin.core.progress import ProgressLine
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
    assert "iteration    4" in stream.getvalue()
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
