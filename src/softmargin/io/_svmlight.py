"""The svmlight parser over one block of text.

It knows the common forms only. A number that it cannot convert exactly (many digits, large exponents, "nan", or no
number at all) is listed for Python's `float`; a line with anything else out of the ordinary is handed back whole, for
the plain parser to read or to refuse. So every message, and every rule about rare forms, exists once.

The exact conversion: an integer below 2^53 and a power of ten up to 10^22 are both float64 numbers, so their product
or quotient is rounded once, and that is the correctly rounded value.
"""

import numpy as np

from softmargin.core.jit import compiled

_NEWLINE, _PLUS, _MINUS, _POINT, _ZERO, _COLON = b"\n+-.0:"
_D, _E, _I, _Q = b"deiq"
_LOWER = 32  # the bit that makes a letter lower case
_BLANK = np.array([byte in b" \t\r\v\f" for byte in range(256)])
_END = np.array([byte in b" \t\r\v\f\n#" for byte in range(256)])  # behind a token

_EXACT_INTEGER = 2**53
_EXACT_POWER = 22
_POWERS = np.array([float(10**k) for k in range(_EXACT_POWER + 1)])
_SAFE_DIGITS = 18  # any number of so many fits in 64 bits
_EXPONENT_DIGITS = 4
_INDEX_DIGITS = 10

_LABEL, _QUERY, _FEATURE = 0, 1, 2  # what a token of a line is


@compiled
def parse(text, at, n_rows, n_values, n_lines, first, last, query_id, labels, queries, ends, indices, values, rare):
    """Read the lines of text[at:], which ends with a newline, into the arrays, behind what they hold already.

    Indices must lie in [first, last]. Returns (at, n_rows, n_values, n_lines, n_rare): with at < text.size, the line
    that begins there is for the plain parser, or `rare` was full. A row of `rare` is begin, end and target of a number
    that is for `float`: the position in `values`, or -1 - row for a label.
    """
    n_rare = 0
    p = at
    while p < text.size:
        handed_back = p, n_rows, n_values, n_lines, n_rare
        previous = first - 1
        kind = _LABEL
        has_query = False
        while True:
            c = text[np.uint64(p)]
            while _BLANK[c]:
                p += 1
                c = text[np.uint64(p)]
            if _END[c]:
                break

            if kind == _QUERY and c == _Q:
                if not (text[p + 1] == _I and text[p + 2] == _D and text[p + 3] == _COLON):
                    return handed_back
                p += 4
            elif kind != _LABEL:
                kind = _FEATURE
                begin = p
                index = 0
                while _ZERO <= c <= _ZERO + 9:
                    index = 10 * index + int(c - _ZERO)
                    p += 1
                    c = text[np.uint64(p)]
                if c != _COLON or p - begin > _INDEX_DIGITS or p == begin or index <= previous or index > last:
                    return handed_back
                previous = index
                p += 1

            begin = p
            c = text[np.uint64(p)]
            negative = c == _MINUS
            if negative or c == _PLUS:
                p += 1
                c = text[np.uint64(p)]
            digits = p
            point = -1
            number = 0
            while True:
                if _ZERO <= c <= _ZERO + 9:
                    number = 10 * number + int(c - _ZERO)
                elif c == _POINT and point < 0:
                    point = p
                else:
                    break
                p += 1
                c = text[np.uint64(p)]
            is_integer = point < 0
            power = 0 if is_integer else point + 1 - p
            n_digits = p - digits if is_integer else p - digits - 1
            is_exact = 0 < n_digits <= _SAFE_DIGITS
            if is_exact and c | _LOWER == _E:
                is_integer = False
                p += 1
                c = text[np.uint64(p)]
                shrinks = c == _MINUS
                if shrinks or c == _PLUS:
                    p += 1
                    c = text[np.uint64(p)]
                digits = p
                exponent = 0
                while _ZERO <= c <= _ZERO + 9:
                    exponent = 10 * exponent + int(c - _ZERO)
                    p += 1
                    c = text[np.uint64(p)]
                is_exact = 0 < p - digits <= _EXPONENT_DIGITS
                power += -exponent if shrinks else exponent
            is_end = _END[c]
            is_exact = is_exact and is_end and -_EXACT_POWER <= power <= _EXACT_POWER and number <= _EXACT_INTEGER

            value = 0.0
            if is_exact:
                value = float(number)
                if power < 0:
                    value /= _POWERS[-power]
                elif power > 0:
                    value *= _POWERS[power]
                if negative:
                    value = -value
            else:
                while not _END[c]:
                    p += 1
                    c = text[np.uint64(p)]
                if p == begin:
                    return handed_back
                if kind != _QUERY:
                    if n_rare == rare.shape[0]:
                        return handed_back
                    rare[n_rare, 0] = begin
                    rare[n_rare, 1] = p
                    rare[n_rare, 2] = -1 - n_rows if kind == _LABEL else n_values
                    n_rare += 1

            if kind == _FEATURE:
                indices[np.uint64(n_values)] = index
                values[np.uint64(n_values)] = value
                n_values += 1
            elif kind == _LABEL:
                labels[n_rows] = value
                kind = _QUERY
            else:
                if query_id:
                    if not (is_exact and is_integer):
                        return handed_back
                    queries[n_rows] = -number if negative else number
                has_query = True
                kind = _FEATURE

        if kind != _LABEL:
            if query_id and not has_query:
                return handed_back
            ends[n_rows] = n_values
            n_rows += 1
        while text[np.uint64(p)] != _NEWLINE:
            p += 1
        p += 1
        n_lines += 1
    return p, n_rows, n_values, n_lines, n_rare
