"""Sums of packed bit vectors, eight rows at a time."""

import numpy as np

from softmargin.core.jit import compiled

# BYTE_BITS[byte, k] is bit k (first row first, as numpy.packbits writes them) as a float.
BYTE_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)


@compiled(sums=True)
def add_bits(bits, weight, byte_bits, out):
    """out[i] += weight for every row i whose bit is set; `out` has eight entries a byte."""
    for k in range(bits.size):
        byte = bits[k]
        if byte != 0:
            for q in range(8):
                out[8 * k + q] += weight * byte_bits[byte, q]


@compiled
def pack_bits(c, bits):
    """One bit a row, the first row highest in the first byte: whether c_i is not zero."""
    n = np.uint64(c.size)
    eight, one = np.uint64(8), np.uint64(1)
    for j in range(n // eight):
        first = np.uint64(j) * eight  # without the compiler j is an int; NumPy 1 makes a float of int times unsigned
        byte = np.uint64(0)
        for i in range(first, first + eight):
            byte = (byte << one) | np.uint64(c[i] != 0.0)
        bits[j] = byte
    if n % eight > 0:
        byte = np.uint64(0)
        for i in range(n - n % eight, n):
            byte = (byte << one) | np.uint64(c[i] != 0.0)
        bits[n // eight] = byte << (eight - n % eight)
