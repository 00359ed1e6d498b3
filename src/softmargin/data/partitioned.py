"""Rows on a Dask cluster: groups of partitions, and rounds in which the workers do something with each of them.

The partitions form at most MAX_GROUPS groups, by their order alone. A group is one future, made of its partitions, and
lies on one worker. A round is one task for each worker, over all of its groups; it returns a result for each group, and
the results come in the order of the groups. So sums do not depend on where a group lies.

Nothing is pinned to a worker: where a group lies is a hint. If a worker dies, Dask makes its groups anew from their
partitions, wherever it likes, and does its tasks again. What the worker remembered is then gone; functions of a round
say so by raising `LostPiece`, and the round ends with `Lost`.
"""

from asyncio import CancelledError as AsyncCancelledError
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import numpy as np
from distributed import Client, Future, KilledWorker, get_client, get_worker, wait

from softmargin.core.errors import SoftmarginError
from softmargin.core.threads import Workers, one_blas_thread
from softmargin.data.groups import Group, LostPiece, in_memory, team

MAX_GROUPS = 32
CancelledError = (AsyncCancelledError, FutureCancelledError)  # Dask's own are of these kinds
POLL_SECONDS = 0.2  # between two looks at limits, interrupts and the state of the cluster
PATIENT_POLLS = 300  # so many looks at a cluster without any worker, and the fit gives up
_LOST = "lost"  # what stands for the result of a group whose worker does not remember


class Lost(Exception):
    """Some groups moved, and their new workers do not remember what the round needs."""


class Source(NamedTuple):
    """What is to become groups: a delayed group each, made of these partitions; and the names of the columns of X."""

    groups: list[Any]
    partitions: list[range]
    feature_names: list[str] | None


