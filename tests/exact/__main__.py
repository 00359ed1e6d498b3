"""A table of how generated problems end: `PYTHONPATH=tests python -m exact [joint] [first] last`."""

import sys
from collections import Counter, defaultdict

from exact.problems import make, make_joint
from exact.verdict import judge


def main() -> None:
    words = sys.argv[1:]
    maker = make_joint if words[:1] == ["joint"] else make
    first, last = ([0, *map(int, words[maker is make_joint :])])[-2:]
    endings: dict[str, Counter] = defaultdict(Counter)
    n_wrong = 0
    for number in range(first, last):
        verdict = judge(maker(number))
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
