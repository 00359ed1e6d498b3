"""Damaged files by the thousand: `make fuzz N=100000`.

Every mutant of every format must be read or refused with an error of ours, within 5 seconds and with memory in
proportion to its size. The work is done in a second process; the first watches it, reports what hangs or crashes, and
goes on behind it. A mutant is known by its number and the seed: `python tests/fuzz --seed 0 --only 4711` repeats it.
"""

import argparse
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

MAX_SECONDS = 5.0
# A file may ask for so many bytes, and so many times its own size on top.
FREE_BYTES, TIMES_SIZE = 128 << 20, 100
# Address space beyond what the process has when it begins: a request above this fails instead of filling the machine.
ADDRESS_SPACE = 8 << 30
WARM_UP_SECONDS = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--only", type=int, help="a single mutant, in this process, with its traceback")
    parser.add_argument("--form", default="", help="only examples of this format")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        _Worker(options.seed, options.form).show(options.only)
    elif options.worker:
        _Worker(options.seed, options.form).serve()
    else:
        sys.exit(_watch(options))


# --- the process that reads ---------------------------------------------------------------------------------------


class _Worker:
    def __init__(self, seed: int, form: str) -> None:
        from examples import examples

        self.seed = seed
        self.examples = [example for example in examples() if form in ("", example.form)]
        self.folder = Path(tempfile.mkdtemp(prefix="softmargin-fuzz-"))

    def made(self, number: int) -> tuple:
        """The mutant of this number: its example, and its bytes."""
        from mutation import mutant

        rng = Random(f"{self.seed} {number}")
        example = rng.choice(self.examples)
        others = [other for other in self.examples if other.form == example.form]
        return example, mutant(example, others, rng)

    def show(self, number: int) -> None:
        from readers import read, written

        example, raw = self.made(number)
        path = written(raw, example, self.folder)
        print(f"{example.form}{example.ending}, {len(raw)} bytes, {path}")
        print("read" if read(example, path) else "refused")

    def serve(self) -> None:
        """Warm up on undamaged files, then read mutants by number, one line of JSON for each."""
        from examples import COMPRESSORS
        from readers import read, written

        for example in self.examples:
            compress = COMPRESSORS.get(example.ending[example.ending.rfind(".") :] if example.ending else "", bytes)
            if not read(example, written(compress(example.raw), example, self.folder)):
                raise SystemExit(f"an undamaged file is refused: {example.form}{example.ending}")
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ADDRESS_SPACE, taken + ADDRESS_SPACE))
        _tell({"ready": True})
        for line in sys.stdin:
            first, last = map(int, line.split())
            for number in range(first, last):
                _tell({"begin": number})
                _tell(self._tried(number))

    def _tried(self, number: int) -> dict:
        from readers import read, written

        example, raw = self.made(number)
        path = written(raw, example, self.folder)
        before, began = _reset_peak(), time.monotonic()
        defect = ""
        outcome = "defect"
        try:
            outcome = "read" if read(example, path) else "refused"
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "softmargin" in frame.filename] or frames
            place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            defect = f"{type(error).__name__} at {place}: {str(error)[:100]}"
        seconds, grown = time.monotonic() - began, _peak() - before
        if grown > FREE_BYTES + TIMES_SIZE * len(raw):
            defect = f"memory: {grown >> 20} MiB for {len(raw)} bytes"
        elif seconds > MAX_SECONDS:
            defect = f"time: {seconds:.1f} s"
        return {"end": number, "form": example.form + example.ending, "outcome": outcome, "defect": defect}


def _tell(message: dict) -> None:
    print(json.dumps(message), flush=True, file=sys.__stdout__)


def _reset_peak() -> int:
    """Forget the largest size so far; the size now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


# --- the process that watches -------------------------------------------------------------------------------------


class _Watched:
    """The other process, and what it says."""

    def __init__(self, options: argparse.Namespace) -> None:
        command = [sys.executable, str(Path(__file__).parent), "--worker", "--seed", str(options.seed)]
        self.process = subprocess.Popen(
            [*command, "--form", options.form], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._unread, self.has_ended = b"", False
        if self.next(WARM_UP_SECONDS) is None:
            raise SystemExit("the process that reads did not start")

    def ask(self, first: int, last: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{first} {last}\n".encode())
        self.process.stdin.flush()

    def next(self, seconds: float) -> dict | None:
        """What it says next; None if it says nothing in time, or has died."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                self.has_ended = True
                return None
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def end(self) -> int:
        """How it ended; if it has not, it does now."""
        if not self.has_ended:
            self.process.kill()
        return self.process.wait()


def _watch(options: argparse.Namespace) -> int:
    outcomes: dict[str, Counter] = {}
    defects: dict[str, list[int]] = {}
    first, last = options.first, options.first + options.count
    began = time.monotonic()

    def found(number: int, form: str, defect: str) -> None:
        defects.setdefault(f"{form}: {defect}", []).append(number)
        print(f"mutant {number} of seed {options.seed}: {form}: {defect}", flush=True)

    while first < last:
        watched = _Watched(options)
        watched.ask(first, last)
        number = first
        while first < last:
            said = watched.next(2 * MAX_SECONDS)
            if said is None:
                is_alive, code = not watched.has_ended, watched.end()
                why = f"hangs for over {2 * MAX_SECONDS:g} s" if is_alive else f"crashes ({_signal_name(code)})"
                found(number, "?", why)
                first = number + 1
                break
            if "begin" in said:
                number = said["begin"]
                continue
            first = said["end"] + 1
            outcomes.setdefault(said["form"], Counter())[said["outcome"]] += 1
            if said["defect"]:
                found(said["end"], said["form"], said["defect"])
        else:
            watched.end()
    _report(outcomes, defects, options, time.monotonic() - began)
    return 1 if defects else 0


def _signal_name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _report(outcomes: dict[str, Counter], defects: dict[str, list[int]], options: argparse.Namespace, t: float) -> None:
    print(f"{'format':20} {'read':>8} {'refused':>8} {'defects':>8}")
    for form, counts in sorted(outcomes.items()):
        print(f"{form:20} {counts['read']:8} {counts['refused']:8} {counts['defect']:8}")
    total = sum(map(len, defects.values()))
    print(f"{options.count} mutants of seed {options.seed} in {t:.0f} s, {total} defects of {len(defects)} kinds")
    for defect, numbers in sorted(defects.items(), key=lambda item: -len(item[1])):
        print(f"  {len(numbers):6} x {defect} ({', '.join(map(str, numbers[:3]))})")


if __name__ == "__main__":
    main()
