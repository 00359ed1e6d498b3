"""Where the seconds of an OCAS fit go, timed from outside, by wrapping the functions that OCAS calls.

On a cluster a product takes the seconds of the worker that needs longest for it in all. Workers make their products in
the rounds of the program's line search and of its moving to the next point, so these are what remains of the rounds:
waiting and what travels are part of them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from softmargin.problems import on_groups
from softmargin.problems.hinge import Hinge
from softmargin.problems.partitioned import PartitionedHinge
from softmargin.solvers.cutting_plane import state

TITLES = {
    "output": "output X w",
    "search": "line search",
    "move": "moving, cutting",
    "plane": "plane X'c",
    "reduced": "reduced problem",
}
# The columns of the parts, and what is timed for them.
PARTS = {
    "output": (Hinge, "outputs"),
    "search": (Hinge, "minimise_along"),
    "move": (Hinge, "follow"),
    "plane": (Hinge, "slope"),
    "reduced": (state, "solve_reduced"),
}
PROGRAM_PARTS = {
    "search": (PartitionedHinge, "minimise_along"),
    "move": (PartitionedHinge, "follow"),
    "reduced": (state, "solve_reduced"),
}
WORKER_PARTS = {"output": (on_groups, "group_vectors"), "plane": (Hinge, "slope")}


@contextmanager
def parts_timed(parts: Mapping[str, tuple[Any, str]] = PARTS) -> Iterator[dict[str, float]]:
    """Seconds spent in each of the parts, added up while the context lasts."""
    spent = dict.fromkeys(parts, 0.0)
    with ExitStack() as stack:
        for part, (owner, name) in parts.items():
            stack.enter_context(patch.object(owner, name, _counted(getattr(owner, name), part, spent)))
        yield spent


def _counted(function: Callable, part: str, spent: dict[str, float]) -> Callable:
    def timed(*arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            spent[part] += time.perf_counter() - began

    return timed


@contextmanager
def cluster_parts_timed(client: Any) -> Iterator[dict[str, float]]:
    """As `parts_timed`, for a fit on the workers of this client; known when the context ends."""
    client.run(_begin)
    parts: dict[str, float] = {}
    with parts_timed(PROGRAM_PARTS) as spent:
        yield parts
    of_workers = client.run(_end).values()
    output, plane = (max(found[part] for found in of_workers) for part in WORKER_PARTS)
    parts |= {"output": output, "search": max(0.0, spent["search"] - output)}
    parts |= {"move": max(0.0, spent["move"] - plane), "plane": plane, "reduced": spent["reduced"]}


_open: list[tuple[ExitStack, dict[str, float]]] = []  # what this worker is timing


def _begin() -> None:
    stack = ExitStack()
    _open.append((stack, stack.enter_context(parts_timed(WORKER_PARTS))))


def _end() -> dict[str, float]:
    stack, spent = _open.pop()
    stack.close()
    return spent
