"""What the verdicts say of fits that were cut, handed over, or not made: nothing that the rows do not show."""

import pytest
from benchmarks.tables import _kernel_verdicts as kernel
from benchmarks.tables import _linear_verdicts as linear
from benchmarks.tables import _summary
from benchmarks.tables._hmg import ALL_ROWS, HMG, HMG_FREE, HMG_OWN, MVP, ONE_FREE, ONE_ROW, SECOND
from benchmarks.tables._summary import NOT_YET, PAPERS
from benchmarks.tables._verdicts import is_less, of, takes

MEASURED = [entry for entries in PAPERS.values() for entry in entries if entry.result]


@pytest.mark.parametrize("entry", MEASURED, ids=lambda entry: f"{entry.result}-{entry.what}")
def test_without_rows_there_is_no_verdict(entry):
    assert _summary.verdict(entry, []) == NOT_YET


def test_a_cut_fit_is_a_lower_bound():
    assert is_less(1.0, 2.0, True) is True
    assert is_less(2.0, 1.0, True) is None
    assert is_less(2.0, 1.0, False) is False
    slow, fast = {"seconds": 10.0, "was_cut": True}, {"seconds": 1.0, "was_cut": False}
    assert takes(4.7, slow, fast) is True
    assert takes(22.0, slow, fast) is None
    assert takes(22.0, slow | {"was_cut": False}, fast) is False
    assert takes(2.0, slow, fast | {"was_cut": True}) is None
    assert of([True, None, False]) == "1 of 2"


def perf_row(solver, seconds, cut=False, problem="classification", C=1.0, **more):
    row = {"part": "time", "data": "bio", "problem": problem, "solver": solver, "C": C, "n_rows": 1, "epsilon": 0.001}
    return row | {"seconds": seconds, "iterations": 3, "was_cut": cut, "of_classification": 2.0} | more


@pytest.mark.parametrize(
    ("seconds", "cut", "said"), [(60.0, True, "0 of 0"), (60.0, False, "0 of 1"), (200.0, True, "1 of 1")]
)
def test_svm_perf_table_1_does_not_count_what_was_cut_too_early(seconds, cut, said):
    rows = [perf_row("CPA", 40.0), perf_row("CPA", 40.0, problem="ordinal"), perf_row("SVM-light", seconds, cut)]
    assert f"SVM-light takes at least 4.7 times as long as CPA, as SVM-light does there, on {said} data sets" in (
        linear.perf_table1(rows)
    )


def test_svm_perf_figure_9_does_not_either():
    cpa = [perf_row("CPA", 2.0 + C, C=C) for C in (1.0, 2.0, 3.0)]
    assert "in 1 of 1 fits" in linear.perf_figure9(
        [*cpa, perf_row("SVM-light", 5.0, C=1.0), perf_row("SVM-light", 1.0, True, C=2.0)]
    )


def figure3_row(part, C=1.0, epsilon=0.001, cut=False, **more):
    return {
        "part": part,
        "data": "ccat",
        "C": C,
        "epsilon": epsilon,
        "was_cut": cut,
        "n_rows": 9,
        "seconds": 1.0,
    } | more


def test_svm_perf_figure_3_says_how_much_was_compared():
    rows = [figure3_row("3", 1.0, difference=0.5), figure3_row("3", 10.0, difference=None)]
    assert linear.perf_figure3(rows).endswith("on 1 of 1 data sets; neither was cut in 1 of 2 fits.")
    assert linear.perf_figure3(rows[1:]) is None


def test_svm_perf_figure_4_does_not_compare_the_reference_with_itself():
    reference = figure3_row("4", epsilon=0.001, difference=0.0)
    assert linear.perf_figure4([reference]) is None
    other = figure3_row("4", epsilon=0.01, difference=-0.7)
    coarse = figure3_row("4", epsilon=0.1, difference=-0.1)
    assert linear.perf_figure4([reference, other, coarse]).endswith("in 0 of 1 fits.")


def test_svm_perf_figure_7_has_two_panels():
    rows = [
        figure3_row("7 left", below=0.004),
        figure3_row("7 left", 10.0, below=0.02),
        figure3_row("7 left", 99.0, below=None),
    ]
    rows += [figure3_row("7 right", epsilon=e, below=e) for e in (0.1, 0.01, 0.001)]
    said = linear.perf_figure7(rows)
    assert "in 1 of 2 fits, at most 2.0% in all" in said
    assert said.endswith("decreases with every smaller epsilon on 1 of 1 data sets.")


def ocas_row(solver, times, cut=False, **more):
    row = {"data": "cov1", "solver": solver, "times_ocas": times, "seconds": times, "was_cut": cut, "iterations": 100}
    return row | {"paper_iterations": 80, "cut": "1 of 5" if cut else "", "roc": 84.0, "paper_roc": 83.9} | more


def test_ocas_table_2_leaves_open_what_was_cut_below_the_factor():
    rows = [ocas_row("OCAS", 1.0), ocas_row("CPA", 5.0), ocas_row("BMRM", 6.0, True), ocas_row("SVM-light", 10.0, True)]
    said = linear.ocas_table2(rows)
    assert "CPA takes more time on 1 of 1" in said
    assert "BMRM takes more time on 1 of 1" in said
    assert "SVM-light takes at least 22 times as long, as in the paper, on 0 of 0" in said


