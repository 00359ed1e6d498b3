"""The SVM-QP paper's Table 2: all rows of web and adult, with conjugate gradients where the factor gets too large."""

from functools import partial
from typing import Any

from benchmarks import record
from benchmarks.datasets.qp_problems import TABLE2
from benchmarks.solvers import kernel
from benchmarks.tables import _paper, _qp
from benchmarks.tables._qp import MB, PAPER_TABLE2, TOL

ACTIVE, COLD, SMO, LIBSVM = "active set", "active set, cold", "SMO 1e-6", "LIBSVM 1e-6"
MATRIX_BYTES = 400 * MB  # "in the space not exceeding 400MB", Section 4.1
CACHE_BYTES = 4_000 * MB  # for kernel rows, ours and SMO's
COLUMNS: dict[str, Any] = {
    **_qp.SIZES,
    "pivots": ("pivots", ",d"),
    "kernel_evaluations": ("kernel evaluations", ".3g"),
    "cold_pivots": ("cold: pivots", ",d"),
    "products": ("CG: products with the matrix", ",d"),
    "matrix_mb": ("matrix of free variables, MB", ",.0f"),
    "active_s": ("active set s", ""),
    "cold_s": ("cold s", ""),
    "smo_s": ("SMO 1e-6 s", ""),
    "libsvm_s": ("LIBSVM 1e-6 s", ""),
    "times_libsvm": ("LIBSVM / active set", ""),
    "paper_times": ("paper, SVM-light / SVM-QP", ".1f"),
    "handed_over": ("handed over to SMO", lambda value: "yes" if value else "no"),
    "cold_handed_over": ("cold", lambda value: "yes" if value else "no"),
    "kkt": ("KKT violation", ".0e"),
    "dual": ("dual objective", ",.4f"),
    "libsvm_free": ("n_s of LIBSVM", ",d"),
}
REMARKS: tuple[str, ...] = (
    "adult_10_100: SVM-QP failed there, so that the paper's n_s is SVM-light's, which leaves weight on many copies of "
    "a row. Here of copies at most one is free.",
    "adult, the others: n_s agrees and n_c is 0.2 to 0.8 % larger, at violations of 1e-9. Equal rows of one class can "
    "share what they have in different ways, with other counts (SMO: 156 and 11,377 on adult_1000_100): both may "
    "be right.",
)


