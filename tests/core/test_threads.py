"""Workers, thread counts and the BLAS guard."""

import pickle
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from softmargin.core.errors import Abandoned, SoftmarginError
from softmargin.core.threads import Cancel, Workers, available_threads, one_blas_thread, thread_count


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_map_keeps_the_order_of_blocks(n_threads):
    workers = Workers(n_threads)
    assert workers.map(lambda lo, hi: (lo, hi), [(k, k + 1) for k in range(50)]) == [(k, k + 1) for k in range(50)]
    assert workers.map(lambda: 1, []) == []
    workers.close()


def test_alone_the_calling_thread_does_all_blocks():
    workers = Workers(3)
    assert set(workers.map(lambda _: threading.get_ident(), [(k,) for k in range(50)], alone=True)) == {
        threading.get_ident()
    }
    workers.close()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_block_reaches_the_caller_and_stops_the_rest(n_threads):
    workers = Workers(n_threads)
    done = []

    def block(k):
        if k == 3:
            raise ZeroDivisionError("block 3")
        done.append(k)

    with pytest.raises(ZeroDivisionError, match="block 3"):
        workers.map(block, [(k,) for k in range(10_000)])
    assert len(done) < 10_000
    workers.close()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_check_is_asked_between_blocks(n_threads):
    workers = Workers(n_threads)
    cancel = Cancel()
    seen = []

    def block(k):
        time.sleep(1e-3)
        seen.append(k)
        if len(seen) == 5:
            cancel.set()

    with workers.checking(cancel.check), pytest.raises(Abandoned):
        workers.map(block, [(k,) for k in range(1000)])
    assert 5 <= len(seen) < 1000
    workers.map(block, [(0,)])  # outside, nothing is checked
    workers.close()


def test_workers_can_be_pickled():
    workers = Workers(2)
    workers.map(lambda k: k, [(1,), (2,)])
    assert pickle.loads(pickle.dumps(workers)).n_threads == 2
    workers.close()


def test_thread_count_follows_n_jobs(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert thread_count(None) == 1
    assert thread_count(3) == 3
    assert thread_count(np.int64(2)) == 2
    assert thread_count(-1) == available_threads()
    assert thread_count(-1000) == 1


@pytest.mark.parametrize("bad", [0, 1.5, "two", True])
def test_bad_n_jobs_is_an_error(bad):
    with pytest.raises(SoftmarginError, match="n_jobs"):
        thread_count(bad)


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_limits_of_an_outer_pool_are_respected(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    assert thread_count(-1) == 1


def test_all_is_one_inside_a_dask_worker():
    distributed = pytest.importorskip("distributed")
    cluster = {"processes": False, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.Client(**cluster) as client:
        assert client.submit(thread_count, -1).result() == 1
        assert client.submit(thread_count, 2).result() == 2


def _blas_threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def test_blas_is_held_to_one_thread_while_anyone_is_inside():
    with one_blas_thread():  # loads the libraries it guards
        pass
    before = _blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with one_blas_thread():
        assert set(_blas_threads()) == {1}
    assert set(_blas_threads()) == {1}  # the other one is still inside
    leave.set()
    thread.join()
    assert _blas_threads() == before


def test_the_last_one_out_lifts_the_limit_whoever_set_it():
    with one_blas_thread():
        pass
    before = _blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def first():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(10)
    with one_blas_thread():
        leave.set()
        thread.join()
        assert set(_blas_threads()) == {1}
    assert _blas_threads() == before
