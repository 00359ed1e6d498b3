"""The progress of a fit, on a terminal, in a notebook and in a log file."""

import io
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

from softmargin.core.progress import Closing, Pace, Progress
from softmargin.core.trace import Record


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Hands:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def records(n):
    return [Record(k, 0.2 * k, 10.0 + 0.5**k, 10.0, k, 2 * k) for k in range(n)]


def shown(n, *, titles=("LinearSVC",), tol=1e-3, stream=None):
    """A progress after n records of each part, a fifth of a second apart, and where it is shown."""
    stream, clock = stream or Terminal(), Hands()
    progress = Progress(titles, tol, stream=stream, clock=clock)
    for part in progress.parts:
        for record in records(n):
            part(record)
            clock.seconds += 0.2
    return progress, stream


def test_a_log_file_gets_a_line_for_each_factor_of_ten():
    progress, stream = shown(12, stream=io.StringIO())
    progress.parts[0].close("Done.")
    text = stream.getvalue().splitlines()
    assert 4 <= len(text) <= 6
    assert all(word in text[0] for word in ("iteration", "primal", "bound", "gap", "(1e-03)"))
    assert text[-1] == "LinearSVC  Done."


def test_a_terminal_gets_one_line_that_is_rewritten():
    progress, stream = shown(5)
    progress.parts[0].close("Done.")
    assert "iteration 4" in stream.getvalue()
    assert stream.getvalue().rstrip().endswith("LinearSVC  Done.")


def test_without_rich_the_line_is_plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.live", None)
    progress, stream = shown(3)
    progress.parts[0].close()
    assert stream.getvalue().count("\r") == 5  # that it begins, three records, and the last one again
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("with_rich", [True, False])
def test_a_fit_that_fails_before_its_first_record_leaves_nothing_behind(monkeypatch, with_rich):
    if not with_rich:
        monkeypatch.setitem(sys.modules, "rich.live", None)
    progress, stream = shown(0)
    progress.parts[0].close()
    assert "starting" in stream.getvalue()
    assert stream.getvalue().endswith(("\r", "\x1b[2K"))


def test_several_sub_problems_share_one_bar():
    progress, stream = shown(12, titles=("a", "b", "c"), tol=1e-5)
    progress.parts[2](Record(13, 1.0, 10.0, 10.0, 1, 1))  # without a gap one of them is done
    text = progress.text()
    assert text.startswith("1 of 3 sub-problems  gap 4.9e-05")
    for part in progress.parts[:2]:
        part.close("Done.")
    assert not stream.getvalue().endswith("Done.\n")
    progress.parts[2].close("Done.")
    assert stream.getvalue().count("Done.") == 1
    assert "a  " not in stream.getvalue()


def test_sub_problems_that_end_in_different_ways_are_counted():
    progress, stream = shown(3, titles=("a", "b", "c"))
    for part, ending in zip(progress.parts, ("Good.", "Bad.", "Good."), strict=True):
        part.close(ending)
    assert stream.getvalue().endswith("2 of 3 sub-problems: Good.\n1 of 3 sub-problems: Bad.\n")


