"""OCAS without intercept to a certified gap of 1e-3: the goals in seconds, and LIBLINEAR beside it.

Goals: covtype at C = 1 in fewer than 130 iterations and at most 2.5 s with two threads; a9a at C = 100 under
1 s. The rival runs in the same process, alternating, one thread each, with the loosest tolerance of a ladder
at which its primal value is as good as ours.
"""

from statistics import median

from benchmarks import record
from benchmarks.datasets import Problem, generate, load
from benchmarks.solvers.linear import Fit, liblinear, softmargin

TOL = 1e-3
RIVAL_TOLS = (1.0, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 3e-3, 1e-3, 1e-4)
# problem, C, most iterations, most seconds
GOALS = [("covtype", 1.0, 129, 2.5), ("a9a", 100.0, None, 1.0)]
STORAGES = [("dense", "float32"), ("dense", "float64"), ("csr", "float64")]
COLUMNS = {
    "problem": ("problem", ""),
    "C": ("C", "g"),
    "storage": ("storage", ""),
    "solver": ("solver", ""),
    "threads": ("threads", "d"),
    "iterations": ("iterations", "d"),
    "median_s": ("median s", ".3f"),
    "best_s": ("best s", ".3f"),
    "certified_gap": ("certified gap", ".1e"),
    "above_optimum": ("primal above optimum, at most", ".1e"),
    "ratio": ("seconds / LIBLINEAR's", ".2f"),
    "target": ("target", ""),
    "met": ("met", ""),
}


def main() -> None:
    parser = record.options(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    title = "OCAS without intercept to a certified relative gap of 1e-3"
    table = record.Table("ocas_targets", title, COLUMNS, "as in the table; rivals one", args)
    for name, C, most_iterations, most_seconds in GOALS:
        storages = [("csr", "float64")] if args.quick else STORAGES
        make = (lambda s, t: generate(1000, 20, s, t)) if args.quick else (lambda s, t, name=name: load(name, s, t))
        rival_problem = make("csr", "float64")  # the form that LIBLINEAR is fastest with
        bound = _lower_bound(rival_problem, C)
        rival_tol = _comparable_tol(rival_problem, C)
        for storage, dtype in storages:
            problem = make(storage, dtype)
            target = {"iterations": most_iterations, "seconds": most_seconds}
            # softmargin with 2 threads alone, then with 1 thread in turn with the rival
            ours2 = [_ours(problem, C, 2) for _ in range(args.repeats + 1)][1:]
            _add_ours(table, problem, C, 2, ours2, bound, target)
            ours1, rivals = _alternate(problem, rival_problem, C, rival_tol, args.repeats)
            ratio = median(f.seconds for f in ours1) / median(f.seconds for f in rivals)
            _add_ours(table, problem, C, 1, ours1, bound, target, ratio)
            _add_rival(table, rival_problem, C, rivals, rival_tol, bound)
    table.finish(
        f"seconds: of the whole `fit`, validation and judge included, after a warm-up; {args.repeats} runs. "
        "The targets are for two threads; one thread is held against them too.",
        "certified gap: relative, recomputed from w and alpha by benchmarks/objective.py, as all primals.",
        "primal above optimum: relative, against the dual bound that OCAS proves at tol = 1e-5.",
        "LIBLINEAR: scikit-learn's LinearSVC(loss='hinge'), the loosest tol of "
        f"{', '.join(f'{t:g}' for t in RIVAL_TOLS)} whose primal value is as good as ours (the last if "
        "none is); always on CSR float64, the form it is fastest with. The ratio compares medians of runs in "
        "turn, one thread each; above 1 LIBLINEAR is faster.",
        "above its target, and why: dense float64 is the largest form, and most of an iteration goes into reading it "
        "twice (`iteration_limit`); one thread reads half as fast as two.",
    )


def _ours(problem: Problem, C: float, threads: int, tol: float = TOL) -> Fit:
    return softmargin(problem, C, solver="ocas", tol=tol, n_jobs=threads, max_seconds=300)


def _lower_bound(problem: Problem, C: float) -> float:
    """A bound on the optimum that is much tighter than the fits it is compared with."""
    return _ours(problem, C, 2, tol=1e-5).score.dual


def _comparable_tol(problem: Problem, C: float) -> float:
    """The loosest tolerance at which LIBLINEAR's primal value is as good as ours; the tightest if none is."""
    goal = _ours(problem, C, 1).score.primal
    return next((tol for tol in RIVAL_TOLS if liblinear(problem, C, tol).score.primal <= goal), RIVAL_TOLS[-1])


def _alternate(
    problem: Problem, rival_problem: Problem, C: float, tol: float, repeats: int
) -> tuple[list[Fit], list[Fit]]:
    ours, rivals = [], []
    for _ in range(repeats):
        ours.append(_ours(problem, C, 1))
        rivals.append(liblinear(rival_problem, C, tol))
    return ours, rivals


def _add_ours(table, problem, C, threads, fits: list[Fit], bound: float, target: dict, ratio=None) -> None:
    fit, times = fits[-1], [f.seconds for f in fits]
    limits = [f"at most {target['seconds']:g} s"]
    met = median(times) <= target["seconds"] and fit.score.relative_gap <= TOL
    if target["iterations"] is not None:
        limits.append(f"at most {target['iterations']} iterations")
        met = met and fit.model.n_iter_ <= target["iterations"]
    table.add(
        problem=problem.name,
        C=C,
        storage=problem.form,
        solver="OCAS",
        threads=threads,
        iterations=fit.model.n_iter_,
        median_s=median(times),
        best_s=min(times),
        all_s=times,
        judge_s=fit.model.seconds_["judge"],
        primal=fit.score.primal,
        dual=fit.score.dual,
        certified_gap=fit.score.relative_gap,
        above_optimum=(fit.score.primal - bound) / fit.score.primal,
        ratio=ratio,
        target=", ".join(limits),
        met=bool(met),
    )


def _add_rival(table, problem, C, fits: list[Fit], tol: float, bound: float) -> None:
    fit, times = fits[-1], [f.seconds for f in fits]
    table.add(
        problem=problem.name,
        C=C,
        storage=problem.form,
        solver=f"LIBLINEAR tol={tol:g}",
        threads=1,
        iterations=int(fit.model.n_iter_),
        median_s=median(times),
        best_s=min(times),
        all_s=times,
        primal=fit.score.primal,
        above_optimum=(fit.score.primal - bound) / fit.score.primal,
        target="-",
        met=None,
    )


if __name__ == "__main__":
    main()
