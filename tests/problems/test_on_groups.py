"""What a group of rows does when its memory was lost: a reading of the rows for all vectors, not one for each."""

import numpy as np
import pytest
import scipy.sparse as sp

from softmargin.core.threads import Workers
from softmargin.data.groups import Group, LostPiece, MemoryChunks
from softmargin.problems.intercepts import Free, NoIntercept, Penalised
from softmargin.problems.on_groups import Numbers, OneAgainstRest, Posed, group_line, group_problem
from softmargin.problems.partitioned import _dual_vector
from softmargin.problems.partitioned_ranking import RankPosed, _combined

N_ROWS, N_COLS, N_PLANES = 203, 7, 5
INTERCEPTS = [Free(), NoIntercept(), Penalised(2.0)]
WORKERS = Workers(1)


class CountedChunks(MemoryChunks):
    """Chunks that count how often each was read."""

    def __init__(self, blocks, n_cols):
        super().__init__(blocks, n_cols)
        self.n_reads = np.zeros(len(blocks), dtype=int)

    def read(self, k):
        self.n_reads[k] += 1
        return super().read(k)


@pytest.fixture(params=["dense", "csr"])
def group(request, rng):
    X = np.where(rng.random((N_ROWS, N_COLS)) < 0.5, rng.normal(size=(N_ROWS, N_COLS)), 0.0)
    # The rows of blocks do not begin at multiples of eight: bits are packed across their edges.
    blocks = [X[:50], X[50:61], X[61:]]
    if request.param == "csr":
        blocks = [sp.csr_array(block) for block in blocks]
    columns = {"y": rng.integers(0, 2, N_ROWS), "sample_weight": rng.random(N_ROWS), "qid": np.arange(N_ROWS) // 20}
    return Group(range(3), CountedChunks(blocks, N_COLS), columns, [0, 1, 2])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def posed_problems(intercept):
    yield Posed(OneAgainstRest("classes", np.array([0, 1]), 1, np.array([1.0, 3.0])), 2.0, intercept)
    yield Posed(Numbers("numbers", 0.1), 2.0, intercept)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_lost_planes_are_found_in_one_reading(group, rng, intercept):
    for posed in posed_problems(intercept):
        problem = group_problem(group, WORKERS, posed)
        X = np.vstack([block.toarray() if sp.issparse(block) else block for block in group.chunks.__reduce__()[1][0]])
        planes, expected = [], 0.0
        for k, weight in enumerate(rng.random(N_PLANES)):
            w = rng.normal(size=N_COLS + intercept.n_weights)
            b = float(rng.normal()) if intercept.is_free else 0.0
            planes.append((("bits", posed.key, k), w, b, weight))
            weights, feature = intercept.split(w)
            outputs = X @ weights + feature + b
            if problem.targets is None:
                signs = np.where(group.columns["y"] == 1, 1.0, -1.0)
                active = signs * outputs < 1.0
            else:
                outputs = np.concatenate([outputs, outputs])
                active = np.sign(problem.signed_weights) * (problem.targets - outputs) > 0.0
            expected = expected + weight * np.abs(problem.signed_weights) * active
        if problem.targets is not None:
            expected = expected[:N_ROWS] - expected[N_ROWS:]
        before = group.chunks.n_reads.copy()
        _dual_vector(group, WORKERS, posed, "alpha", planes)
        assert (group.chunks.n_reads - before).tolist() == [1, 1, 1]
        np.testing.assert_allclose(group.memory["alpha"], expected, atol=1e-12)

        # They are remembered from now on: their weights are not needed any more.
        _dual_vector(group, WORKERS, posed, "again", [(key, None, b, weight) for key, _, b, weight in planes])
        assert (group.chunks.n_reads - before).tolist() == [1, 1, 1]
        np.testing.assert_array_equal(group.memory["again"], group.memory["alpha"])


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_lost_outputs_are_made_in_one_reading(group, rng, intercept):
    for posed in posed_problems(intercept):
        problem = group_problem(group, WORKERS, posed)
        w, dw = rng.normal(size=(2, N_COLS + intercept.n_weights))
        expected = problem.shifted(problem.outputs(w)), problem.outputs(dw)
        before = group.chunks.n_reads.copy()
        at, along, _ = group_line(group, WORKERS, posed, (("f", posed.key), w), (("df", posed.key), dw))
        assert (group.chunks.n_reads - before).tolist() == [1, 1, 1]
        np.testing.assert_allclose(at, expected[0], atol=1e-12)
        np.testing.assert_allclose(along, expected[1], atol=1e-12)


def test_lost_scores_of_a_ranking_are_made_in_one_reading(group, rng):
    posed = RankPosed("ranks", 1.0, False)
    planes = [(("scores", k), rng.normal(size=N_COLS)) for k in range(N_PLANES)]
    weights = rng.random(N_PLANES)
    before = group.chunks.n_reads.copy()
    _combined(group, WORKERS, posed, planes, weights, ("judged",))
    # One reading for the scores; the lengths of the rows and the sum X'g are two passes of the judge.
    assert (group.chunks.n_reads - before).tolist() == [3, 3, 3]


def test_what_was_lost_without_weights_is_told(group):
    posed = next(posed_problems(Free()))
    with pytest.raises(LostPiece):
        _dual_vector(group, WORKERS, posed, "alpha", [("bits", None, 0.0, 1.0)])
    with pytest.raises(LostPiece):
        group_line(group, WORKERS, posed, ("f", None), ("df", np.ones(N_COLS)))