def test_sub_problems_in_several_threads():
    progress = Progress(["a", "b"], 1e-3, stream=Terminal())
    threads = [threading.Thread(target=lambda part=part: [part(r) for r in records(50)]) for part in progress.parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert progress.text().startswith("2 of 2 sub-problems")
    for part in progress.parts:
        part.close()


def test_the_bar_closes_on_a_log_scale_and_tells_the_time_left():
    closing, pace = Closing(1e-4), Pace()
    for k in range(5):  # a factor of ten each second: the gap is closed after four
        closing.tell(Record(k, float(k), 1.0, 1.0 - 10.0**-k, k, k))
        assert closing.share == pytest.approx(k / 4)
        pace.tell(float(k), closing.share)
        if 2 <= k < 4:
            assert pace.seconds_left == pytest.approx(4.0 - k, abs=1e-9)
    assert Pace().seconds_left is None


def test_a_gap_that_grows_or_is_not_a_number_does_not_open_the_bar_again():
    closing = Closing(1e-2)
    for dual in (0.0, 0.9, 0.5, float("nan"), -float("inf")):
        closing.tell(Record(0, 1.0, 1.0, dual, 0, 0))
    assert closing.share == pytest.approx(0.5)


def test_a_fit_that_is_held_up_for_a_while_does_not_promise_hours():
    """A fit of four seconds that hardly moves in the second one was said to take hours."""
    pace = Pace()
    longest = 0.0
    for k in range(41):
        seconds = 0.1 * k
        share = 0.4 * min(seconds, 1.0) + 1e-5 * k + 0.299 * max(0.0, seconds - 2.0)
        pace.tell(seconds, min(share, 1.0))
        longest = max(longest, pace.seconds_left or 0.0)
    assert 0.0 < longest < 30.0


def test_no_estimate_at_the_very_beginning():
    pace = Pace()
    for k in range(9):
        pace.tell(0.1 * k, 0.001 * k)
    assert pace.seconds_left is None


def test_the_line_on_a_terminal_shows_bar_gap_and_time():
    progress, stream = shown(8)
    assert "gap 7.8e-04 (tol 1e-03)  1.6 s" in progress.text()
    assert "[####" in stream.getvalue()
    progress.parts[0].close()


def test_seconds_are_those_on_the_wall():
    """The seconds of a record leave out compilation, and those of several classes pass side by side."""
    clock = Hands()
    progress = Progress(["LinearSVC"], 1e-3, stream=Terminal(), clock=clock)
    clock.seconds = 30.0
    progress.parts[0](records(2)[-1])
    assert "  30.0 s" in progress.text()
    progress.parts[0].close()


def test_compiling_is_shown():
    from numba.core import event

    progress, stream = shown(0)
    with event.trigger_event("numba:compile"):
        assert "compiling" in stream.getvalue()
    progress.parts[0].close()
    before = stream.getvalue()
    with event.trigger_event("numba:compile"):
        assert stream.getvalue() == before


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_stream_that_cannot_be_written_to_does_not_end_the_fit(is_terminal):
    progress, stream = shown(1, stream=Terminal() if is_terminal else io.StringIO())

    def refuse(*_):
        raise OSError("the terminal is gone")

    stream.write = stream.writelines = refuse
    for record in records(20):
        progress.parts[0](record)
    progress.parts[0].close("Done.")


class TestNotebook:
    @pytest.fixture
    def published(self, monkeypatch):
        """What a kernel would show; IPython itself is not needed."""
        bundles = []

        def display(bundle, *, raw, display_id):
            assert raw
            assert display_id
            bundles.append(bundle)
            return SimpleNamespace(update=lambda bundle, raw: bundles.append(bundle))

        module, displays = ModuleType("IPython"), ModuleType("IPython.display")
        module.get_ipython = lambda: SimpleNamespace(kernel=object())
        module.display = displays
        displays.display = display
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", displays)
        return bundles

    def test_a_notebook_gets_a_bar(self, published, capsys):
        progress = Progress(["Linear<SVC>"], 1e-3)
        for record in records(12):
            progress.parts[0](record)
        progress.parts[0].close("Done & proven.")
        last = published[-1]
        assert '<progress max="1" value="1.000"' in last["text/html"]
        assert "Linear&lt;SVC&gt;  Done &amp; proven." in last["text/html"]
        assert "iteration 11" in last["text/plain"]
        assert capsys.readouterr().err == ""

    def test_ipython_on_a_terminal_is_a_terminal(self, published, monkeypatch, capsys):
        sys.modules["IPython"].get_ipython = lambda: SimpleNamespace()
        progress = Progress(["LinearSVC"], 1e-3)
        progress.parts[0](records(1)[0])
        progress.parts[0].close()
        assert not published
        assert "iteration" in capsys.readouterr().err
