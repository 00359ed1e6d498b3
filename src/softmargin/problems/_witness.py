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
