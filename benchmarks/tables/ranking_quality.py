"""Ranking by queries: NDCG@10, average precision and pairs in order of RankSVM, and of LightGBM's LGBMRanker beside it.

Goal: NDCG@10 on MQ2008 at least that of LGBMRanker with default settings.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.datasets.ranking_problems import RankingProblem, load_ranking, tiny_ranking
from benchmarks.solvers import ranking
from benchmarks.tables import _paper

NAMES = ("mq2008", "mq2007-agg", "bio")
GRID = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)  # C on the mean over the pairs
WEIGHTS = ("pairs", "equal")  # of the queries
HELD_OUT = 0.25  # of the training queries, for the choice of C
SEED = 0
THREADS = 2
NDCG_PLACES = 10
RIVAL = "LGBMRanker"
COLUMNS = {
    "data": ("data", ""),
    "n_train": ("training rows", ",d"),
    "n_train_queries": ("queries", ",d"),
    "n_test": ("test rows", ",d"),
    "n_test_queries": ("queries", ",d"),
    "model": ("model", ""),
    "C": ("C", "g"),
    "held_out_ndcg": ("NDCG@10 held out", ".4f"),
    "chosen": ("chosen by it", ""),
    "ndcg": ("NDCG@10", ".4f"),
    "map": ("MAP", ".4f"),
    "pairs": ("pairs in order", ".2%"),
    "ndcg_gain": ("NDCG@10 above LGBMRanker's", "+.4f"),
    "ndcg_error": ("standard error", ".4f"),
    "seconds": ("seconds", ".2f"),
    "choice_seconds": ("choice of C, seconds", ".1f"),
    "why_missing": ("missing", ""),
}
REMARKS: tuple[str, ...] = (
    "bio: boosted trees find more than a linear score. The difference is 1.4 standard errors, with 76 test "
    "blocks; RankSVM has more pairs in order, which is what it is trained for.",
)


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=NAMES, help="one data set; not written without --out")
    parser.add_argument("--max-seconds", type=float, default=20.0, help="limit of one fit of RankSVM")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    args = parser.parse_args()
    title = "Ranking by queries: RankSVM, and LightGBM's ranker beside it"
    table = record.Table("ranking_quality", title, COLUMNS, f"{THREADS}, rivals too", args)
    _paper.produce(table, _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    args = table.args
    ranking.note_lightgbm(table.machine)
    absent = ranking.missing_lightgbm()
    for train, test in _parts(args.only, args.quick):
        ranking.warm_up(train)
        rows = [_ours(train, test, weight, args) for weight in WEIGHTS]
        max(rows, key=lambda row: row["held_out_ndcg"])["chosen"] = "yes"
        rival = (
            {"model": RIVAL, "why_missing": absent} if absent else _lightgbm(train, test, 1 if args.quick else THREADS)
        )
        rows += [rival, _lots(test)]
        base = rival.get("ndcg_values")
        for row in rows:
            values = row.pop("ndcg_values", None)
            if base is not None and values is not None and row is not rival:
                difference = (values - base)[~np.isnan(base)]
                row["ndcg_gain"] = float(difference.mean())
                row["ndcg_error"] = float(difference.std(ddof=1) / np.sqrt(difference.size))
            table.add(
                data=train.name,
                n_train=train.n_rows,
                n_train_queries=len(np.unique(train.qid)),
                n_test=test.n_rows,
                n_test_queries=len(np.unique(test.qid)),
                **row,
            )


def _parts(only: str | None, quick: bool) -> Iterator[tuple[RankingProblem, RankingProblem]]:
    """Training and test part of each data set, by whole queries."""
    for name in (only,) if only else NAMES[1:2] if quick else NAMES:
        if name == "mq2008" and not quick:
            yield load_ranking("mq2008"), load_ranking("mq2008.t")
        else:
            problem = tiny_ranking(name, 1_000) if quick else load_ranking(name)
            yield _divided(problem, 0.5)


def _divided(problem: RankingProblem, share: float) -> tuple[RankingProblem, RankingProblem]:
    """By whole queries, drawn with a fixed seed; the second part has about this share of them."""
    queries = np.unique(problem.qid)
    drawn = np.random.default_rng(SEED).permutation(queries)[: max(1, round(share * queries.size))]
    is_second = np.isin(problem.qid, drawn)
    return problem.rows(~is_second), problem.rows(is_second)


def _ours(train: RankingProblem, test: RankingProblem, weight: str, args: Any) -> dict[str, Any]:
    inner, held = _divided(train, HELD_OUT)
    began = time.perf_counter()
    tried = {C: _measures(held, _fit(inner, C, weight, args).predict(held.X))["ndcg"] for C in GRID}
    chosen = time.perf_counter() - began
    best = max(tried, key=lambda C: (tried[C], -C))
    began = time.perf_counter()
    model = _fit(train, best, weight, args)
    seconds = time.perf_counter() - began
    return {
        "model": "RankSVM, queries by pairs" if weight == "pairs" else "RankSVM, queries equal",
        "C": best,
        "held_out_ndcg": tried[best],
        **_measures(test, model.predict(test.X)),
        "seconds": seconds,
        "choice_seconds": chosen,
        "held_out": {f"{C:g}": value for C, value in tried.items()},
        "certified_gap": model.certificate_.relative_gap,
        "status": model.status_.name,
    }


def _fit(problem: RankingProblem, C: float, weight: str, args: Any) -> Any:
    from softmargin import ConvergenceWarning, RankSVM

    model = RankSVM(C=C, query_weight=weight, n_jobs=THREADS, max_seconds=args.max_seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(problem.X, problem.y, qid=problem.qid)


def _lightgbm(train: RankingProblem, test: RankingProblem, n_jobs: int) -> dict[str, Any]:
    model, seconds = ranking.lightgbm(train, n_jobs)
    return {"model": RIVAL, **_measures(test, model.predict(test.X)), "seconds": seconds}


def _lots(test: RankingProblem) -> dict[str, Any]:
    return {"model": "drawing lots", **_measures(test, np.zeros(test.n_rows))}


def _measures(problem: RankingProblem, scores: np.ndarray) -> dict[str, Any]:
    """Queries without a relevant row are left out of NDCG and average precision, for all models alike."""
    from softmargin.metrics import mean_average_precision_by_query, ndcg_by_query, swapped_pairs

    ndcg = ndcg_by_query(problem.y, scores, problem.qid, k=NDCG_PLACES)
    return {
        "ndcg": ndcg.mean,
        "ndcg_values": ndcg.values,
        "map": mean_average_precision_by_query(problem.y, scores, problem.qid).mean,
        "pairs": 1.0 - swapped_pairs(problem.y, scores, problem.qid),
    }


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    notes = []
    for name in dict.fromkeys(row["data"] for row in rows):
        found = {row["model"]: row for row in rows if row["data"] == name}
        ours = next(row for row in rows if row["data"] == name and row.get("chosen"))
        if found[RIVAL].get("ndcg") is None:
            notes.append(f"{name}: {RIVAL} was not run ({found[RIVAL]['why_missing']}).")
            continue
        verdict = "at least equal" if ours["ndcg_gain"] >= 0 else "**lower**"
        notes.append(
            f"{name}: NDCG@10 of {ours['model']} {ours['ndcg']:.4f}, of {RIVAL} {found[RIVAL]['ndcg']:.4f}: {verdict}, "
            f"by {ours['ndcg_gain']:+.4f} with a standard error of {ours['ndcg_error']:.4f} over the test queries."
        )
    return [
        *notes,
        "mq2008: fold 1, its training and test part. mq2007-agg and bio: whole queries (blocks), a half for the test, "
        "drawn with a fixed seed. RankSVM is linear, on the features as they are (bio: standardised); LGBMRanker is "
        "boosted trees.",
        f"RankSVM: C from {', '.join(f'{C:g}' for C in GRID)} by NDCG@10 on a quarter of the training queries, then "
        "trained again on all of them; whether queries weigh by their pairs or equally is chosen in the same way, and "
        "both are shown. LGBMRanker: default settings, on all training queries.",
        "NDCG@10 with gains 2^y - 1, MAP with grades above 0 as relevant; queries without a relevant row are left out "
        "of both, for all models, and tied rows count as the mean over their orders. All by softmargin.metrics.",
        "dlib's svm_rank_trainer cannot take part in mq2008 and mq2007-agg: it knows relevant and other rows, but no "
        "grades.",
        "standard error: of the paired differences over the test queries. seconds: of the fit at the C chosen.",
    ]


if __name__ == "__main__":
    main()
