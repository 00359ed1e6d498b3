"""The SVM-QP paper's Table 2: all rows of web and adult, and what happens where the active set gets too large."""

from functools import partial
from typing import Any

from benchmarks import record
from benchmarks.datasets.qp_problems import TABLE2
from benchmarks.solvers import kernel
from benchmarks.tables import _paper, _qp
from benchmarks.tables._qp import MB, PAPER_TABLE2, TOL

ACTIVE, SMO, LIBSVM = "active set", "SMO 1e-6", "LIBSVM 1e-6"
MATRIX_BYTES = 400 * MB  # "in the space not exceeding 400MB", Section 4.1
# Less where the paper ran out of memory: some 9,000 free variables would be reached only after many minutes.
TOO_LARGE, TOO_LARGE_BYTES = "adult_10_100", 100 * MB
COLUMNS: dict[str, Any] = {
    **_qp.SIZES,
    "pivots": ("pivots", ",d"),
    "kernel_evaluations": ("kernel evaluations", ".3g"),
    "active_s": ("active set s", ""),
    "smo_s": ("SMO 1e-6 s", ""),
    "libsvm_s": ("LIBSVM 1e-6 s", ""),
    "times_libsvm": ("LIBSVM / active set", ""),
    "paper_times": ("paper, SVM-light / SVM-QP", ".1f"),
    "handed_over": ("handed over to SMO", lambda value: "yes" if value else "no"),
    "kkt": ("KKT violation", ".0e"),
    "dual": ("dual objective", ",.4f"),
    "libsvm_free": ("n_s of LIBSVM", ",d"),
}
REMARKS: tuple[str, ...] = (
    "web_10_100: with 3,446 free variables a pivot, which solves with their factor, takes some 20 ms, and "
    "duplicate rows among them, on which the start has spread the weight, are taken out one pivot each. SMO, "
    "which asks for no factor, needs a third of the time; the exact sets are what the rest buys.",
    "adult: n_s agrees and n_c is 0.2 to 0.8 % larger, at violations of 1e-9. Equal rows of one class can share what "
    "they have in different ways, with other counts (SMO: 156 and 11,377 on adult_1000_100): both may be right.",
)


def main() -> None:
    args = _qp.options(__doc__, 50.0, TABLE2, repeats=1)
    title = "SVM-QP paper, Table 2: all rows of web and adult, to a KKT violation of 1e-6"
    _paper.produce(record.Table("qp_paper_table2", title, COLUMNS, "1", args), _measure, _notes, REMARKS)


def _measure(table: record.Table) -> None:
    for problem in _qp.problems(table.args, TABLE2):
        limit = TOO_LARGE_BYTES if problem.name == TOO_LARGE else MATRIX_BYTES
        limit = 20_000 if table.args.quick else limit  # so that the smoke test hands over
        runs: dict[str, Any] = {
            ACTIVE: partial(_qp.active, max_bytes=limit),
            SMO: _qp.smo,
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
            active_s=_qp.shown(ours),
            smo_s=_qp.shown(found[SMO]),
            libsvm_s=_qp.shown(found[LIBSVM]),
            times_libsvm=_qp.times(found[LIBSVM], ours),
            paper_times=light / qp if qp else None,
            max_bytes=limit,
            handed_over=any("BlockSMO goes on" in said for said in ours["warnings"]),
            kkt=ours["kkt_violation"],
            dual=ours["dual"],
            libsvm_free=found[LIBSVM].get("n_free"),
            found=found,
        )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    handed_over = [row for row in rows if row["handed_over"]]
    exact = [row for row in rows if not row["found"][ACTIVE]["was_cut"] and not row["handed_over"]]
    return [
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
        f"the paper's SVM-QP ran out of memory on adult_10_100. Here matrix and factor of the working set may take "
        f"{MATRIX_BYTES / MB:g} MB (max_bytes, the paper's limit), on {TOO_LARGE} only {TOO_LARGE_BYTES / MB:g} MB, "
        "so that what happens then is seen within the limit of time; "
        + (
            f"BlockSMO went on, warm, on {', '.join(_ending(row) for row in handed_over)}."
            if handed_over
            else "no fit met it."
        ),
        "LIBSVM runs in a process of its own, which is ended at the limit (--max-seconds); then '>' stands before the "
        "limit and '>=' before the ratio.",
        "names with 'all': the same name in Table 1 is the half of the data.",
        _qp.DATA_NOTE,
        _qp.RUN_NOTE,
        _qp.COUNT_NOTE,
    ]


def _ending(row: dict[str, Any]) -> str:
    ours = row["found"][ACTIVE]
    if ours["was_cut"]:
        return f"{row['problem']} (cut at {ours['seconds']:.0f} s with a violation of {ours['kkt_violation']:.0e})"
    return f"{row['problem']} (to the end)"


if __name__ == "__main__":
    main()
