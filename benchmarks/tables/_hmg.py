"""What the scripts that repeat the HMG paper's experiments share: options, problems, trials, notes."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from scipy.stats import mannwhitneyu

from benchmarks import cells, record
from benchmarks.datasets.kernel_problems import CONNECT_4_ROWS, KernelProblem, load_kernel, tiny_kernel
from benchmarks.solvers import kernel
from benchmarks.solvers.kernel import KernelFit
from benchmarks.tables import _paper

MVP, SECOND, HMG, LIGHT = "most violating pair", "second order", "HMG", "decomposition"
ONE_ROW, TEN_ROWS, ALL_ROWS = "HMG, one row", "HMG, ten rows", "HMG, all cached rows"
GREEDY, TRIPLES = "greedy, all pairs", "sets of 3 by gain"
WORKING_SETS: dict[str, dict[str, Any]] = {
    MVP: {"rule": "most_violating_pair"},
    SECOND: {"rule": "second_order"},
    HMG: {"rule": "hybrid_maximum_gain"},
    LIGHT: {"rule": "decomposition"},
    ONE_ROW: {"rule": "gain_one_row"},
    TEN_ROWS: {"rule": "gain_recent_rows"},
    ALL_ROWS: {"rule": "gain_all_cached"},
    GREEDY: {"rule": "greedy"},
    TRIPLES: {"rule": "gain_sets", "block": 3},
}
# The same rules with the paper's own stop, where a short step ends the solve, confirmed or not. For the most violating
# pair and for second order that is the KKT gap, as in all other rows.
HMG_OWN, ONE_OWN, ALL_OWN = (f"{rule}, the paper's stop" for rule in (HMG, ONE_ROW, ALL_ROWS))
OWN_STOP = {HMG_OWN: HMG, ONE_OWN: ONE_ROW, ALL_OWN: ALL_ROWS}
WORKING_SETS |= {name: WORKING_SETS[rule] | {"strict": False} for name, rule in OWN_STOP.items()}
# The same with mu_max in place of mu*: a step that only the box makes short ends nothing. With mu*, as the paper prints
# it, solves end by chance, on connect-4 8 % below the optimum; with mu_max its counts and objectives come out.
HMG_FREE, ONE_FREE, ALL_FREE = (f"{rule} without the box" for rule in (HMG_OWN, ONE_OWN, ALL_OWN))
FREE_STOP = {f"{name} without the box": rule for name, rule in OWN_STOP.items()}
WORKING_SETS |= {name: WORKING_SETS[rule] | {"strict": False, "clipped": False} for name, rule in FREE_STOP.items()}
PAPERS_STOP = OWN_STOP | FREE_STOP
SHORT = 1e-6  # relative: the paper's own rules differ by less in their objectives
CACHE_MB = 40
# Parts on which every fit is soon at its end: of which data, and their rows. The cache is as much smaller as the kernel
# matrix is, so that it holds the share of the matrix that 40 MB do of the whole.
PART, MNIST_PART = "connect-4 8k", "mnist 5k"
SPAM_PART = "spambase 2k"  # exact greedy compares all pairs of up to 2,000 rows
PARTS = {PART: ("connect-4", 8_000), MNIST_PART: ("mnist 20k", 5_000), SPAM_PART: ("spambase", 2_000)}
REPEATS, LONG = 10, 120.0  # orders of the rows; a fit that takes longer, in seconds, is not repeated
SIGNIFICANT = 0.001  # the p of the paper's tests
MIN_ORDERS = 8  # with fewer than 7 on each side no difference is significant
# Table 1 of the paper: the shares of support vectors, and of those at C.
PAPER_SV = {"spambase": (0.185, 0.117), "connect-4": (0.27, 0.077), "mnist 60k": (0.105, 0.046)}
# Table 2 of the paper, Table 3 for decomposition: iterations, seconds, objective.
PAPER: dict[str, dict[str, tuple[int, float, float]]] = {
    "spambase": {
        MVP: (36_610, 11.21, 27_019.138),
        SECOND: (9_228, 8.44, 27_019.140),
        HMG: (10_563, 9.17, 27_019.140),
        LIGHT: (9_450, 23.97, 27_019.125),
    },
    "connect-4": {
        MVP: (65_167, 916, 13_557.542),
        SECOND: (45_504, 734, 13_557.542),
        HMG: (50_281, 633, 13_557.536),
        LIGHT: (17_315, 5_589, 13_557.520),
    },
    "mnist 60k": {
        MVP: (185_162, 13_657, 143_199.142),
        SECOND: (110_441, 9_957, 143_199.146),
        HMG: (152_873, 7_485, 143_199.160),
        LIGHT: (42_347, 282_262, 143_175.447),
    },
}
WHOLE_ROWS = {"connect-4": CONNECT_4_ROWS, "mnist 20k": 20_000, "spambase": 4_601}
FULL = {PART: "connect-4", "mnist 20k": "mnist 60k"}  # what --full measures instead
WHOLE = "30,555 of connect-4, 60,000 of mnist"
SETS = ("spambase", PART, "connect-4", "mnist 20k")
DATA_NOTE = (
    "data: spambase is standardised (sigma = 10, C = 50). connect-4 has 42 values in {-1, 0, 1}, no draws, and a half "
    "drawn by us, of the paper's size (sigma = 1.5, C = 4.5), kept dense: the paper's half is not known, so counts and "
    "objectives can agree only roughly. mnist is 0 to 4 against 5 to 9, pixels 0 to 255 (sigma = 3500, C = 50), 20,000 "
    f"rows unless --full was given. {PART} and {MNIST_PART} are parts of these, with a cache that is as much smaller "
    f"as the matrix is (a share of 1.1 and of 2.6 %), {SPAM_PART} one whose matrix fits into the cache. The paper's "
    "numbers stand beside its own sizes only. Its face data are not public."
)
RUN_NOTE = (
    f"runs: stopping='kkt', tol = {kernel.TOL:g}, tested at every step; in rows named \"the paper's stop\" "
    "stopping='gain' with strict=False, where a step that is chosen by its gain and shorter than tol ends the solve, "
    'however large the KKT gap is; with "without the box" the length is mu_max instead of mu*, because the box cuts '
    "steps short by chance, early too; only so do the paper's counts come out. A solve that ends more than a millionth "
    "below the objective of the others ended short, and its cost is not compared. "
    f"float32 kernel rows, a cache of {CACHE_MB} MB (2^20 bytes each, as LIBSVM counts) "
    "unless the table says otherwise; what is kept of a shrunk problem counts in it. Figures are medians over orders "
    "of the rows, where the paper has 10 first pairs; every rule sees the same orders. The range is printed beside. "
    "Differences are tested as in the paper, by Wilcoxon's rank sum test, two-tailed, p < 0.001. The seconds are of "
    "the whole `fit`, judge included, one thread. The paper's machine was a 1.5 GHz Athlon: counts can be compared, "
    "ratios of seconds roughly, seconds not."
)
COUNT_NOTE = (
    "iterations: pair steps; for decomposition, working sets of 10 variables. kernel evaluations: every value that was "
    "computed, also those that sum a gradient anew after shrinking. misses: rows that were computed because the cache "
    "did not have them. The paper does not count either. A fit that was cut has not met its stop rule: it is left out "
    "of every comparison. objective: the dual value, in float64, by benchmarks/kernel_objective.py."
)


def options(
    description: str | None,
    max_seconds: float,
    sets: Sequence[str],
    rules: Sequence[str] = (),
    *,
    repeats: int = REPEATS,
    full: bool = False,
    adds: bool = True,
    rows: int | None = None,
) -> argparse.Namespace:
    """The command line; a smoke test makes each fit once, and shortens it."""
    parser = record.options(description)
    parser.set_defaults(only=None, add=False, full=False, rules=None)
    if len(sets) > 1:
        chosen = [*sets, *(FULL[name] for name in sets if full and name in FULL and FULL[name] not in sets)]
        text = f"one data set ({', '.join(chosen)}); not written without --out{' or --add' if adds else ''}"
        parser.add_argument("--only", metavar="NAME", choices=chosen, help=text)
        if adds:
            text = "write: rows that are measured take the place of the last ones, which stay otherwise"
            parser.add_argument("--add", action="store_true", help=text)
    if len(rules) > 1:
        text = f"only these rules, separated by semicolons ({'; '.join(rules)})"
        parser.add_argument("--rules", metavar="NAMES", type=lambda names: _chosen(names, rules), help=text)
    if full:
        parser.add_argument("--full", action="store_true", help=f"the paper's rows only: {WHOLE}; takes long")
    if rows is not None:
        parser.add_argument("--rows", type=int, default=rows, help=f"rows of the data [{rows:,}]")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"orders of the rows [{repeats}]")
    parser.add_argument("--long", type=float, default=LONG, help=f"seconds of a fit that is not repeated [{LONG:g}]")
    parser.add_argument("--max-seconds", type=float, default=max_seconds, help=f"limit of one fit [{max_seconds:g}]")
    parser.add_argument("--render", action="store_true", help="measure nothing: write the last results again")
    cells.add_options(parser)
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.max_seconds = 2 if args.repeats > 1 else 1, 0.5
    args.rules = args.rules or tuple(rules)
    return args


def _chosen(names: str, rules: Sequence[str]) -> tuple[str, ...]:
    chosen = tuple(name.strip() for name in names.split(";"))
    unknown = [name for name in chosen if name not in rules]
    if unknown:
        raise argparse.ArgumentTypeError(f"no rule of this table is {unknown[0]!r}: choose among {'; '.join(rules)}")
    return tuple(rule for rule in rules if rule in chosen)


def measured_also(table: record.Table) -> None:
    """With --add: the rows of other data sets, and of other rules on this one, as they were measured before."""
    args = table.args
    path = _paper.folder(args) / f"{table.name}.json"
    if not args.add or not path.exists():
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    table.settings = content.get("settings", {})
    new = {(row["data"], row["solver"]) for row in table.rows}
    table.rows[:] = [row for row in content["rows"] if (row["data"], row["solver"]) not in new] + table.rows


def problems(table: record.Table, names: Sequence[str], rules: Iterable[str]) -> Iterator[KernelProblem]:
    """The data sets to be measured, each a cell of the table. `names` are those without --only."""
    args = table.args
    wanted = list(dict.fromkeys(FULL.get(name, name) for name in names)) if args.full else list(names)
    for name in table.cells.each((args.only,) if args.only else wanted[:2] if args.quick else wanted):
        yield prepared(name, rules, args)


def prepared(name: str, rules: Iterable[str], args: argparse.Namespace) -> KernelProblem:
    """The data set; what the rules need is compiled."""
    problem = tiny_kernel(name) if args.quick else _loaded(name)
    for rule in rules:
        kernel.softmargin(problem.part(1500), **_how(rule), max_iter=3, n_jobs=1)
    return problem


def _loaded(name: str) -> KernelProblem:
    """connect-4 is dense here: a row of 42 numbers takes less time than one of 8 that are found by their index."""
    if name in PARTS:
        whole, n_rows = PARTS[name]
        return replace(load_kernel(whole).dense().part(n_rows), name=name)
    return load_kernel(name).dense()


def cache_bytes(problem: KernelProblem, cache_mb: float = CACHE_MB) -> float:
    """The paper's cache, or for a part the same share of the matrix."""
    whole, n_rows = PARTS.get(problem.name, ("", 1)) if problem.name != SPAM_PART else ("", 1)
    share = (n_rows / WHOLE_ROWS[whole]) ** 2 if whole else 1.0
    return cache_mb * kernel.MIB * share


