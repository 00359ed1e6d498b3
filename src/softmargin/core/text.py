"""Text of strangers on its way to a terminal or into a file of lines."""

import re

# Control characters (a terminal obeys those of escape sequences), separators of lines, and halves of surrogate pairs,
# which have no form in UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The same text on one line, with characters that are no signs written as in Python: \n, \x1b, \u2028."""
    if not _UNPRINTABLE.search(text):
        return text
    escaped = text.replace("\\", "\\\\")  # so that an escape can be told from what looks like one
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], escaped)