def main() -> None:
    args = _qp.options(__doc__, 600.0, TABLE2, repeats=1)
    title = "SVM-QP paper, Table 2: all rows of web and adult, to a KKT violation of 1e-6"
    _paper.produce(record.Table("qp_paper_table2", title, COLUMNS, "1", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    for problem in _qp.problems(table, TABLE2):
        limit = 500_000 if table.args.quick else MATRIX_BYTES  # so that the smoke test solves by conjugate gradients
        runs: dict[str, Any] = {
            ACTIVE: partial(_qp.active, max_bytes=limit, cache_bytes=CACHE_BYTES),
            COLD: partial(_qp.active, max_bytes=limit, cache_bytes=CACHE_BYTES, **_qp.PAPERS_METHOD),
            SMO: partial(_qp.smo, cache_bytes=CACHE_BYTES),
            LIBSVM: partial(kernel.libsvm_within, tol=TOL),
        }
        found = _qp.compete(problem, runs, table.args)
        ours = found[ACTIVE]
        n_free, n_bounded, light, qp = PAPER_TABLE2[problem.name]
        table.add(
            **_qp.sizes(problem) | {"paper_free": n_free, "paper_bounded": n_bounded},
            n_free=ours["n_free"],
            n_bounded=ours["n_bounded"],
            pivots=ours["pivots"],
            kernel_evaluations=ours["kernel_evaluations"],
            cold_pivots=found[COLD]["pivots"],
            products=ours["products"],
            matrix_mb=_matrix_bytes(ours) / MB,
            active_s=_qp.shown(ours),
            cold_s=_qp.shown(found[COLD]),
            smo_s=_qp.shown(found[SMO]),
            libsvm_s=_qp.shown(found[LIBSVM]),
            times_libsvm=_qp.times(found[LIBSVM], ours),
            paper_times=light / qp if qp else None,
            max_bytes=limit,
            handed_over=_was_handed_over(ours),
            cold_handed_over=_was_handed_over(found[COLD]),
            kkt=ours["kkt_violation"],
            dual=ours["dual"],
            libsvm_free=found[LIBSVM].get("n_free"),
            found=found,
        )


def _was_handed_over(figure: dict[str, Any]) -> bool:
    return any("BlockSMO goes on" in said for said in figure["warnings"])


def _matrix_bytes(figure: dict[str, Any]) -> float:
    """What matrix and factor of the free variables take at the end, or the packed matrix of conjugate gradients."""
    from softmargin.linalg.packed import packed_bytes

    n_free = figure["n_free"]
    return packed_bytes(n_free) if figure["products"] else 12.0 * n_free**2


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    handed_over = [row for row in rows if row["handed_over"]]
    exact = [row for row in rows if not row["found"][ACTIVE]["was_cut"] and not row["handed_over"]]
    by_cold = [row for row in rows if COLD in row["found"]]
    cold = [row for row in by_cold if row["cold_handed_over"]]
    return [
        _qp.CONDITIONS
        + "our SMO and LIBSVM, with one time limit for all (--max-seconds), which the paper does not have.",
        _qp.counts_beside_the_paper(exact),
        _qp.claim(
            "SVM-QP is faster than SVM-light, both to 1e-6 (here: LIBSVM)",
            {
                row["problem"]: _qp.is_faster(row["found"][ACTIVE], row["found"][LIBSVM])
                for row in rows
                if not row["handed_over"]
            },
        ),
        _qp.claim(
            "SVM-light ends with more free variables (web_10_100: 4,025 where SVM-QP has 3,446; here: LIBSVM)",
            {row["problem"]: row["libsvm_free"] > row["n_free"] for row in exact if row["libsvm_free"] is not None},
        ),
        _qp.claim(
            "the same with the paper's start (here: 'cold' against LIBSVM)",
            {
                row["problem"]: _qp.is_faster(row["found"][COLD], row["found"][LIBSVM])
                for row in by_cold
                if not row["cold_handed_over"]
            },
        ),
        _qp.same_end([row for row in by_cold if not row["handed_over"] and not row["cold_handed_over"]], ACTIVE, COLD),
        f"the paper's SVM-QP ran out of memory on adult_10_100, and Section 4.1 suggests an iterative solver. Here "
        f"matrix and factor of the working set, or that of conjugate gradients, may take {MATRIX_BYTES / MB:g} MB "
        f"(max_bytes, the paper's limit for Q_s), kernel rows {CACHE_BYTES / MB:,.0f} MB more (cache_bytes). Conjugate "
        "gradients solved where more than 2,000 variables were free or the factor had no room: "
        + (", ".join(_ending(row) for row in rows if row.get("products")) or "nowhere")
        + ". The column of the matrix is for the free variables of the end: 12 bytes for each pair with the factor, 4 "
        "with conjugate gradients. Where that was too little "
        + (
            f"BlockSMO went on, warm: {', '.join(_ending(row) for row in handed_over)}."
            if handed_over
            else "BlockSMO would have gone on; no fit of the default met it."
        )
        + (
            f" From zero, with the factor alone, it did on {', '.join(row['problem'] for row in cold)}." if cold else ""
        ),
        "LIBSVM runs in a process of its own, which is ended at the limit (--max-seconds); then '>' stands before the "
        "limit and '>=' before the ratio.",
        "names with 'all': the same name in Table 1 is the half of the data.",
        _qp.DATA_NOTE,
        _qp.run_note(rows),
        _qp.COUNT_NOTE,
    ]


def _ending(row: dict[str, Any]) -> str:
    ours = row["found"][ACTIVE]
    if ours["was_cut"]:
        return f"{row['problem']} (cut at {ours['seconds']:.0f} s with a violation of {ours['kkt_violation']:.0e})"
    return f"{row['problem']} (to the end: {ours['seconds']:.0f} s, a violation of {ours['kkt_violation']:.0e})"


if __name__ == "__main__":
    main()
