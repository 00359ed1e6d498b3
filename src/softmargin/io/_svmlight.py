"""The svmlight parser over one block of text.

`parse` knows the common forms only. A number with an exponent or many digits, "nan", or what is no number at all is
listed, for `convert` or for Python's `float`; a line with anything else out of the ordinary is handed back whole, for
the plain parser to read or to refuse. So every message, and every rule about rare forms, exists once.

Numbers are rounded correctly. An integer below 2^53 and a power of ten up to 10^22 are both float64 numbers, so their
product or quotient is rounded once. With more digits, `convert` works the quotient out to twice the precision and
takes it where its error cannot matter.
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
_INDEX_DIGITS = 10
_LARGEST = 92 * 10**17  # in 64 bits, also when rounded; what does not fit, of 19 digits, shows as negative
_LARGEST_EXPONENT = 9999
_SPLIT = 2.0**27 + 1.0  # gives halves of 26 bits, whose products are exact
_DOUBT = 2.0**-48

_LABEL, _QUERY, _FEATURE = 0, 1, 2  # what a token of a line is


@compiled
def parse(text, at, n_rows, n_values, n_lines, first, last, query_id, labels, queries, ends, indices, values, rare):
    """Read the lines of text[at:], which ends with a newline, into the arrays, behind what they hold already.

    Indices must lie in [first, last]. Returns (at, n_rows, n_values, n_lines, n_rare): with at < text.size, the line
    that begins there is for the plain parser, or `rare` was full. A row of `rare` is begin, end and target of a number
    that is yet to be converted: a position in `values`, or -1 - row for a label.
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
            power = 0 if is_integer else p - point - 1
            n_digits = p - digits if is_integer else p - digits - 1
            is_exact = 0 < n_digits <= _SAFE_DIGITS and number <= _EXACT_INTEGER and _END[c]

            value = 0.0
            if is_exact:
                value = float(number)
                if power > 0:
                    value /= _POWERS[power]
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


@compiled
def convert(text, rare, labels, values):
    """Convert the decimal numbers among the rows of `rare`, move the others to its front, and return their number."""
    n_left = 0
    for k in range(rare.shape[0]):
        p, end, target = rare[k, 0], rare[k, 1], rare[k, 2]
        negative = text[p] == _MINUS
        if negative or text[p] == _PLUS:
            p += 1
        number = n_digits = power = 0
        has_point = False
        while p < end:
            c = text[p]
            if _ZERO <= c <= _ZERO + 9:
                number = 10 * number + int(c - _ZERO)
                n_digits += number != 0  # zeros in front do not count
                power -= has_point
            elif c == _POINT and not has_point:
                has_point = True
            else:
                break
            p += 1
        is_whole = p == end
        if not is_whole and text[p] | _LOWER == _E:
            p += 1
            shrinks = p < end and text[p] == _MINUS
            if shrinks or (p < end and text[p] == _PLUS):
                p += 1
            begin = p
            exponent = 0
            while p < end and _ZERO <= text[p] <= _ZERO + 9:
                exponent = min(10 * exponent + int(text[p] - _ZERO), _LARGEST_EXPONENT)
                p += 1
            is_whole = begin < p == end
            power += -exponent if shrinks else exponent

        value = np.nan
        if is_whole and n_digits <= _SAFE_DIGITS + 1 and 0 < number <= _LARGEST and abs(power) <= _EXACT_POWER:
            value = _scaled(number, power)
        if value != value:
            rare[n_left, 0], rare[n_left, 1], rare[n_left, 2] = rare[k, 0], end, target
            n_left += 1
            continue
        value = -value if negative else value
        if target < 0:
            labels[-1 - target] = value
        else:
            values[target] = value
    return n_left


@compiled
def _scaled(number, power):
    """number * 10^power, correctly rounded, or nan where that is not certain."""
    value = float(number)
    if number <= _EXACT_INTEGER:
        return value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
    if power >= 0:
        return value if power == 0 else np.nan
    divisor = _POWERS[-power]
    quotient = value / divisor
    # The remainder of a rounded quotient is a float64 number; Dekker's product of halves finds it without error.
    half = _SPLIT * quotient
    q1 = half - (half - quotient)
    q2 = quotient - q1
    half = _SPLIT * divisor
    d1 = half - (half - divisor)
    d2 = divisor - d1
    product = quotient * divisor
    remainder = (value - product) - (((q1 * d1 - product) + q1 * d2 + q2 * d1) + q2 * d2)
    # Its sum with the digits that `value` lost, and the division, are off by 2^-52 of the correction at most: where
    # 2^-48 of it does not change the result, they do not either.
    correction = (remainder + float(number - int(value))) / divisor
    low, high = quotient + correction * (1.0 - _DOUBT), quotient + correction * (1.0 + _DOUBT)
    return low if low == high else np.nan
