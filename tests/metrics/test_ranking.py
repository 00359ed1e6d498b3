"""Measures of rankings against their definitions and against scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from softmargin import SoftmarginError
from softmargin.metrics import mean_average_precision_by_query, ndcg_by_query, roc_area, swapped_pairs

# (grade, score, query, weight): few values, so that there are ties, small queries, and queries without pairs.
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=40,
)
Y = np.array([2, 0, 1, 0, 0, 1])
SCORES = np.array([0.3, 0.9, 0.3, -1.0, 0.1, 0.2])
QID = np.array([7, 7, 3, 7, 3, 3])
MEASURES = [ndcg_by_query, mean_average_precision_by_query, swapped_pairs]


def columns(rows):
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def pairs_by_definition(y, scores, qid, weight):
    """Weights of all pairs, and of those in the wrong order."""
    pair = (qid[:, None] == qid) & (y[:, None] > y)
    of_pair = np.outer(weight, weight)[pair]
    difference = (scores[:, None] - scores)[pair]
    return of_pair.sum(), of_pair[difference < 0].sum() + 0.5 * of_pair[difference == 0].sum()


class TestSwappedPairs:
    @given(ROWS)
    def test_is_its_definition(self, rows):
        y, scores, qid, weight = columns(rows)
        for weights in (np.ones(len(y)), weight):
            total, swapped = pairs_by_definition(y, scores, qid, weights)
            if total == 0:
                with pytest.raises(SoftmarginError, match="no pair"):
                    swapped_pairs(y, scores, qid, weights)
            else:
                assert swapped_pairs(y, scores, qid, weights) == pytest.approx(swapped / total, rel=1e-12)

    def test_real_valued_targets_and_weights(self):
        rng = np.random.default_rng(0)
        y, scores, weight = rng.standard_normal((3, 300))
        qid, weight = rng.integers(5, size=300), np.abs(weight)
        total, swapped = pairs_by_definition(y, scores, qid, weight)
        assert swapped_pairs(y, scores, qid, weight) == pytest.approx(swapped / total, rel=1e-12)
        assert swapped_pairs(y, y**3) == 0.0
        assert swapped_pairs(y, -y) == 1.0
        assert swapped_pairs(y, np.zeros(300)) == 0.5
        assert 1.0 - 1e-12 < swapped_pairs(y, -y, qid, weight) <= 1.0

    def test_of_two_grades_is_what_lacks_to_the_roc_area(self):
        rng = np.random.default_rng(1)
        y, scores = rng.random(200) < 0.3, np.round(rng.standard_normal(200), 1)
        weight = rng.uniform(0.1, 2.0, 200)
        assert 1.0 - swapped_pairs(y, scores) == pytest.approx(roc_auc_score(y, scores), rel=1e-12)
        assert 1.0 - swapped_pairs(y, scores) == pytest.approx(roc_area(y, scores), rel=1e-12)
        expected = roc_auc_score(y, scores, sample_weight=weight)
        assert 1.0 - swapped_pairs(y, scores, sample_weight=weight) == pytest.approx(expected, rel=1e-12)

    def test_weight_2_is_a_row_twice_and_0_none(self):
        weight = np.array([2, 1, 1, 0, 2, 1])
        repeated = [np.repeat(values, weight) for values in (Y, SCORES, QID)]
        assert swapped_pairs(Y, SCORES, QID, weight) == pytest.approx(swapped_pairs(*repeated), rel=1e-14)

    def test_no_pairs(self):
        with pytest.raises(SoftmarginError, match="no pair of rows with different y in any query"):
            swapped_pairs([1, 2, 3], [0.1, 0.2, 0.3], qid=["a", "b", "c"])
        with pytest.raises(SoftmarginError, match="all y are 1"):
            swapped_pairs([1, 1], [0.1, 0.2])

    def test_bad_weights(self):
        with pytest.raises(SoftmarginError, match=r"sample_weight has the shape \(1,\)"):
            swapped_pairs([1, 2], [0.1, 0.2], sample_weight=[1.0])
        with pytest.raises(SoftmarginError, match=r"sample_weight holds -1"):
            swapped_pairs([1, 2], [0.1, 0.2], sample_weight=[1.0, -1.0])


class TestNDCG:
    @given(ROWS, st.sampled_from([1, 2, 5, None]))
    def test_agrees_with_scikit_learn_in_each_query(self, rows, k):
        y, scores, qid, _ = columns(rows)
        if not y.any():
            return
        found = ndcg_by_query(y, scores, qid, k, gains="linear", without_relevant=0)
        assert list(found.queries) == list(dict.fromkeys(qid))
        for query, value in zip(found.queries, found.values, strict=True):
            own = qid == query
            if own.sum() > 1:
                assert value == pytest.approx(ndcg_score([y[own]], [scores[own]], k=k), rel=1e-12)
            else:
                assert value == (y[own] > 0)  # scikit-learn refuses a single row
        assert float(found) == found.mean == pytest.approx(found.values.mean())

    @given(ROWS)
    def test_exponential_gains_are_linear_ones_of_powers(self, rows):
        y, scores, qid, _ = columns(rows)
        if y.any():
            found = ndcg_by_query(y, scores, qid, 3).values
            np.testing.assert_allclose(found, ndcg_by_query(2.0**y - 1.0, scores, qid, 3, gains="linear").values)

    def test_by_hand(self):
        # query 7: y = 0, 2, 0 by falling score; query 3: y = 1, 1, 0
        found = ndcg_by_query(Y, SCORES, QID)
        np.testing.assert_array_equal(found.queries, [7, 3])
        np.testing.assert_allclose(found.values, [1 / np.log2(3), 1.0])
        np.testing.assert_allclose(ndcg_by_query(Y, SCORES, QID, k=1).values, [0.0, 1.0])

    def test_grades_that_overflow(self):
        with pytest.raises(SoftmarginError, match=r"2\^y is too large: choose gains='linear'"):
            ndcg_by_query([2000, 0], [1.0, 2.0])
        assert ndcg_by_query([2000, 0], [1.0, 2.0], gains="linear").mean == pytest.approx(1 / np.log2(3))

    def test_bad_options(self):
        with pytest.raises(SoftmarginError, match="grades begin with 0"):
            ndcg_by_query([1, -1], [0.5, 0.2])
        for k in (0, -1, 2.5):
            with pytest.raises(SoftmarginError, match="must be a positive integer"):
                ndcg_by_query(Y, SCORES, QID, k)
        with pytest.raises(SoftmarginError, match="gains='log' is unknown"):
            ndcg_by_query(Y, SCORES, QID, gains="log")


class TestMeanAveragePrecision:
    def test_agrees_with_scikit_learn_without_ties(self):
        rng = np.random.default_rng(2)
        scores, qid = rng.permutation(200) / 7.0, rng.integers(12, size=200)
        y = rng.integers(3, size=200)
        for relevant, is_relevant in ((None, y > 0), (2, y >= 2)):
            found = mean_average_precision_by_query(y, scores, qid, relevant=relevant)
            expected = [average_precision_score(is_relevant[qid == q], scores[qid == q]) for q in found.queries]
            np.testing.assert_allclose(found.values, expected, rtol=1e-12)

    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6))
    def test_is_the_mean_over_the_orders_of_ties(self, rows):
        y, scores = columns(rows)
        if not y.any():
            return
        precisions = []
        for order in permutations(range(len(y))):
            if (np.diff(scores[list(order)]) <= 0).all():
                ranked = y[list(order)]
                precisions.append(np.mean((np.cumsum(ranked) / np.arange(1, len(y) + 1))[ranked]))
        found = mean_average_precision_by_query(y, scores)
        assert found.mean == pytest.approx(np.mean(precisions), rel=1e-12)

    def test_by_hand(self):
        found = mean_average_precision_by_query(Y, SCORES, QID)
        np.testing.assert_allclose(found.values, [0.5, 1.0])
        assert found.mean == 0.75


@pytest.mark.parametrize("measure", [ndcg_by_query, mean_average_precision_by_query])
class TestQueriesWithoutRelevantRows:
    def test_are_left_out_or_count_as_asked(self, measure):
        y, qid = np.array([*Y, 0, 0]), [*QID, 9, 9]
        scores = np.array([*SCORES, 1.0, 2.0])
        plain = measure(Y, SCORES, QID)
        skipped = measure(y, scores, qid)
        assert skipped.mean == plain.mean
        np.testing.assert_array_equal(skipped.values, [*plain.values, np.nan])
        for value in (0, 1):
            found = measure(y, scores, qid, without_relevant=value)
            np.testing.assert_array_equal(found.values, [*plain.values, value])
            assert found.mean == pytest.approx((plain.values.sum() + value) / 3)

    def test_all_of_them(self, measure):
        for choice in ("skip", 0):
            with pytest.raises(SoftmarginError, match="no row of any query is relevant"):
                measure([0, 0], [0.5, 0.1], without_relevant=choice)

    def test_unknown_choice(self, measure):
        with pytest.raises(SoftmarginError, match="choose 'skip', 0 or 1"):
            measure(Y, SCORES, QID, without_relevant="zero")


@pytest.mark.parametrize("measure", MEASURES)
class TestQueries:
    @pytest.mark.parametrize(
        "names",
        [
            {7: "seven", 3: "three"},
            {7: (1, "a"), 3: (1, "b")},
            {7: None, 3: 3},
            {7: 7.5, 3: -1.0},
            {7: "7", 3: 7},
            {7: np.datetime64("2020-01-07"), 3: np.datetime64("2020-01-03")},
        ],
    )
    def test_any_hashable(self, measure, names):
        qid = [names[q] for q in QID]
        expected = measure(Y, SCORES, QID)
        found = measure(Y, SCORES, qid)
        assert float(found) == float(expected)
        if measure is not swapped_pairs:
            assert list(found.queries) == list(names.values())
            np.testing.assert_array_equal(found.values, expected.values)

    def test_series_and_arrays_of_text(self, measure):
        import pandas as pd

        text = QID.astype(str)
        for qid in (pd.Series(QID, index=QID), pd.Series(text), pd.Categorical(text), text, text.astype(object)):
            assert float(measure(Y, SCORES, qid)) == float(measure(Y, SCORES, QID))

    @given(ROWS, st.randoms(use_true_random=False))
    def test_the_order_of_rows_does_not_matter(self, measure, rows, random):
        # Every query has a pair and a relevant row.
        rows = rows + [(grade, 0, query, 1.0) for query in range(5) for grade in (0, 1)]
        y, scores, qid, _ = columns(rows)
        order = random.sample(range(len(rows)), len(rows))
        found, shuffled = (measure(*(v[o] for v in (y, scores, qid))) for o in (slice(None), order))
        assert float(shuffled) == pytest.approx(float(found), rel=1e-12)

    def test_without_qid_all_rows_are_one_query(self, measure):
        assert float(measure(Y, SCORES)) == float(measure(Y, SCORES, np.zeros(6)))

    def test_bad_qid(self, measure):
        with pytest.raises(SoftmarginError, match="qid has 2 entries, but y has 6"):
            measure(Y, SCORES, [1, 2])
        with pytest.raises(SoftmarginError, match=r"qid has the shape \(6, 1\)"):
            measure(Y, SCORES, QID[:, None])
        with pytest.raises(SoftmarginError, match=r"qid is missing .* in row 1"):
            measure(Y, SCORES, np.array([1, np.nan, 1, 1, 1, 1]))
        with pytest.raises(SoftmarginError, match=r"qid is missing .* in row 1"):
            measure(Y, SCORES, ["a", float("nan"), "a", "a", "a", "a"])
        with pytest.raises(SoftmarginError, match="cannot be hashed"):
            measure(Y, SCORES, [[1]] * 6)


@pytest.mark.parametrize("measure", MEASURES)
def test_bad_rows(measure):
    with pytest.raises(SoftmarginError, match=r"y has the shape \(2,\), scores \(3,\)"):
        measure([0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(SoftmarginError, match=r"one of each for every row"):
        measure([[0, 1]], [[0.1, 0.2]])
    with pytest.raises(SoftmarginError, match="y holds nan"):
        measure([0, np.nan], [0.1, 0.2])
    with pytest.raises(SoftmarginError, match="scores holds inf"):
        measure([0, 1], [np.inf, 0.2])
    with pytest.raises(SoftmarginError, match="y holds entries that are not numbers"):
        measure(["good", "bad"], [0.1, 0.2])
    with pytest.raises(SoftmarginError, match="y is empty"):
        measure([], [])
