"""A few hundred damaged files of every format; `make fuzz N=100000` reads more."""

import subprocess
import sys
from pathlib import Path


def test_damaged_files_are_read_or_refused():
    command = [sys.executable, Path(__file__).parent, "--count", "300", "--seed", "17"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "300 mutants of seed 17" in done.stdout
    assert ", 0 defects" in done.stdout
