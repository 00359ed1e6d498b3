"""Run by an interpreter that has dlib and perhaps nothing else: train on a file, print seconds and weights as JSON.

python _dlib_rank.py FILE C EPSILON        FILE: svmlight text, indices from 0, labels 1 (relevant) and 0
"""

import json
import sys
import time

import dlib  # type: ignore[import-not-found]


def main() -> None:
    path, C, epsilon = sys.argv[1:]
    pair = dlib.sparse_ranking_pair()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            label, *entries = line.split()
            row = dlib.sparse_vector()
            for entry in entries:
                index, value = entry.split(":")
                row.append(dlib.pair(int(index), float(value)))
            (pair.relevant if float(label) > 0 else pair.nonrelevant).append(row)
    trainer = dlib.svm_rank_trainer_sparse()
    trainer.c, trainer.epsilon = float(C), float(epsilon)
    began = time.perf_counter()
    ranker = trainer.train(pair)
    seconds = time.perf_counter() - began
    weights = [(entry.first, entry.second) for entry in ranker.weights]
    indices, values = zip(*weights, strict=True) if weights else ((), ())
    print(json.dumps({"seconds": seconds, "indices": indices, "values": values}))


if __name__ == "__main__":
    main()
