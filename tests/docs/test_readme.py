"""What the README shows is what happens."""

import re
from pathlib import Path

from softmargin.tasks.records import TASKS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says(capsys):
    [code] = re.findall(r"```python\n(.*?)```", README, re.S)
    shown = re.search(r"```\n(.*?)```", README[README.index(code) + len(code) + 4 :], re.S).group(1)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    digits = re.compile(r"within \d+e-\d+")  # the last digits of a gap are not a promise
    assert digits.sub("within", printed) == digits.sub("within", shown)


def test_the_readme_is_short_and_starts_with_the_example():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert lines.index("```python") < 35


def test_every_estimator_is_in_the_table():
    for task in TASKS:
        assert f"`{task.name}`" in README


def test_numbers_of_the_speed_table_are_those_of_the_results():
    """Each line names a file; its numbers, rounded as they are shown, stand there."""
    results = Path(__file__).parents[2] / "benchmarks" / "results"
    lines = re.findall(r"^\|.*\| `(\w+\.md)` \|$", README, re.MULTILINE)
    assert len(lines) >= 5
    for line in re.findall(r"^\|.*\| `\w+\.md` \|$", README, re.MULTILINE):
        file = re.search(r"`(\w+\.md)`", line)[1]
        found = [float(number) for number in re.findall(r"\d+\.\d+", (results / file).read_text(encoding="utf-8"))]
        for seconds in re.findall(r"(\d+\.\d+) s", line):
            digits = len(seconds.partition(".")[2])
            assert any(f"{number:.{digits}f}" == seconds for number in found), (file, seconds)
