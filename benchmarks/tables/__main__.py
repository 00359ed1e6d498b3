"""Every table in turn, each in its own process: `python -m benchmarks.tables [--quick] [--out FOLDER]`."""

import subprocess
import sys
from pathlib import Path

from benchmarks import machine

failed = []
for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
    print(f"== {path.stem}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.tables.{path.stem}", *sys.argv[1:]]
    if subprocess.run(command, cwd=machine.PROJECT).returncode:
        failed.append(path.stem)
if failed:
    sys.exit(f"failed: {', '.join(failed)}")
