"""Every table in turn, each in its own process: `python -m benchmarks.tables [--quick] [--out FOLDER]`.

With --all those of the four papers, short ones first: each goes on where it was stopped, and one that fails does not
stop the others. Other options go to the scripts.
"""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import cells, machine, record
from benchmarks.tables import _summary
from benchmarks.writing import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the tables and figures of the four papers, with --continue")
    parser.add_argument("--seconds", type=float, metavar="S", help="with --all: begin nothing after so many seconds")
    parser.add_argument("--list", action="store_true", help="name the scripts of --all, their minutes and purpose")
    parser.add_argument("--summary", action="store_true", help="write README.md of the results")
    parser.add_argument("--out", type=Path, help="folder of the results (default: benchmarks/results)")
    args, more = parser.parse_known_args()
    if args.seconds is not None and not args.all:
        parser.error("--seconds belongs to --all")
    folder = args.out or record.RESULTS
    more += ["--out", str(args.out)] if args.out else []
    if args.list:
        print(_summary.listing(folder))
    elif args.summary:
        summarise(folder)
    elif args.all:
        all_papers(folder, args.seconds, more)
    else:
        every_table(more)


def summarise(folder: Path) -> None:
    write_whole(folder / "README.md", _summary.page(folder))


def all_papers(folder: Path, seconds: float | None, more: list[str]) -> None:
    began = time.monotonic()
    failed, unfinished = [], []
    names = _summary.by_length(folder)
    for k, name in enumerate(names):
        left = float("inf") if seconds is None else seconds - (time.monotonic() - began)
        if left <= 0.0:
            unfinished += names[k:]
            break
        status, was_stopped = _run(
            name, ["--continue", *([] if seconds is None else ["--seconds", f"{left:.0f}"]), *more]
        )
        if was_stopped:
            unfinished += names[k:]
            break
        if status == cells.STOPPED:
            unfinished.append(name)
        elif status:
            failed.append(name)
    if "--quick" not in more:
        summarise(folder)
    _report(failed, unfinished)


def _run(name: str, options: list[str]) -> tuple[int, bool]:
    """The exit status of a script, and whether the run was interrupted meanwhile: then the script ends cleanly."""
    print(f"== {name}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", f"benchmarks.tables.{name}", *options], cwd=machine.PROJECT)
    stops: list[int] = []

    def stop(number: int, _: object) -> None:
        stops.append(number)
        if number == signal.SIGTERM:  # Ctrl-C reaches the script by itself
            process.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return process.wait(), bool(stops)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(failed: list[str], unfinished: list[str]) -> None:
    if unfinished:
        print(f"not finished, or not looked at any more: {', '.join(unfinished)}; the same command goes on", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if unfinished:
        sys.exit(cells.STOPPED)


def every_table(more: list[str]) -> None:
    failed = []
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        print(f"== {path.stem}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.tables.{path.stem}", *more]
        if subprocess.run(command, cwd=machine.PROJECT).returncode:
            failed.append(path.stem)
    _report(failed, [])


if __name__ == "__main__":
    main()
