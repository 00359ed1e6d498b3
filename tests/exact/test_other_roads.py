"""Every other road to a certificate, held against exact arithmetic: certify, a warm start, rows that come and go."""

import numpy as np
import pytest

from exact.problems import make
from exact.test_brackets import N_PROBLEMS
from exact.verdict import judge
from softmargin import c_path, certify

BATCH = 100


def _certified_again(problem):
    model = problem.fit()
    return model, certify(model, problem.stored, np.array(problem.y), **problem.options)


def _continued_at_another_C(problem):
    """One class has nu instead; and a regression begins with another tube."""
    names = {"C", "nu", "epsilon"} & set(problem.parameters)
    model = problem.model().set_params(warm_start=True, **{name: 0.4 * problem.parameters[name] for name in names})
    model.fit(problem.stored, np.array(problem.y), **problem.options)
    model.set_params(**{name: problem.parameters[name] for name in names})
    return model.fit(problem.stored, np.array(problem.y), **problem.options)


def _end_of_a_path(problem):
    C = problem.parameters["C"]
    return c_path(problem.model(), problem.stored, np.array(problem.y), [3.0 * C, C], **problem.options)[-1]


def _grown(problem):
    """Learned in two parts, with a row too many that is forgotten; the kernel is that of all rows."""
    model = problem.model().set_params(gamma=problem.fit().gamma_ or 1.0)
    X, y = problem.stored, np.array(problem.y)
    weights = np.ones(len(y)) if problem.sample_weight is None else np.array(problem.sample_weight)
    half = len(y) // 2
    model.partial_fit(X[:half], y[:half], classes=np.unique(y), sample_weight=weights[:half])
    model.partial_fit(X[half - 1 :], y[half - 1 :], sample_weight=weights[half - 1 :])
    return model.forget(half)


ROADS = {
    "certify": (_certified_again, lambda problem: True),
    "warm start": (_continued_at_another_C, lambda problem: True),
    "path": (_end_of_a_path, lambda problem: "C" in problem.parameters),
    "partial_fit and forget": (
        _grown,
        lambda problem: (
            problem.estimator == "SVC"
            and problem.parameters["kernel"] != "precomputed"
            and "class_weight" not in problem.parameters
        ),
    ),
}


@pytest.mark.parametrize("first", range(0, N_PROBLEMS // 20, BATCH))
@pytest.mark.parametrize("road", ROADS)
def test_no_certificate_is_contradicted_by_exact_arithmetic(road, first):
    fit, applies = ROADS[road]
    problems = [make(number) for number in range(first, first + BATCH)]
    verdicts = [judge(problem, fit) for problem in problems if applies(problem)]
    wrong = [verdict for verdict in verdicts if verdict.faults]
    assert not wrong, "\n".join([f"# road: {road}", *map(str, wrong[:5])])
    assert sum(verdict.is_certified for verdict in verdicts) > len(verdicts) / 2
