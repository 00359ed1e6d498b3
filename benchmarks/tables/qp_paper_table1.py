"""The SVM-QP paper's Table 1: the active set against SMO and LIBSVM, with the numbers of support vectors.

Goals: to a KKT violation of 1e-6 faster than LIBSVM on three quarters of the problems, and by 5 times where the kernel
is linear and on abalone; on web the paper's n_c to within a few, and its n_s to within 8 %.
"""

from functools import partial
from typing import Any

from benchmarks import record
from benchmarks.datasets.qp_problems import QPProblem
from benchmarks.solvers import kernel
from benchmarks.tables import _paper, _qp
from benchmarks.tables._qp import LOOSE, PAPER, TOL

ACTIVE, ACTIVE2, COLD = "active set", "active set, 2 threads", "active set, cold"
SMO, SMO_TIGHT = "SMO 1e-3", "SMO 1e-6"
LIBSVM, LIBSVM_TIGHT = "LIBSVM 1e-3", "LIBSVM 1e-6"
SHARE, FACTOR = 0.75, 5.0
A_FEW, NEAR = 5, 0.08  # for n_c; for n_s, as a share
SLACK = 1.05  # the judge sums in another order than the solvers
MISSED = "tolerance not reached"
COLUMNS = {
    **_qp.SIZES,
    "pivots": ("pivots", ",d"),
    "kernel_evaluations": ("kernel evaluations", ".3g"),
    "cold_pivots": ("cold: pivots", ",d"),
    "active_s": ("active set s", ""),
    "cold_s": ("cold s", ""),
    "active2_s": ("2 threads s", ""),
    "smo_s": ("SMO 1e-3 s", ""),
    "smo_tight_s": ("SMO 1e-6 s", ""),
    "libsvm_s": ("LIBSVM 1e-3 s", ""),
    "libsvm_tight_s": ("LIBSVM 1e-6 s", ""),
    "times_libsvm": ("LIBSVM 1e-6 / active set", ""),
    "times_libsvm_cold": ("LIBSVM 1e-6 / cold", ""),
    "paper_times": ("paper, SVM-light / SVM-QP", ".1f"),
    "kkt": ("KKT violation", ".0e"),
    "smo_kkt": ("SMO 1e-6", ".0e"),
    "libsvm_kkt": ("LIBSVM 1e-6", ".0e"),
    "dual": ("dual objective", ",.6f"),
    "smo_below": ("SMO 1e-6 below, relative", ".0e"),
    "libsvm_below": ("LIBSVM 1e-6 below", ".0e"),
    "libsvm_free": ("n_s of LIBSVM 1e-6", ",d"),
}
REMARKS: tuple[str, ...] = (
    "adult_200_1: the paper's n_c is below that of adult_100_1, although a wider kernel at the same C leaves more rows "
    "at the bound, as it does here. Its row seems to be that of sigma = 50, where n_s and n_c are 176 and 5,656 on our "
    "rows: 2 % fewer at C than in the paper, as in the other rows of adult.",
    "spam_lin_100: with raw features kernel values go up to 9e7, and the rounding of K beta in double precision is up "
    "to 6e-5 (2.2e-16 times the largest sum of |K_ij beta_j|), so that 1e-6 cannot be told from optimal; the fit says "
    "that it gets no further. n_s and n_c are the paper's all the same.",
)