def trials(
    table: record.Table,
    problem: KernelProblem,
    rules: Iterable[str],
    *,
    cache_mb: float = CACHE_MB,
    shrinking: bool = True,
) -> dict[str, list[dict[str, Any]]]:
    """Fits by rule: each rule in turn on one order of the rows, then on the next order; parts of a cell."""
    args = table.args
    settings = {"cache_bytes": cache_bytes(problem, cache_mb), "max_seconds": args.max_seconds, "n_jobs": 1}
    found: dict[str, list[dict[str, Any]]] = {rule: [] for rule in rules}
    for seed in range(args.repeats):
        ordered = problem.shuffled(seed)
        for rule, fits in found.items():
            if not fits or fits[0]["seconds"] < args.long:
                fit = partial(kernel.softmargin, ordered, **_how(rule, shrinking), **settings)
                key = f"{rule}, {'' if shrinking else 'not '}shrunk, order {seed}"
                fits.append(table.cells.part(key, _measured, fit, not fits))
    return found


def _measured(made: Callable[[], KernelFit], with_objective: bool) -> dict[str, Any]:
    """What the table needs of a fit."""
    fit = made()
    model = fit.model
    return {
        "seconds": fit.seconds,
        "status": model.status_.name,
        "counts": model.counts_,
        "objective": fit.dual if with_objective else None,
        "kkt_violation": float(model.certificate_.kkt_violation),
        "sv_share": fit.n_support / fit.problem.n_rows,
        "bounded_share": fit.n_bounded / fit.problem.n_rows,
    }


