"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("which", [0, 1])
def test_the_examples_print_what_the_readme_says(which, capsys):
    code = re.findall(r"```python\n(.*?)```", README, re.S)[which]
    shown = re.search(r"```\n(.*?)```", README[README.index(code) + len(code) + 4 :], re.S).group(1)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    digits = re.compile(r"within \d+e-\d+")  # the last digits of a gap are not a promise
    assert digits.sub("within", printed) == digits.sub("within", shown)


def test_the_readme_is_short_and_starts_with_the_example():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert lines.index("```python") < 35