def main() -> None:
    args = _qp.options(__doc__, 40.0)
    title = "SVM-QP paper, Table 1: the active set, SMO and LIBSVM to a KKT violation of 1e-6"
    threads = "1, and 2 in one column"
    _paper.produce(record.Table("qp_paper_table1", title, COLUMNS, threads, args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    runs: dict[str, Any] = {
        ACTIVE: _qp.active,
        COLD: partial(_qp.active, **_qp.PAPERS_METHOD),
        ACTIVE2: partial(_qp.active, n_jobs=2),
        SMO: partial(_qp.smo, tol=LOOSE),
        SMO_TIGHT: _qp.smo,
        LIBSVM: partial(kernel.libsvm_within, tol=LOOSE),
        LIBSVM_TIGHT: partial(kernel.libsvm_within, tol=TOL),
    }
    for problem in _qp.problems(table):
        _add(table, problem, _qp.compete(problem, runs, table.args, {SMO_TIGHT: SMO, LIBSVM_TIGHT: LIBSVM}))


def _add(table: record.Table, problem: QPProblem, found: dict[str, dict[str, Any]]) -> None:
    ours, cold, smo, libsvm = found[ACTIVE], found[COLD], found[SMO_TIGHT], found[LIBSVM_TIGHT]
    paper = PAPER[problem.name]
    table.add(
        **_qp.sizes(problem),
        n_free=ours["n_free"],
        n_bounded=ours["n_bounded"],
        pivots=ours["pivots"],
        kernel_evaluations=ours["kernel_evaluations"],
        cold_pivots=cold["pivots"],
        active_s=_qp.shown(ours),
        cold_s=_qp.shown(cold),
        active2_s=_qp.shown(found[ACTIVE2]),
        smo_s=_qp.shown(found[SMO]),
        smo_tight_s=_qp.shown(smo),
        libsvm_s=_qp.shown(found[LIBSVM]),
        libsvm_tight_s=_qp.shown(libsvm),
        times_libsvm=_qp.times(libsvm, ours),
        times_libsvm_cold=_qp.times(libsvm, cold),
        paper_times=paper.light_tight / paper.qp if paper.light_tight and paper.qp else None,
        kkt=ours["kkt_violation"],
        smo_kkt=smo.get("kkt_violation"),
        libsvm_kkt=libsvm.get("kkt_violation"),
        dual=ours["dual"],
        smo_below=_below(smo, ours),
        libsvm_below=_below(libsvm, ours),
        libsvm_free=libsvm.get("n_free"),
        found=found,
    )


def _below(other: dict[str, Any], ours: dict[str, Any]) -> float | None:
    """By how much its dual value is lower than ours, relative; None where it was cut."""
    return None if other["was_cut"] else (ours["dual"] - other["dual"]) / abs(ours["dual"])


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    ratios = {row["problem"]: _counted_ratio(row["found"]) for row in rows}
    web = [row for row in rows if row["problem"].startswith("web")]
    cold = [row for row in rows if COLD in row["found"]]
    return [
        _qp.CONDITIONS + f"our SMO and LIBSVM; {_qp.ADULT_CONDITION}; what else differs is said below.",
        _faster(ratios),
        _much_faster({name: value for name, value in ratios.items() if _is_hard(name)}),
        *([_web(web)] if web else []),
        _qp.counts_beside_the_paper(rows),
        _accuracy(rows),
        _qp.claim(
            "SVM-QP, to 1e-6, is faster than SVM-light at 1e-3 on all problems (here: than SMO at 1e-3)",
            {row["problem"]: _qp.is_faster(row["found"][ACTIVE], row["found"][SMO]) for row in rows},
        ),
        _qp.claim(
            "the same against SVM-light at 1e-3 (here: LIBSVM at 1e-3)",
            {row["problem"]: _qp.is_faster(row["found"][ACTIVE], row["found"][LIBSVM]) for row in rows},
        ),
        *(
            _qp.claim(
                f"the same with the paper's start (here: 'cold' against {name})",
                {row["problem"]: _qp.is_faster(row["found"][COLD], row["found"][name]) for row in cold},
            )
            for name in (SMO, LIBSVM)
        ),
        _qp.same_end(cold, ACTIVE, COLD),
        _qp.claim(
            "SVM-light, which nears the partition asymptotically, ends with more free variables (here: LIBSVM at 1e-6)",
            {row["problem"]: row["libsvm_free"] > row["n_free"] for row in rows if row["libsvm_free"] is not None},
        ),
        f"LIBSVM is scikit-learn's SVC with cache_size={kernel.RIVAL_CACHE_MB}. It has no threads, so ratios are those "
        "of one thread. It runs in a process of its own, in turn with the others, which is ended at the limit "
        "(--max-seconds), because it cannot be interrupted; then '>' stands before the limit, '>=' before the ratio, "
        "which is a lower bound. The clock runs inside that process, around `fit`, after it has touched the memory of "
        "its cache. LIBSVM keeps kernel values in single precision, so that its violation as judged can be larger than "
        "its tolerance. SMO is SVC(solver='auto') with stopping='kkt'. Where a fit to 1e-3 was cut, the one to 1e-6 "
        "was not begun, and counts as cut at the same limit.",
        "KKT violation, dual objective: by benchmarks/kernel_objective.py from dual_coef_ and support_ alone, linear "
        "and polynomial kernels in extended precision.",
        _qp.DATA_NOTE,
        _qp.run_note(rows),
        _qp.COUNT_NOTE,
    ]


def _counted_ratio(found: dict[str, dict[str, Any]]) -> float | None:
    """LIBSVM's seconds by ours; None unless ours reached the tolerance, or at least what LIBSVM did, as judged."""
    ours, libsvm = found[ACTIVE], found[LIBSVM_TIGHT]
    if ours["kkt_violation"] > max(TOL * SLACK, libsvm.get("kkt_violation", 0.0)):
        return None
    return _qp.ratio(libsvm, ours)


def _is_hard(name: str) -> bool:
    return "_lin_" in name or name.startswith("abalone")


def _faster(ratios: dict[str, float | None]) -> str:
    won = [name for name, value in ratios.items() if value is not None and value > 1.0]
    lost = [
        f"{name} ({MISSED if value is None else f'{value:.2f}'})" for name, value in ratios.items() if name not in won
    ]
    verdict = "met" if len(won) >= SHARE * len(ratios) else "**not** met"
    return (
        f"goal, faster than LIBSVM at 1e-6 on {SHARE:.0%} of the problems: {verdict}, on {len(won)} of {len(ratios)}"
        f"{'; not on ' + ', '.join(lost) if lost else ''}."
    )


def _much_faster(ratios: dict[str, float | None]) -> str:
    if not ratios:
        return "goal, linear kernels and abalone: not measured."
    verdict = "met" if all(value is not None and value >= FACTOR for value in ratios.values()) else "**not** met"
    each = ", ".join(f"{name} {MISSED if value is None else f'{value:.1f}'}" for name, value in ratios.items())
    return (
        f"goal, {FACTOR:g} times faster than LIBSVM at 1e-6 on linear kernels and abalone: {verdict} ({each}; lower "
        "bounds where LIBSVM was ended)."
    )


def _web(rows: list[dict[str, Any]]) -> str:
    bounded = {row["problem"]: row["n_bounded"] - row["paper_bounded"] for row in rows}
    free = {row["problem"]: row["n_free"] / row["paper_free"] - 1.0 for row in rows}
    is_met = all(abs(d) <= A_FEW for d in bounded.values()) and all(abs(share) <= NEAR for share in free.values())
    each = ", ".join(f"{name} {bounded[name]:+d} and {free[name]:+.1%}" for name in bounded)
    return (
        f"goal, web: n_c within {A_FEW} of the paper's and n_s within {NEAR:.0%}: {'met' if is_met else '**not** met'} "
        f"({each})."
    )


def _accuracy(rows: list[dict[str, Any]]) -> str:
    missed = [
        f"{name} on {row['problem']} ({found['kkt_violation']:.1e})"
        for row in rows
        for name, found in row["found"].items()
        if name in (ACTIVE, SMO_TIGHT, LIBSVM_TIGHT) and not found["was_cut"] and found["kkt_violation"] > TOL * SLACK
    ]
    said = f"above {TOL:g}: {', '.join(missed)}" if missed else f"at most {TOL:g} for all that were not cut"
    return f"KKT violation as judged: {said}."


if __name__ == "__main__":
    main()
