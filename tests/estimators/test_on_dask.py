"""Linear SVMs on a Dask cluster of real processes: the same certificate, the same bits, and what may go wrong."""

import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import softmargin
from softmargin import SoftmarginError, Status, certify

pytest.importorskip("distributed", reason="Dask is an extra")
from distributed import Client, LocalCluster

from softmargin.dask import LinearSVC, LinearSVR, RankSVM
from softmargin.data.partitioned import Partitions

# A worker that dies twice with the same task is one too many; by default it is four times, which takes long.
SETTINGS = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.memory.terminate": False}


class Clusters:
    """Keeps a cluster of two processes for all tests, and makes another one if a worker that was killed stays away."""

    def __init__(self):
        self.current = None

    def ready(self):
        if self.current is not None:
            try:
                with Client(self.current, set_as_default=False) as client:
                    client.wait_for_workers(2, timeout=15)
                return self.current
            except TimeoutError:
                self.current.close()
        self.current = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        return self.current


@pytest.fixture(scope="module")
def clusters():
    found = Clusters()
    with dask.config.set(SETTINGS):
        yield found
        if found.current is not None:
            found.current.close()


@pytest.fixture
def cluster(clusters):
    return clusters.ready()


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


def problem(n=3000, d=8, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + 0.7 * rng.normal(size=(n, n_classes)) + np.arange(n_classes)
    return X, np.array(["ash", "birch", "cedar"])[scores.argmax(axis=1)]


def on_dask(*columns, n_blocks=7):
    edges = np.linspace(0, len(columns[0]), n_blocks + 1).astype(int)
    sizes = tuple(np.diff(edges).tolist())
    return [da.from_array(c, chunks=(sizes, -1) if c.ndim == 2 else (sizes,)) for c in columns]


def assert_same_bits(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    np.testing.assert_array_equal(found.dual_, expected.dual_)
    assert found.certificates_ == expected.certificates_


def assert_as_good(found, local, X, y, sample_weight=None):
    """Both are optimal up to `tol`, and a judge on this machine says the same of the model from the cluster."""
    assert found.status_ is Status.OPTIMAL
    assert found.certificate_.relative_gap <= found.tol
    assert found.certificate_.dual <= local.certificate_.primal
    assert local.certificate_.dual <= found.certificate_.primal
    again = certify(getattr(found, "to_local", lambda: found)(), X, y, sample_weight)
    assert again.primal == pytest.approx(found.certificate_.primal, rel=1e-10)
    assert again.dual == pytest.approx(found.certificate_.dual, rel=1e-10)
    assert again.kkt_violation == pytest.approx(found.certificate_.kkt_violation, rel=1e-6, abs=1e-9)


class TestTheSameProblem:
    @pytest.mark.parametrize(
        ("n", "options"),
        [
            (900, {}),
            (900, {"solver": "cpa"}),
            (900, {"intercept": "penalised", "intercept_scaling": 2.0}),
            (20_000, {}),
            (20_000, {"fit_intercept": False}),
        ],
    )
    def test_two_classes(self, client, n, options):
        X, y = problem(n, d=4)
        found = LinearSVC(C=0.05, **options).fit(*on_dask(X, y))
        local = softmargin.LinearSVC(C=0.05, **{"solver": "ocas", **options}).fit(X, y)
        assert_as_good(found, local, X, y)
        assert found.classes_.tolist() == ["ash", "birch"]
        assert abs(found.n_iter_ - local.n_iter_) <= 3

    def test_three_classes_with_weights_in_sparse_blocks(self, client):
        X, y = problem(n_classes=3)
        X *= np.abs(X) > 0.7
        weights = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
        Xd, yd, wd = on_dask(X, y, weights)
        model = LinearSVC(C=0.1, class_weight="balanced")
        found = model.fit(Xd.map_blocks(sp.csr_matrix), yd, wd)
        local = softmargin.LinearSVC(C=0.1, class_weight="balanced", solver="ocas").fit(X, y, weights)
        assert_as_good(found, local, X, y, weights)
        assert found.coef_.shape == (3, X.shape[1])
        assert found.dual_.shape == (len(X), 3)
        scores = found.decision_function(Xd)
        np.testing.assert_allclose(scores.compute(), found.to_local().decision_function(X))
        assert (found.predict(Xd).compute() == found.predict(X)).all()

    @pytest.mark.parametrize(
        ("n", "options"), [(900, {}), (900, {"epsilon": 30.0}), (9000, {}), (9000, {"intercept": "penalised"})]
    )
    def test_regression(self, client, n, options):
        X, _ = problem(n)
        y = X @ np.arange(8.0) + np.random.default_rng(1).laplace(size=n) + 5.0
        options = {"C": 0.05, "epsilon": 0.3, **options}
        found = LinearSVR(**options).fit(*on_dask(X, y))
        local = softmargin.LinearSVR(solver="ocas", **options).fit(X, y)
        assert_as_good(found, local, X, y)
        np.testing.assert_allclose(found.predict(da.from_array(X, chunks=(500, -1))).compute(), found.predict(X))

    def test_the_judge_takes_more_digits_where_rounding_counts(self, client, monkeypatch):
        X, y = problem(300, d=2)
        called, usual = [], Partitions.each
        monkeypatch.setattr(Partitions, "each", lambda s, f, *a, **o: called.append(f.__name__) or usual(s, f, *a, **o))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", softmargin.ConvergenceWarning)
            found = LinearSVC(tol=1e-15).fit(*on_dask(X, y))
        assert {"_sharper_losses", "_pairs"} <= {*called}
        assert 0.0 < found.certificate_.gap < 1e-13 * found.certificate_.primal
        again = certify(found.to_local(), X, y)
        assert again.dual <= found.certificate_.primal
        assert found.certificate_.dual <= again.primal

    def test_a_fit_that_ends_early_warns_and_is_continued_from_its_weights(self, client):
        X, y = on_dask(*problem())
        model = LinearSVC(tol=1e-6, max_iter=8, warm_start=True)
        with pytest.warns(softmargin.ConvergenceWarning, match=r"raise max_iter \(now 8\)") as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        first = model.certificate_.primal
        model.set_params(max_iter=None).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert model.trace_.to_dict()["primal"][0] == pytest.approx(first, rel=1e-9)

    @pytest.mark.parametrize("options", [{}, {"fit_intercept": False}])
    def test_a_direction_is_returned_where_zero_is_good_enough(self, client, options):
        X, y = problem(900)
        found = LinearSVC(C=1e-9, **options).fit(*on_dask(X, y))
        assert found.status_ is Status.OPTIMAL
        assert found.coef_.any()
        local = softmargin.LinearSVC(C=1e-9, solver="ocas", **options).fit(X, y)
        np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-6)

    def test_a_model_is_an_ordinary_one_afterwards(self, client, tmp_path):
        X, y = problem()
        found = LinearSVC().fit(*on_dask(X, y))
        found.save(tmp_path / "model.safetensors")
        loaded = softmargin.load(tmp_path / "model.safetensors")
        assert type(loaded) is type(found.to_local()) is softmargin.LinearSVC
        assert_same_bits(loaded, found)
        softmargin.save(found, tmp_path / "again.safetensors")
        assert_same_bits(softmargin.load(tmp_path / "again.safetensors"), found)

    def test_a_model_becomes_a_graph(self, client):
        pytest.importorskip("onnx", reason="onnx is not installed")
        from softmargin.onnx import to_onnx

        found = LinearSVC().fit(*on_dask(*problem()))
        assert [output.name for output in to_onnx(found).graph.output] == ["label", "scores"]

    def test_frames_bring_the_names_of_their_columns(self, client):
        import dask.dataframe as dd
        import pandas as pd

        X, y = problem(600, d=3)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["y"] = y
        parts = dd.from_pandas(frame, npartitions=4)
        found = LinearSVC().fit(parts[["a", "b", "c"]], parts["y"])
        assert found.feature_names_in_.tolist() == ["a", "b", "c"]
        assert_as_good(found, softmargin.LinearSVC(solver="ocas").fit(X, y), frame[["a", "b", "c"]], y)
        assert (found.predict(parts[["a", "b", "c"]]).compute() == found.predict(frame[["a", "b", "c"]])).all()


class TestRanking:
    def data(self, n=1200, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5))
        qid = np.repeat(np.arange(n // 20), 20)
        y = np.floor(X @ np.arange(5.0) + 2.0 * rng.normal(size=n) + qid % 7)
        return X, y, qid, rng.integers(1, 3, n).astype(float)

    def in_blocks(self, columns):
        sizes = (100, 300, 20, 380, 0, 400)
        return [da.from_array(c, chunks=(sizes, -1) if c.ndim == 2 else (sizes,)) for c in columns]

    @pytest.mark.parametrize(
        ("options", "n_columns"), [({}, 3), ({"pairs": "sum", "C": 1e-3}, 4), ({"query_weight": "equal"}, 4)]
    )
    def test_pairs_within_queries(self, client, options, n_columns):
        columns = self.data()[:n_columns]
        found = RankSVM(**options).fit(*self.in_blocks(columns))
        local = softmargin.RankSVM(**options).fit(*columns)
        assert found.status_ is Status.OPTIMAL
        assert found.n_pairs_ == pytest.approx(local.n_pairs_, rel=1e-12)
        assert found.certificate_.relative_gap <= found.tol
        assert found.certificate_.dual <= local.certificate_.primal
        assert local.certificate_.dual <= found.certificate_.primal
        again = certify(found.to_local(), columns[0], columns[1], qid=columns[2], sample_weight=(*columns, None)[3])
        assert again.primal == pytest.approx(found.certificate_.primal, rel=1e-9)
        np.testing.assert_allclose(found.predict(da.from_array(columns[0])).compute(), found.predict(columns[0]))
        again = RankSVM(**options).fit(*self.in_blocks(columns))
        np.testing.assert_array_equal(again.coef_, found.coef_)

    def test_a_killed_worker(self, client, monkeypatch):
        columns = self.data(seed=1)
        at_round(monkeypatch, 20, lambda: kill_a_worker(client))
        found = RankSVM(tol=1e-4).fit(*self.in_blocks(columns))
        local = softmargin.RankSVM(tol=1e-4).fit(*columns)
        assert found.status_ is Status.OPTIMAL
        assert found.certificate_.dual <= local.certificate_.primal
        assert local.certificate_.dual <= found.certificate_.primal

    def test_a_query_in_two_partitions_is_named(self, client):
        X, y, qid, _ = self.data()
        with pytest.raises(SoftmarginError, match="the query 19 has rows in the partitions 1 and 2"):
            RankSVM().fit(*on_dask(X, y, np.where(qid < 15, 100 + qid, 19), n_blocks=4))
        with pytest.raises(SoftmarginError, match="qid is missing"):
            RankSVM().fit(*on_dask(X, y))


class TestStores:
    def test_each_worker_reads_its_own_chunks(self, client, tmp_path):
        X, y = problem(900, d=4)
        weights = np.random.default_rng(5).integers(1, 3, 900).astype(float)
        store = softmargin.Store.write(
            tmp_path / "rows", X, y=y, sample_weight=weights, chunk_bytes=4096, feature_names="abcd"
        )
        found = LinearSVC().fit(str(tmp_path / "rows"))
        assert store.n_chunks > 5
        assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        assert_as_good(found.to_local(), softmargin.LinearSVC(solver="ocas").fit(store), store, None)
        assert_same_bits(LinearSVC().fit(store), found)

    def test_a_store_that_is_not_there_or_is_damaged(self, client, tmp_path):
        X, y = problem(900, d=4)
        softmargin.Store.write(tmp_path / "rows", X, y=y, chunk_bytes=8192)
        chunk = sorted((tmp_path / "rows").glob("chunk*"))[2]
        content = bytearray(chunk.read_bytes())
        content[100] ^= 255
        chunk.write_bytes(content)
        with pytest.raises(SoftmarginError, match=rf"(?s){chunk.name}.*checksum"):
            LinearSVC().fit(tmp_path / "rows")
        with pytest.raises(SoftmarginError, match="nothing"):
            LinearSVC().fit(tmp_path / "nothing")
        with pytest.raises(SoftmarginError, match="a store brings y with it"):
            LinearSVC().fit(tmp_path / "rows", y)


class TestPartitions:
    def test_the_bits_depend_on_the_partitions_alone(self, client):
        X, y = on_dask(*problem(20_000, d=4), n_blocks=40)
        first = LinearSVC().fit(X, y)
        assert_same_bits(LinearSVC(n_jobs=-1).fit(X, y), first)
        other = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
        with other, Client(other, set_as_default=False) as alone:
            assert_same_bits(LinearSVC().fit(X, y, client=alone), first)

    def test_empty_ones_and_ones_without_a_class_and_of_unknown_sizes(self, client):
        X, y = problem(900, d=4, n_classes=2)
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
        Xd, yd = on_dask(X, y, n_blocks=9)
        first = LinearSVC().fit(Xd, yd)
        X_more = da.concatenate([Xd[:100], da.zeros((0, 4), chunks=((0,), (4,))), Xd[100:]])
        y_more = da.concatenate([yd[:100], da.from_array(y[:0], chunks=((0,),)), yd[100:]])
        assert_same_bits(LinearSVC().fit(X_more, y_more), first)
        known = da.ones(len(X), chunks=(Xd.chunks[0],)) > 0
        unknown = LinearSVC().fit(Xd[known], yd[known])
        assert np.isnan(Xd[known].chunks[0][0])
        assert_same_bits(unknown, first)

    def test_two_fits_at_once(self, client):
        data = [on_dask(*problem(2000, d=4, seed=seed)) for seed in range(2)]
        alone = [LinearSVC().fit(*part) for part in data]
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(lambda part: LinearSVC().fit(*part, client=client), data))
        for found, expected in zip(together, alone, strict=True):
            assert_same_bits(found, expected)

    def test_a_search_over_C(self, client):
        X, y = problem(600, d=3)
        Xd, yd = on_dask(X, y, n_blocks=4)
        scores = []
        for C in (1e-4, 1e-1):
            model = clone(LinearSVC()).set_params(C=C).fit(Xd[:450], yd[:450])
            scores.append(model.score(Xd[450:], yd[450:]))
        assert scores[0] < scores[1]
        search = GridSearchCV(LinearSVC(), {"C": [1e-4, 1e-1]}, cv=KFold(2)).fit(Xd, yd)
        assert search.best_params_ == {"C": 0.1}


def at_round(monkeypatch, number, act):
    """Let something happen once, before the round with this number."""
    usual, todo = Partitions.each, [act]

    def each(self, *arguments, **options):
        if self.n_rounds >= number and todo:
            todo.pop()()
        return usual(self, *arguments, **options)

    monkeypatch.setattr(Partitions, "each", each)


def kill_a_worker(client):
    pid = client.run(os.getpid)
    os.kill(pid[sorted(pid)[0]], signal.SIGKILL)


class TestFaults:
    @pytest.mark.parametrize(("number", "options"), [(12, {}), (30, {"fit_intercept": False})])
    def test_a_killed_worker_costs_time_only(self, client, monkeypatch, number, options):
        X, y = problem(20_000, d=4)
        local = softmargin.LinearSVC(solver="ocas", tol=1e-4, **options).fit(X, y)
        at_round(monkeypatch, number, lambda: kill_a_worker(client))
        found = LinearSVC(tol=1e-4, **options).fit(*on_dask(X, y))
        assert_as_good(found, local, X, y)
        assert abs(found.n_iter_ - local.n_iter_) <= 3

    def test_a_worker_that_is_killed_while_the_judge_works(self, client, monkeypatch):
        from softmargin.problems.partitioned_certificate import PartitionedJudge

        X, y = problem(2000)
        usual, todo = PartitionedJudge._dual_parts, [lambda: kill_a_worker(client)]

        def parts(self, *keys):
            if todo:
                todo.pop()()
            return usual(self, *keys)

        monkeypatch.setattr(PartitionedJudge, "_dual_parts", parts)
        found = LinearSVC(tol=1e-4).fit(*on_dask(X, y))
        assert_as_good(found, softmargin.LinearSVC(tol=1e-4, solver="ocas").fit(X, y), X, y)

    def test_a_worker_that_comes_late_changes_nothing(self, cluster, client, monkeypatch):
        X, y = on_dask(*problem())
        expected = LinearSVC().fit(X, y)

        def more():
            cluster.scale(3)
            client.wait_for_workers(3)

        at_round(monkeypatch, 12, more)
        assert_same_bits(LinearSVC().fit(X, y), expected)
        cluster.scale(2)

    def test_an_interrupt_keeps_the_best_model(self, client, monkeypatch):
        X, y = problem()
        at_round(monkeypatch, 30, lambda: os.kill(os.getpid(), signal.SIGINT))
        model = LinearSVC(tol=1e-9)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*on_dask(X, y))
        assert model.status_ is Status.INTERRUPTED
        assert model.certificate_.primal < LinearSVC().C * len(X)
        assert certify(model.to_local(), X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-10)

    def test_a_time_limit_holds(self, client):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", softmargin.ConvergenceWarning)
            model = LinearSVC(tol=1e-9, max_seconds=0.2).fit(*on_dask(*problem()))
        assert model.status_ is Status.MAX_SECONDS

    def test_a_partition_that_kills_every_worker_is_named(self, client):
        X, y = on_dask(*problem(), n_blocks=4)
        deadly = X.map_blocks(_die_in_block_2, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(SoftmarginError, match=r"worked on partitions? (\d, )*2(, \d)* died.*memory"):
            LinearSVC().fit(deadly, y)

    def test_a_closed_cluster_is_an_error(self, monkeypatch):
        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
            client = Client(cluster, set_as_default=False)
            X, y = on_dask(*problem())
            at_round(monkeypatch, 12, lambda: threading.Timer(0.1, cluster.close).start())
            with pytest.raises(SoftmarginError, match="cluster was closed or lost"):
                LinearSVC(tol=1e-12).fit(X, y, client=client)
            client.close()
        with pytest.raises(SoftmarginError, match="client is closed, not running"):
            LinearSVC().fit(X, y, client=client)


def _die_in_block_2(block, block_info=None):
    if block_info and block_info[0]["chunk-location"][0] == 2:
        os._exit(1)
    return block


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y: (X, y.rechunk(500)), r"X has 7 partitions, but y has 6: partition 6 has no counterpart"),
            (lambda X, y: (X, y.rechunk(429)), r"partition 0 has 428 rows of X, but 429 of y"),
            (lambda X, y: (X[X[:, 0] < 1], y[X[:, 1] < 1]), r"partition 0 has \d+ rows of X, but y has the shape"),
            (lambda X, y: (_broken(X, np.nan), y), r"partition 3 of X holds nan \(1 such values\)"),
            (lambda X, y: (X, None), r"y is missing"),
            (lambda X, y: (X, np.zeros(3000)), r"y is no Dask array or frame"),
            (lambda X, y: (X.compute(), y), r"X is of the type ndarray, no Dask array or frame"),
            (lambda X, y: (X, da.zeros(3000, chunks=y.chunks)), r"y holds one class only, 0.0"),
            (lambda X, y: (X, da.full(3000, np.nan, chunks=y.chunks)), r"partition 0: y holds NaN"),
            (lambda X, y: (X[:, 0], y), r"X must have two dimensions"),
            (lambda X, y: (X.map_blocks(_too_wide, dtype=float, meta=np.empty((0, 0))), y), r"partition 2.*9 columns"),
        ],
    )
    def test_is_named_with_its_partition(self, client, change, message):
        with pytest.raises(SoftmarginError, match=message):
            LinearSVC().fit(*change(*on_dask(*problem())))

    @pytest.mark.parametrize("weight", [-1.0, np.inf])
    def test_weights(self, client, weight):
        X, y, w = on_dask(*problem(), np.full(3000, weight))
        with pytest.raises(SoftmarginError, match="partition 0: sample_weight holds negative values, NaN or infinity"):
            LinearSVC().fit(X, y, w)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"solver": "coordinate"}, "a fit on a cluster is no such problem"),
            ({"loss": "squared_hinge"}, "plain hinge losses"),
            ({"multi_class": "crammer_singer", "fit_intercept": False}, "plain hinge losses"),
            ({"C": -1.0}, "C"),
        ],
    )
    def test_parameters(self, client, options, message):
        with pytest.raises(SoftmarginError, match=message):
            LinearSVC(**options).fit(*on_dask(*problem()))

    def test_columns_of_another_model(self, client):
        X, y = on_dask(*problem())
        model = LinearSVC().fit(X, y)
        with pytest.raises(SoftmarginError, match="X has 7 features, but the model was trained on 8"):
            model.predict(X[:, :7])

    def test_without_a_client(self):
        X, y = on_dask(*problem())
        with pytest.raises(SoftmarginError, match="there is no Dask client"):
            LinearSVC().fit(X, y)


def _broken(X, value):
    def spoil(block, block_info=None):
        block = block.copy()
        if block_info and block_info[0]["chunk-location"][0] == 3:
            block[5, 1] = value
        return block

    return X.map_blocks(spoil, dtype=float, meta=np.empty((0, 0)))


def _too_wide(block, block_info=None):
    is_wide = block_info and block_info[0]["chunk-location"][0] == 2
    return np.hstack([block, block[:, :1]]) if is_wide else block
