"""Text of strangers cannot steer a terminal, or end a line."""

import pytest

from softmargin.core.text import printable


@pytest.mark.parametrize("text", ["", "plain", "Übergröße ☃ \N{GRINNING FACE}", "a\\b", "no\N{NO-BREAK SPACE}break"])
def test_what_can_be_shown_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("half \ud800", "half \\ud800"),
        ("a\\n and\na newline", "a\\\\n and\\na newline"),
    ],
)
def test_what_cannot_is_escaped(text, shown):
    assert printable(text) == shown
    assert len(shown.splitlines()) == 1
    shown.encode()
