"""What the pages show is what happens: their Python runs, their commands run, and both print what stands there.

A page is run from top to bottom in an empty folder. A fence without a language or with `text` that follows a `python`
block is what that block prints. In a `console` block the lines behind `$ ` are commands, the others what they print;
`^C` stands for an interrupt while the command runs. `...` matches anything. A block that begins with "python" and the
name of a package runs where this package is installed. Where lines are broken and how many
iterations there are is not compared.
"""

import contextlib
import doctest
import io
import re
import shlex
import signal
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softmargin.cli.app import app
from softmargin.core.trace import Trace
from softmargin.tasks.records import TASKS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^```(\w*)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COUNT = re.compile(r"(?<=iterations) +\d+|\d+ (?=iterations)")
ITERATION_OF_CTRL_C = 5


def blocks(page):
    """(language, text, line) of each fence; the language of what a python block prints is "output", and that of what
    needs a package that is not there is "missing"."""
    found = []
    end = 0
    for match in FENCE.finditer(page):
        language = match[1]
        if match[2] is not None and find_spec(match[2]) is None:
            language = "missing"
        follows = found and found[-1][0] == "python" and not page[end : match.start()].strip()
        if language in ("", "text") and follows:
            language = "output"
        found.append((language, match[3], page.count("\n", 0, match.start()) + 1))
        end = match.end()
    return found


def has_code(path):
    return any(language in ("python", "console") for language, _, _ in blocks(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "path", [path for path in PAGES if has_code(path)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_page_tells_the_truth(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = Shell(monkeypatch)
    scope = {"__name__": "__main__"}
    printed = ""
    for language, text, line in blocks(path.read_text(encoding="utf-8")):
        where = f"{path.name}:{line}"
        if language == "python":
            printed = run_python(text, scope, where)
        elif language == "output":
            check(text, printed, where)
        elif language == "console":
            for command, expected in dialogue(text):
                check(expected, shell.run(command, is_interrupted=expected.startswith("^C")), f"{where}: {command}")


def run_python(text, scope, where):
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        exec(compile(text, where, "exec"), scope)
    return out.getvalue()


def check(expected, printed, where):
    expected = expected.removeprefix("^C\n")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = doctest.OutputChecker().check_output(*(COUNT.sub("", text) for text in (expected, printed)), flags)
    assert same, f"{where}\nthe page says:\n{expected}\nbut it is:\n{printed}"


def dialogue(text):
    """(command, what the page says it prints)."""
    commands = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            commands.append([line.removeprefix("$ ").rstrip("\n"), ""])
        elif commands[-1][0].endswith("\\"):
            commands[-1][0] = commands[-1][0].removesuffix("\\") + line.strip()
        else:
            commands[-1][1] += line
    return commands


class Shell:
    """Just enough of one: pipes, `>` and `$?`. softmargin and `python -c` run in this process, which is faster."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self._code = 0

    def run(self, command, is_interrupted=False):
        """What is seen on the terminal."""
        shlexer = shlex.shlex(command.replace("$?", str(self._code)), posix=True, punctuation_chars="|>")
        shlexer.whitespace_split = True
        words, target = list(shlexer), None
        if ">" in words:
            words, target = words[: words.index(">")], words[-1]
        stages = [shlex.split(stage) for stage in " ".join(map(shlex.quote, words)).split(" '|' ")]
        seen = piped = ""
        for stage in stages:
            with self._ctrl_c() if is_interrupted else contextlib.nullcontext():
                piped, errors, both, self._code = self._run_one(stage, piped)
            seen += errors
        if target is not None:
            Path(target).write_text(piped)
            return seen
        return both if len(stages) == 1 else seen + piped

    def _run_one(self, words, given):
        """Standard output, standard error, both as they came, exit code."""
        if words[0] == "softmargin":
            done = CliRunner().invoke(app, words[1:], input=given, prog_name="softmargin")
            assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
            return done.stdout, done.stderr, done.output, done.exit_code
        if words[:2] == ["python", "-c"]:
            self._monkeypatch.setattr(sys, "stdin", io.StringIO(given))
            printed = run_python(words[2], {"__name__": "__main__"}, words[2])
            return printed, "", printed, 0
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout, done.stderr, done.stdout + done.stderr, done.returncode

    @contextlib.contextmanager
    def _ctrl_c(self):
        append = Trace.append

        def append_and_interrupt(trace, record):
            append(trace, record)
            if record.iteration == ITERATION_OF_CTRL_C:
                signal.raise_signal(signal.SIGINT)

        with self._monkeypatch.context() as patch:
            patch.setattr(Trace, "append", append_and_interrupt)
            yield


def test_the_command_line_page_shows_every_command_and_option():
    import typer

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        assert f"softmargin {name}" in page
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert f"`{option}" in page, f"{option} of {name}"


def test_options_and_parameters_that_are_named_exist():
    """On the page for users of other programs: `--option` is one of ours, and `name=` a parameter of an estimator."""
    import typer

    page = (ROOT / "docs" / "from-libsvm.md").read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands.values()
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", page)) <= options
    parameters = {name for task in TASKS for name in task.home.load()().get_params()} | {"rule", "block"}
    assert set(re.findall(r"[`(, ]([A-Za-z]\w*)=", page)) - {"cv"} <= parameters
