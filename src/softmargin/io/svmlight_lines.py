"""The plain svmlight parser: the rules of the format, line by line, and all messages.

A line is `label [qid:integer] index:value index:value ... [# comment]`, indices increasing; blank lines do not count.
Numbers are what Python's `float` and `int` read, underscores apart.
"""

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

_LARGEST_INDEX = 2**31 - 1  # indices are 32 bits wide, as in scikit-learn's reader
_SHOWN_BYTES = 40
_TOKEN = re.compile(rb"\S+")
# What text of Windows programs may begin with.
_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "ASCII or UTF-8", b"\xfe\xff": "ASCII or UTF-8"}
# What other files begin with: what they are, and how their names should end.
_OTHER_FORMATS = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"\x93NUMPY": ("an array of NumPy", ".npy"),
    b"PK\x03\x04": ("a zip archive, perhaps of NumPy", ".npz"),
}


@dataclass(frozen=True)
class Rules:
    """What a line may hold. `zero_based` is None where index 0 tells, at the end of the file."""

    zero_based: bool | None = None
    n_features: int | None = None
    query_id: bool = False

    @property
    def first(self) -> int:
        """The smallest index allowed."""
        return 1 if self.zero_based is False else 0

    @property
    def last(self) -> int:
        """The largest index allowed."""
        if self.n_features is None:
            return _LARGEST_INDEX
        return min(self.n_features - 1 if self.zero_based else self.n_features, _LARGEST_INDEX)


class BadLine(Exception):
    """A line that is not svmlight. Lines count from 0 at the beginning of the text, columns from 1 within the line."""

    def __init__(self, message: str, column: int, line: int = 0) -> None:
        super().__init__(message)
        self.column, self.line = column, line


@dataclass
class Lines:
    """Rows read so far; row i ends before position ends[i] of the values."""

    labels: array = field(default_factory=lambda: array("d"))
    queries: array = field(default_factory=lambda: array("q"))
    ends: array = field(default_factory=lambda: array("q"))
    indices: array = field(default_factory=lambda: array("i"))
    values: array = field(default_factory=lambda: array("d"))


def read_lines(lines: Iterable[bytes], rules: Rules, n_before: int = 0) -> Lines:
    """The rows of some lines, which `n_before` others precede; raises BadLine at the first that is wrong."""
    rows = Lines()
    for at, line in enumerate(lines, n_before):
        try:
            _read_line(line, rules, rows)
        except BadLine as bad:
            bad.line = at
            raise
    return rows


def number(text: bytes) -> float:
    """As Python reads it, "nan" and "inf" included, but without the underscores that Python allows."""
    if b"_" in text:
        raise ValueError
    return float(text)


def _read_line(line: bytes, rules: Rules, rows: Lines) -> None:
    tokens = _TOKEN.finditer(line.partition(b"#")[0])
    head = next(tokens, None)
    if head is None:
        return
    rows.labels.append(_label(head))
    token = next(tokens, None)
    if token is not None and token[0].startswith(b"qid:"):
        if rules.query_id:
            rows.queries.append(_query(token))
        token = next(tokens, None)
    elif rules.query_id:
        message = "the line has no qid behind its label. Give every line one, or read the file without queries."
        raise BadLine(message, head.end() + 1)
    previous, last = rules.first - 1, rules.last
    while token is not None:
        name, _, text = token[0].partition(b":")
        try:
            index, value = int(name), float(text)
            is_good = previous < index <= last and b"_" not in token[0]
        except ValueError:
            is_good = False
        if not is_good:
            raise _bad_feature(token, previous, rules)
        rows.indices.append(index)
        rows.values.append(value)
        previous = index
        token = next(tokens, None)
    rows.ends.append(len(rows.values))


def _label(token: re.Match[bytes]) -> float:
    text = token[0]
    try:
        return number(text)
    except ValueError:
        pass
    raise BadLine(f"the label {_shown(text)} is not a number. {_remedy(text)}", token.start() + 1)


def _remedy(label: bytes) -> str:
    """What to do about a label that is not a number, by what it looks like."""
    for mark, encoding in _MARKS.items():
        if label.startswith(mark):
            return f"It begins with a byte order mark: save the file as {encoding} without one."
    for signature, (form, ending) in _OTHER_FORMATS.items():
        if label.startswith(signature):
            return f"This is {form}: give it a name that ends in {ending}."
    if b"," in label or b";" in label:
        return (
            "It has a comma or a semicolon: give a table with columns and a header a name that ends in .csv. Files "
            "with several labels a line cannot be read."
        )
    if b":" in label:
        return "A line begins with its label; put one in front, 0 if there is none."
    return (
        "Labels of svmlight text are numbers: write a number for each word, such as 1 and 2, or use a .csv file, where "
        "labels may be words. A table without index:value pairs needs a name that ends in .csv, too."
    )


def _query(token: re.Match[bytes]) -> int:
    text = token[0][len(b"qid:") :]
    value = _integer(text)
    if value is not None and -(2**63) <= value < 2**63:
        return value
    message = f"the qid {_shown(text)} is not an integer of 64 bits."
    raise BadLine(message, token.start() + len(b"qid:") + 1)


def _bad_feature(token: re.Match[bytes], previous: int, rules: Rules) -> BadLine:
    name, colon, text = token[0].partition(b":")
    column = token.start() + 1
    if not colon:
        message = f"{_shown(name)} is not a feature of the form index:value; the colon is missing."
        if b"," in name or b";" in name:
            message += " It has a comma or a semicolon: give a table with columns a name that ends in .csv."
        return BadLine(message, column)
    index = _integer(name)
    if index is None or not previous < index <= rules.last:
        return BadLine(_index_problem(name, index, previous, rules), column)
    if not text:
        message = f"the feature {_shown(token[0])} has no value. Is there a space after the colon?"
    else:
        message = f"the value {_shown(text)} is not a number."
    return BadLine(message, column + len(name) + 1)


def _integer(text: bytes) -> int | None:
    try:
        return None if b"_" in text else int(text)
    except ValueError:
        return None


def _index_problem(text: bytes, index: int | None, previous: int, rules: Rules) -> str:
    shown = f"the index {_shown(text)}"
    if text == b"qid":
        return "qid must stand right behind the label, and once."
    if index is None and not text.isdigit():  # digits alone are no integer where there are thousands of them
        return f"{shown} is not an integer."
    if index is None or index > _LARGEST_INDEX:
        return f"{shown} is too large: {_LARGEST_INDEX} is the largest that can be read."
    if index < 0:
        return f"{shown} is negative."
    if index < rules.first:
        return f"{shown} occurs, but indices are to begin at 1. Pass zero_based=True if they begin at 0."
    if index > rules.last:
        return f"{shown} lies beyond n_features={rules.n_features}. Pass a larger n_features, or none."
    if index == previous:
        return f"{shown} occurs twice in the line."
    return f"{shown} comes after {previous}: the indices of a line must increase."


def _shown(text: bytes) -> str:
    """In quotes, with what is not printable ASCII escaped, and not too long."""
    return repr(text[:_SHOWN_BYTES])[1:] + ("..." if len(text) > _SHOWN_BYTES else "")
