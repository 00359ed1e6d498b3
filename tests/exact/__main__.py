"""A table of how generated problems end: `PYTHONPATH=tests python -m exact [first] last`."""

import sys
from collections import Counter, defaultdict

from exact.problems import make
from exact.verdict import judge


def main() -> None:
    first, last = ([0, *map(int, sys.argv[1:])])[-2:]
    endings: dict[str, Counter] = defaultdict(Counter)
    n_wrong = 0
    for number in range(first, last):
        verdict = judge(make(number))
        if verdict.faults:
            n_wrong += 1
            print(verdict, flush=True)
        group = verdict.problem.kind if verdict.problem.is_ordinary else "far scales, or approximate"
        endings[group][verdict.ending] += 1
        endings["all ordinary" if verdict.problem.is_ordinary else "all others"][verdict.ending] += 1
    for group, counts in sorted(endings.items()):
        share = counts["OPTIMAL"] / counts.total()
        print(f"{group:34s} {counts.total():6d}  OPTIMAL {share:6.1%}  {dict(counts.most_common())}")
    print(f"{last - first} problems, {n_wrong} wrong")


if __name__ == "__main__":
    main()
