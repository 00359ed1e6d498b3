"""What happened during a solve, and when: the trace, its observers, and the only clock."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from math import nan
from typing import Any

import numpy as np


class Clock:
    """Seconds since the start, without those spent loading the compiler and compiling.

    A time limit is about the work itself; what compilation took is reported beside it.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        from softmargin.core import jit  # here, because it imports Numba

        self._jit = jit
        self._loading = time.perf_counter() - self._start
        self._compiled_before = jit.compile_seconds()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._start

    @property
    def compiling(self) -> float:
        return self._loading + self._jit.compile_seconds() - self._compiled_before

    @property
    def seconds(self) -> float:
        return self.wall - self.compiling


@dataclass(frozen=True)
class Record:
    """One line of the trace. `passes` counts products with X or its transpose.

    Of cutting planes `planes` is the size of the working set, and `xi` the slack of SVM-perf: the mean risk that the
    planes leave at the last minimiser of the reduced problem; nan before there is one, and for other solvers.
    """

    iteration: int
    seconds: float
    primal: float
    dual: float
    planes: int
    passes: int
    kernel_evaluations: int = 0
    xi: float = field(default=nan, compare=False)  # nan differs from itself

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), sys.float_info.min)


class Trace:
    """Columns over iterations: `trace["primal"]`, `trace["seconds"]`, ...; `trace[-1]` is the last record."""

    columns = tuple(column.name for column in fields(Record))

    def __init__(self, records: list[Record] | None = None) -> None:
        self._records = list(records or [])

    def append(self, record: Record) -> None:
        self._records.append(record)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"no column {key!r}: choose one of {', '.join(self.columns)}")
            return np.array([getattr(record, key) for record in self._records])
        return self._records[key]

    def __repr__(self) -> str:
        if not self._records:
            return "Trace(empty)"
        last = self._records[-1]
        return f"Trace({len(self)} records, last: primal {last.primal:.6g}, dual {last.dual:.6g})"

    def to_dict(self) -> dict[str, np.ndarray]:
        """All columns, ready for `pandas.DataFrame(trace.to_dict())`."""
        return {name: self[name] for name in self.columns}


# An observer sees each record as it is made and the state behind it; returning True asks the loop to stop.
Observer = Callable[[Record, Any], bool | None]