def current_client(client: Client | None) -> Client:
    """The client that is given, or the current one."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise SoftmarginError(
                "there is no Dask client: make one, client = distributed.Client(), or give one, fit(X, y, "
                "client=client). Without a cluster use the estimators of softmargin itself."
            ) from None
    if client.status != "running":
        raise SoftmarginError(f"the Dask client is {client.status}, not running: connect a new one.")
    return client


def is_dask(X: Any) -> bool:
    """Whether this is a collection of Dask."""
    return dask.is_dask_collection(X)


def source_of(X: Any, columns: dict[str, Any]) -> Source:
    """Groups of a Dask array or frame, and of columns such as y with the same partitions."""
    names = getattr(X, "columns", None)
    blocks = _partitions("X", X)
    given = {name: column for name, column in columns.items() if column is not None}
    parts = {name: _partitions(name, column) for name, column in given.items()}
    for name, own in parts.items():
        _check_aligned(name, X, given[name], len(blocks), len(own))
    ranges = group_ranges(len(blocks))
    load = dask.delayed(in_memory, pure=False)
    groups = [
        load(own, blocks[own.start : own.stop], {name: part[own.start : own.stop] for name, part in parts.items()})
        for own in ranges
    ]
    text = None if names is None or not all(isinstance(name, str) for name in names) else list(names)
    return Source(groups, ranges, text)


def source_from(load: Callable[[range], Group], n_partitions: int, feature_names: Sequence[str] | None) -> Source:
    """Groups that the workers load by themselves, each from a range of partitions."""
    ranges = group_ranges(n_partitions)
    names = None if feature_names is None else list(feature_names)
    return Source([dask.delayed(load, pure=False)(own) for own in ranges], ranges, names)


def group_ranges(n_partitions: int) -> list[range]:
    """Consecutive partitions in at most MAX_GROUPS groups."""
    n_groups = min(MAX_GROUPS, n_partitions)
    edges = [k * n_partitions // n_groups for k in range(n_groups + 1)]
    return [range(lo, hi) for lo, hi in pairwise(edges)]


def _partitions(name: str, collection: Any) -> list[Any]:
    """The partitions of a collection, in the order of the rows."""
    if not is_dask(collection) or not hasattr(collection, "to_delayed"):
        raise SoftmarginError(
            f"{name} is no Dask array or frame: give all of X, y and the weights as Dask collections with the same "
            f"partitions, for example dask.array.from_array({name}, chunks=X.chunks[0])."
        )
    blocks = getattr(collection, "numblocks", None)
    if blocks is not None and name == "X":
        if len(blocks) != 2:
            raise SoftmarginError(f"X must have two dimensions, but it has {len(blocks)}.")
        if blocks[1] != 1:
            collection = collection.rechunk({1: -1})
    found = np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()
    if not found:
        raise SoftmarginError(f"{name} has no partitions.")
    return found


def _check_aligned(name: str, X: Any, column: Any, n_own: int, n_other: int) -> None:
    if n_own != n_other:
        raise SoftmarginError(
            f"X has {n_own} partitions, but {name} has {n_other}: partition {min(n_own, n_other)} has no counterpart. "
            f"Give both the same partitions, for example {name}.rechunk(X.chunks[0])."
        )
    lengths = [getattr(part, "chunks", ((np.nan,) * n_own,))[0] for part in (X, column)]
    for number, (own, other) in enumerate(zip(*lengths, strict=True)):
        if own == own and other == other and own != other:  # nan: not known before it is loaded
            raise SoftmarginError(
                f"partition {number} has {own} rows of X, but {other} of {name}: give both the same partitions, for "
                f"example {name}.rechunk(X.chunks[0])."
            )


class Partitions:
    """The groups on a cluster. `check` is called while it waits: what it raises ends the round."""

    def __init__(self, client: Client, source: Source, n_threads: int | None = None) -> None:
        self._client = client
        self._n_threads = n_threads
        self.partitions = source.partitions
        self.feature_names = source.feature_names
        self.check: Callable[[], None] = lambda: None
        self.n_rounds = 0
        self._forgotten: deque[Any] = deque()
        self._groups: list[Future] = client.compute(source.groups)
        self._finish(self._groups, source.partitions)
        self._places: dict[str, list[int]] = {}
        self._locate()
        shapes = self.each(_shape)
        self.n_rows, self.n_cols = sum(shape[0] for shape in shapes), shapes[0][1]
        for own, shape in zip(self.partitions, shapes, strict=True):
            if shape[1] != self.n_cols:
                raise SoftmarginError(
                    f"{_named(own)} of X: {shape[1]} columns, but partition 0 has {self.n_cols}: give all of them the "
                    "same columns."
                )
        if self.n_rows == 0:
            raise SoftmarginError("X has no rows: all of its partitions are empty.")
        kept = [g for g, shape in enumerate(shapes) if shape[0]]
        self._groups = [self._groups[g] for g in kept]
        self.partitions = [self.partitions[g] for g in kept]
        self._locate()

    def __len__(self) -> int:
        return len(self._groups)

    def forget(self, key: Any) -> None:
        """Let the workers forget what they remember under this key, at the next round. Called by finalizers."""
        self._forgotten.append(key)

    def each(self, function: Callable[..., Any], *shared: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """A round: function(group, workers, *shared), or with the entry of `own` for the group at the end."""
        if self._client.status != "running":
            raise SoftmarginError(_CLOSED)
        drop = list(self._forgotten)
        futures: list[Future] = []
        numbers: list[list[int]] = []
        tag = uuid4().hex
        # Weights travel with the tasks on purpose: data that are scattered would be lost with a worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            for address, groups in self._places.items():
                more = None if own is None else [own[g] for g in groups]
                arguments = function, [self._groups[g] for g in groups], shared, more, drop, self._n_threads
                # A hint, never a condition: a task that is pinned to a worker which dies would wait for ever.
                where = {"workers": [address], "allow_other_workers": True} if address else {}
                key = f"softmargin-{getattr(function, '__name__', 'round')}-{tag}-{len(futures)}"
                futures.append(self._client.submit(_on_groups, *arguments, key=key, pure=False, **where))
                numbers.append(groups)
        found = self._finish(futures, [_spanned(self.partitions, groups) for groups in numbers])
        self.n_rounds += 1
        for _ in drop:
            self._forgotten.popleft()
        results: list[Any] = [None] * len(self._groups)
        moved = False
        for address, groups, (ran_on, parts) in zip(self._places, numbers, found, strict=True):
            moved |= ran_on != address
            for g, part in zip(groups, parts, strict=True):
                results[g] = part
        if moved:
            self._locate()
        if any(isinstance(part, str) and part == _LOST for part in results):
            raise Lost
        return results

    def close(self) -> None:
        """The cluster may forget the groups."""
        self._groups = []

    def _locate(self) -> None:
        """Which groups lie on which worker; those that lie nowhere just now go together."""
        where = self._client.who_has(self._groups)
        places: dict[str, list[int]] = {}
        for g, future in enumerate(self._groups):
            holders = sorted(where.get(future.key, ()))
            places.setdefault(holders[0] if holders else "", []).append(g)
        self._places = places

    def _finish(self, futures: list[Future], partitions: Sequence[Iterable[int]]) -> list[Any]:
        """The results of futures; what went wrong is told with the partitions that it is about."""
        idle_polls = 0
        try:
            while True:
                self.check()
                try:
                    with self._client.as_current():
                        wait(futures, timeout=POLL_SECONDS)
                except TimeoutError:
                    idle_polls = self._looked_at_cluster(idle_polls)
                    continue
                except CancelledError:
                    raise SoftmarginError(_CLOSED) from None
                except ValueError:  # a client that is closed is nobody's current one
                    self._looked_at_cluster(0)
                    raise
                self._check_errors(futures, partitions)
                # A result that was there is lost with its worker, and made again.
                if all(future.status == "finished" for future in futures):
                    break
                idle_polls = self._looked_at_cluster(idle_polls)
            if futures is self._groups:
                return []
            try:
                return self._client.gather(futures)
            except CancelledError:
                raise SoftmarginError(_CLOSED) from None
        except BaseException:
            for future in futures:
                future.release()
            raise

    def _looked_at_cluster(self, idle_polls: int) -> int:
        if self._client.status != "running":
            raise SoftmarginError(_CLOSED)
        idle_polls = 0 if self._client.nthreads() else idle_polls + 1
        if idle_polls >= PATIENT_POLLS:
            raise SoftmarginError(
                f"the Dask cluster has had no worker for {PATIENT_POLLS * POLL_SECONDS:.0f} seconds: start workers, "
                "and fit again."
            )
        return idle_polls

    def _check_errors(self, futures: list[Future], partitions: Sequence[Iterable[int]]) -> None:
        """Raise what went wrong, in the order of the partitions."""
        if any(future.status == "cancelled" for future in futures):
            raise SoftmarginError(_CLOSED)
        failed = [(f.exception(), own) for f, own in zip(futures, partitions, strict=True) if f.status == "error"]
        for error, own in failed:
            if isinstance(error, SoftmarginError):
                raise error
            if not isinstance(error, KilledWorker):
                raise SoftmarginError(f"{_named(own)}: {type(error).__name__}: {error}") from error
        if failed:
            numbers = [number for _, own in failed for number in own]
            raise SoftmarginError(
                f"the workers that worked on {_named(numbers)} died, one after the other. Most often their memory was "
                "too small: give workers more memory, or make partitions smaller. The logs of the workers say more."
            ) from failed[0][0]


_CLOSED = "the Dask cluster was closed or lost during the fit: connect a client to a running cluster, and fit again."


def _shape(group: Group, workers: Workers) -> tuple[int, int]:
    return group.n_rows, group.chunks.n_cols


def mapped(X: Any, function: Callable[[Any], np.ndarray], n_cols: int, like: np.ndarray) -> Any:
    """A Dask array of what a function returns for each partition: vectors, or matrices with the columns of `like`."""
    from dask import array

    blocks = _partitions("X", X)
    chunks = getattr(X, "chunks", None)
    if chunks is not None and chunks[1] != (np.nan,) and sum(chunks[1]) != n_cols:
        raise SoftmarginError(f"X has {sum(chunks[1])} features, but the model was trained on {n_cols}.")
    lengths = [np.nan] * len(blocks) if chunks is None else chunks[0]
    apply = dask.delayed(function, pure=True)
    parts = [
        array.from_delayed(apply(block), shape=(length, *like.shape[1:]), meta=like[:0])
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def _spanned(partitions: Sequence[range], groups: Sequence[int]) -> list[int]:
    return [number for g in groups for number in partitions[g]]


def _named(partitions: Iterable[int]) -> str:
    """Partition numbers in a few words."""
    numbers = list(partitions)
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    shown = ", ".join(map(str, numbers[:8]))
    return f"partitions {shown}{' and others' if len(numbers) > 8 else ''}"


def _on_groups(
    function: Callable[..., Any],
    groups: list[Group],
    shared: tuple,
    own: list[Any] | None,
    drop: list[Any],
    n_threads: int | None,
) -> tuple[str, list[Any]]:
    """What a task does: where it ran, and a result for each group."""
    worker = get_worker()
    workers: Workers = team(n_threads or worker.state.nthreads)
    results = []
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k, group in enumerate(groups):
            for key in drop:
                group.memory.pop(key, None)
            try:
                results.append(function(group, workers, *shared, *([] if own is None else [own[k]])))
            except LostPiece:
                results.append(_LOST)
    return worker.address, results