def _how(rule: str, shrinking: bool = True) -> dict[str, Any]:
    """The parameters of a fit by this rule."""
    from softmargin import SMO

    stopping = "kkt" if WORKING_SETS[rule].get("strict", True) else "gain"
    return {"solver": SMO(**WORKING_SETS[rule], shrinking=shrinking), "stopping": stopping}


def figures(fits: list[dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    """Medians of counts and seconds over the orders, with their ranges; objective and shares are those of the first."""
    first = fits[0]
    statuses = {fit["status"] for fit in fits}
    was_cut = "MAX_SECONDS" in statuses
    counts = {name: int(median(fit["counts"][name] for fit in fits)) for name in first["counts"]}
    iterations = [int(fit["counts"]["iterations"]) for fit in fits]
    seconds = [fit["seconds"] for fit in fits]
    return {
        **counts,
        "all_iterations": iterations,
        "iterations_range": _range(iterations, ",d"),
        "seconds": median(seconds),
        "all_seconds": seconds,
        "seconds_range": _range(seconds, ".2f"),
        "n_orders": len(fits),
        "objective": first["objective"],
        "kkt_violation": median(fit["kkt_violation"] for fit in fits),
        "sv_share": first["sv_share"],
        "bounded_share": first["bounded_share"],
        "was_cut": was_cut,
        "ended": f"cut at {args.max_seconds:g} s" if was_cut else _ending(statuses),
    }


def _range(values: Sequence[float], form: str) -> str:
    """The least and the largest of several."""
    return f"{min(values):{form}} to {max(values):{form}}" if len(values) > 1 else "one run"


def beside(name: str, rule: str, table: Mapping[str, Mapping[str, tuple]]) -> tuple | None:
    """What the paper prints. It stands beside the rules with the paper's stop, where there are such."""
    return table.get(name, {}).get(PAPERS_STOP.get(rule, rule)) if rule not in PAPERS_STOP.values() else None


def shares(name: str) -> dict[str, float | None]:
    """The paper's shares of support vectors."""
    of_all, at_bound = PAPER_SV.get(name, (None, None))
    return {"paper_sv_share": of_all, "paper_bounded_share": at_bound}


def conditions(rows: Sequence[Mapping[str, Any]], *more: str) -> str:
    """The first line under a table: what was not as in the paper."""
    orders = sorted({row["n_orders"] for row in rows})
    said = [
        "rows named \"the paper's stop\" end as the paper's did, all others when the KKT gap of the whole problem is "
        "at most 0.001, confirmed by the judge",
        f"{' or '.join(map(str, orders))} order{'s' if orders != [1] else ''} of the rows instead of 10 first pairs",
        "the half of connect-4 was drawn by us",
        *more,
    ]
    parts = sorted({row["data"] for row in rows if row["data"] in (*PARTS, "mnist 20k")})
    if parts:
        said.append(f"{', '.join(parts)} are parts of the paper's data")
    return f"Other conditions than the paper's: {'; '.join(said)}."


def significance(row: Mapping[str, dict[str, Any]], rule: str, other: str, key: str) -> str:
    """Whether two rules differ in iterations or seconds, by Wilcoxon's rank sum test over the orders."""
    if rule not in row or other not in row:
        return "not measured"
    one, two = (row[name].get(f"all_{key}", ()) for name in (rule, other))
    if min(len(one), len(two)) < MIN_ORDERS:
        return "too few orders for a test"
    p = float(mannwhitneyu(one, two, alternative="two-sided").pvalue)
    return f"p = {p:.1g}, {'significant' if p < SIGNIFICANT else '**not** significant'}"


def tests(found: Mapping[str, Mapping[str, dict[str, Any]]], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The paper's tests, for each data set."""
    return [
        f"Wilcoxon's test, {name}, {one} against {two}: iterations {significance(row, one, two, 'iterations')}; "
        f"seconds {significance(row, one, two, 'seconds')}."
        for name, row in found.items()
        for one, two in pairs
        if one in row and two in row
    ]


def _ending(statuses: set[str]) -> str:
    return "tolerance" if statuses == {"OPTIMAL"} else ", ".join(sorted(statuses)).lower()


def ends_short(row: Mapping[str, dict[str, Any]], rule: str) -> bool:
    """Whether the length of a step ended this solve too far below the objective of the others to compare its cost."""
    if rule not in PAPERS_STOP:
        return False
    best = max(fit["objective"] for fit in row.values() if not fit["was_cut"])
    return bool(row[rule]["objective"] < best - SHORT * abs(best))


def fewest(row: Mapping[str, dict[str, Any]], rule: str, others: Iterable[str], key: str) -> bool | None:
    """Whether this rule needs the least of `key`; None where a fit was cut, not made, or ended short of the optimum."""
    if any(name not in row or row[name]["was_cut"] or ends_short(row, name) for name in (rule, *others)):
        return None
    return all(row[rule][key] <= row[name][key] for name in others)


def most(row: Mapping[str, dict[str, Any]], rule: str, others: Iterable[str], key: str) -> bool | None:
    """Whether this rule needs the most of `key`; None where a fit was cut."""
    if any(name not in row or row[name]["was_cut"] for name in (rule, *others)):
        return None
    return all(row[rule][key] >= row[name][key] for name in others)


def claim(said: str, holds: Mapping[str, bool | None]) -> str:
    """A statement of the paper, on which data sets it is true here, and where a fit that was cut leaves it open."""
    true, false, unknown = (
        [name for name, value in holds.items() if value is wanted] for wanted in (True, False, None)
    )
    parts = [f"here too on {', '.join(true)}"] if true else []
    parts += [f"**not** on {', '.join(false)}"] if false else []
    parts += [f"open on {', '.join(unknown)}, where a fit was cut, not made, or ended short"] if unknown else []
    return f"The paper: {said}. Found: {'; '.join(parts) or 'not measured'}."


def relative(row: dict[str, Any] | None, base: dict[str, Any] | None, key: str) -> float | None:
    """row / base, unless one was cut or not measured."""
    return None if row is None or base is None or row["was_cut"] or base["was_cut"] else row[key] / base[key]
