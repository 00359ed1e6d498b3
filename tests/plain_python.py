"""The same code with and without the compiler."""

import contextlib
import io
import os
import subprocess
import sys

import numpy as np


def printed_plain_and_compiled(code):
    """What the code prints in a process in which nothing is compiled, and in this one."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<the same, compiled>", "exec"), {"__name__": "__main__"})
    return done.stdout, printed.getvalue()


def numbers_plain_and_compiled(code):
    """As arrays: the code prints lines of numbers as `float.hex` writes them."""
    return [
        np.array([[float.fromhex(word) for word in line.split()] for line in text.splitlines()])
        for text in printed_plain_and_compiled(code)
    ]