def test_ocas_table_3_names_sets_on_which_ocas_was_cut_and_judges_them_in_nothing():
    whole = [ocas_row("OCAS", 1.0), ocas_row("CPA", 5.0, True), ocas_row("SVM-light", 9.0, True)]
    cut = [row | {"data": "artificial", "cut": "1 of 8"} for row in whole]
    said = linear.ocas_table3([*whole, *cut])
    assert "in less time than CPA on 1 of 1 data sets" in said
    assert "at least 38 times as long, as the paper's SVM-light, takes SVM-light on 0 of 0" in said
    assert said.endswith("fits of OCAS were cut on artificial.")
    assert linear.ocas_table3(cut) is None


def qp_fit(seconds=1.0, cut=False, kkt=1e-7, **more):
    return {"seconds": seconds, "was_cut": cut, "kkt_violation": kkt, "n_free": 10, "n_bounded": 5} | more


def test_svm_qp_table_2_does_not_count_what_blocks_have_ended():
    def row(**more):
        found = {"active set": qp_fit(), "active set, cold": qp_fit(cut=True), "LIBSVM 1e-6": qp_fit(2.0)}
        sizes = {"n_free": 10, "paper_free": 10, "n_bounded": 5, "paper_bounded": 5}
        return {"found": found, "handed_over": False, "cold_handed_over": False} | sizes | more

    said = kernel.qp_table2([row(), row(handed_over=True)])
    assert said.startswith("The active set ends by itself on 1 of 2 problems")
    assert "from zero, with the factor alone, on 0 of 2" in said


def test_svm_qp_a_fit_that_misses_the_tolerance_is_not_faster():
    row = {"found": {"active set": qp_fit(kkt=1e-4), "LIBSVM 1e-6": qp_fit(2.0)}}
    row |= {"n_free": 10, "paper_free": 10, "n_bounded": 5, "paper_bounded": 5}
    assert kernel.qp_table1([row]).endswith("is faster than LIBSVM at 1e-6 on 0 of 1.")


def test_svm_qp_paths_tell_pivots_and_time():
    one = {"cold": qp_fit(2.0, pivots=9), "blocks": qp_fit(0.5, pivots=5), "warm": qp_fit(1.0, pivots=3)}
    cut = {"cold": qp_fit(2.0, True, pivots=2), "blocks": qp_fit(2.0, True, pivots=5), "warm": qp_fit(1.0, pivots=3)}
    said = kernel.qp_paths([{"is_first": True, "found": one}, *({"is_first": False, "found": f} for f in (one, cut))])
    assert "at 1 of 1 values, and less time at 2 of 2" in said
    assert said.endswith("where blocks begin at 1 of 2.")
    assert kernel.qp_paths([{"is_first": True, "found": one}]) is None


def test_svm_qp_table_6_keeps_parts_and_wholes_apart():
    def row(n, of, times):
        return {"n_rows": n, "all_rows": of, "times_cold": times, "paper_times": 8.0}

    assert kernel.qp_table6([row(100, 500, 40.0)]).startswith("On at most 100 rows of 1 problems")
    said = kernel.qp_table6([row(100, 500, 40.0), row(300, 300, 20.0)])
    assert said.startswith("Rows one at a time take 20.0 times as long as a cold fit in the median of 1 problems")
    assert said.endswith("of 1 problems a part of the rows was learned, which takes 40.0 times as long.")


def hmg_row(rule, iterations, data="spambase", cut=False, objective=100.0, seconds=1.0):
    row = {"data": data, "problem": data, "solver": rule, "iterations": iterations, "was_cut": cut}
    return row | {"objective": objective, "seconds": seconds}


def test_hmg_table_2_compares_solves_that_came_to_their_end():
    rows = [hmg_row(MVP, 3), hmg_row(SECOND, 1), hmg_row(HMG, 21_126), hmg_row(HMG_OWN, 10_563)]
    rows += [hmg_row(HMG_FREE, 10_563)]
    said = kernel.hmg_table2(rows)
    assert said.startswith("HMG with the paper's stop needs 1.00 (spambase) times the paper's iterations;")
    assert "HMG with mu_max in it needs 1.00" in said
    assert "HMG to the KKT gap needs 2.00" in said
    rows[3] |= {"objective": 99.99}
    said = kernel.hmg_table2(rows)
    assert said.startswith("HMG with mu_max in it needs 1.00 (spambase)")
    assert "the paper's stop ends more than a millionth below the others on 1 of 1 data sets" in said


def test_hmg_a_solve_that_ended_short_is_not_the_quickest():
    rows = [hmg_row(rule, 9, "connect-4", seconds=5.0) for rule in (MVP, SECOND, HMG)]
    rows += [hmg_row(HMG_FREE, 9, "connect-4", objective=90.0)]
    assert "least time on 1 of 1, with mu_max in the stop on 0 of 0" in kernel.hmg_table2(rows)
    rows[-1] |= {"objective": 100.0}
    assert "with mu_max in the stop on 1 of 1" in kernel.hmg_table2(rows)


def test_hmg_table_6_compares_equal_stops():
    rows = [hmg_row(HMG, 100), hmg_row(ONE_ROW, 120)]
    assert kernel.hmg_table6(rows) == "One row needs 1.20 (spambase, paper 1.33) times the iterations of two rows."
    rows += [hmg_row(HMG_FREE, 80), hmg_row(ONE_FREE, 120)]
    assert kernel.hmg_table6(rows) == (
        "One row needs 1.20 (spambase) times the iterations of two rows; with the paper's stop without the box 1.50 "
        "(spambase, paper 1.33)."
    )
    assert kernel.hmg_table7([hmg_row(HMG, 100), hmg_row(ALL_ROWS, 70, cut=True)]) is None
