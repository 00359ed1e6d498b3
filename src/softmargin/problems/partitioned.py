"""The hinge risk of rows that lie in groups on the workers of a cluster: `hinge.Hinge`, group by group.

Vectors with an entry for each row never leave the workers. What a solver holds for them are names (`Remote`), with the
weights that they can be made of again:

    f = X w       is made where it is first needed, and remembered by the workers until nobody here holds its name
    c             is remembered as long as it is the last plane, since X'c is made of the difference to it
    one bit a hinge and plane: what the dual vector is made of at the end

An iteration of OCAS takes four rounds of tasks, in each of which every worker goes through its groups:

    sample        df = X (w_t - w_b); f, df, v and the last c of some hinges come back
    narrow        sums over the hinges that stay on one side of their margin, and the few others
    follow        f + k df, the plane at f + k_plane df up to the few hinges next to its intercept; these come back
    complete      these, then X'c, one vector for each group, which are added in the order of the groups

A sample has about n^(2/3) hinges, and so have the few others, so that what travels is small beside n.

If a worker dies, its groups are made again elsewhere, and their memory is gone. The method that notices it begins
again with the weights of f and df, and makes both in one reading of the lost rows. The bits of lost planes are found
anew where they are needed, at the end: one more reading of these rows, for all planes that have a weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf
from typing import Any

import numpy as np

from softmargin.core.result import Solution
from softmargin.core.threads import Workers
from softmargin.data.groups import Group, LostPiece
from softmargin.problems import fixed_intercept, free_intercept
from softmargin.problems.base import Hint, LineMinimum, Pattern, PlaneAlong
from softmargin.problems.hinge import ActiveHinges, Hinge
from softmargin.problems.hinge_targets import as_target
from softmargin.problems.intercepts import Intercept
from softmargin.problems.line_rows import follow_rows
from softmargin.problems.on_groups import GroupProblem, Posed, Remote, added, group_line, group_problem, unless_lost
from softmargin.problems.partitioned_line import ClusterLine

# As in `cutting_plane.planes`: when X'c is made of the difference to the last plane.
CHANGED_SHARE = 0.5
MAX_DIFFERENCES = 50
COUNTED_ROWS = 2048


@dataclass(frozen=True)
class PartitionedHinge(GroupProblem):
    """`RiskProblem` of hinges over groups of rows; `posed` is a `Posed`."""

    @property
    def intercept(self) -> Intercept:
        return self.posed.intercept

    @cached_property
    def n_outputs(self) -> int:
        return sum(self.groups.each(_n_hinges, self.posed))

    @cached_property
    def has_targets(self) -> bool:
        return any(self.groups.each(_has_targets, self.posed))

    @property
    def n_weights(self) -> int:
        return self.n_cols + self.intercept.n_weights

    def risk(self, f: Remote) -> float:
        def risk() -> float:
            if self.intercept.is_free:
                return free_intercept.best_intercept_of(self._line(f, f).nearest())[1]
            return fsum(self.each(_risk, [f], f.ref))

        return self.unless_lost([f], risk)

    def pattern(self, f: Remote) -> Pattern:
        return self.follow(f, f, LineMinimum(0.0, 0.0, 0.0), 0.0)[2]

    def minimise_along(
        self,
        f: Remote,
        df: Remote,
        A0: float,
        B0: float,
        hint: Hint | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        def search() -> LineMinimum:
            c: Any = None if plane is None else plane.c
            line = self._line(f, df, c)
            if self.intercept.is_free:
                known = plane if line.has_plane and line.n_rows >= free_intercept.MANY_ROWS else None
                return LineMinimum(*free_intercept.minimise_over(line.nearest(), A0, B0, self.C, hint, known))
            k = fixed_intercept.minimise_over(line.nearest(), A0, B0, self.C)
            return LineMinimum(k, k, k)

        return self.unless_lost([f, df], search)

    def follow(self, f: Remote, df: Remote, to: LineMinimum, k_plane: float) -> tuple[Remote, float, Pattern]:
        return self.unless_lost([f, df], lambda: self._follow(f, df, to, k_plane))

    def _follow(self, f: Remote, df: Remote, to: LineMinimum, k_plane: float) -> tuple[Remote, float, Pattern]:
        last = self._last
        f_new = self.named("f", f.w + to.k * df.w)
        c = self.named("c", f.w + k_plane * df.w)
        witness = self.named("bits", c.w)
        names = f_new.key, c.key, witness.key, None if last is None else last.key
        own: list[Any]
        if self.intercept.is_free:
            risk, size, own, counts = self._follow_free(f, df, to, k_plane, names, c)
        else:
            parts = self.each(_follow_fixed, [f, df], f.ref, df.ref, (to.k, k_plane), names)
            risk, size = fsum(part[0] for part in parts), fsum(part[1] for part in parts)
            own, counts = [None] * len(parts), [part[2] for part in parts]
        witness.b = c.b
        base = last if last is not None and last.age < MAX_DIFFERENCES and _is_near(counts) else None
        sums = self.groups.each(_complete, self.posed, names, None if base is None else base.key, own=own)
        c.slope = added([part[0] for part in sums])
        if base is not None:
            c.slope += base.slope
            c.age = base.age + 1
        constant = -fsum(part[1] for part in sums) if self.has_targets else size
        f_new.is_there = c.is_there = witness.is_there = True
        self._remember(c)
        return f_new, risk, Pattern(c, constant, witness)  # type: ignore[arg-type]

    def _follow_free(
        self, f: Remote, df: Remote, to: LineMinimum, k_plane: float, names: tuple, c: Remote
    ) -> tuple[float, float, list[Any], list[Any]]:
        """The risk, the sum of the sizes of the coefficients, what each group needs to complete its part of the plane,
        and how many of its coefficients changed."""
        from softmargin.problems import _hinge

        line = self._line(f, df)
        known = to.hint or free_intercept.best_intercept_of(line.nearest(), to.k)[0]
        lo, hi = inf, -inf
        for wide in free_intercept.plane_brackets(line, to.k, known, k_plane):
            lo, hi = min(lo, wide[0]), max(hi, wide[1])
            at = to.k, known.b, k_plane, lo, hi
            parts = self.each(_follow_free, [f, df], f.ref, df.ref, at, names)
            t, q = (np.concatenate([part[0][k] for part in parts]) for k in range(2))
            risk, balance, size = (fsum(part[1][k] for part in parts) for k in range(3))
            is_inside, b, missing = free_intercept.plane_intercept(t, q, balance, lo, hi)
            if is_inside:
                break
        c.b = b
        out, bits = np.zeros(t.size), np.zeros(-(-t.size // 8), dtype=np.uint8)
        more, row, fraction = _hinge.complete_plane(t, q, np.arange(t.size), b, missing, out, bits)
        own, start = [], 0
        for part in parts:
            stop = start + part[0][0].size
            own.append((out[start:stop], row - start if start <= row < stop else -1, fraction))
            start = stop
        return risk, size + more, own, [part[2] for part in parts]

    def solution(self, w: np.ndarray, f: Remote, witnesses: Sequence[Remote], weights: np.ndarray) -> Solution:
        alpha = self.named("alpha", np.empty(0))
        used = [(plane, float(weight)) for plane, weight in zip(witnesses, weights, strict=True) if weight != 0.0]

        def form() -> None:
            planes = [(*plane.ref, plane.b, weight) for plane, weight in used]
            self.groups.each(_dual_vector, self.posed, key, planes)
            for plane, _ in used:
                plane.is_there = True

        key = alpha.key
        alpha.remake = lambda: self.unless_lost([plane for plane, _ in used], form)
        alpha.remake()
        w, b = self.intercept.split(w)
        if self.intercept.is_free:
            b = self.unless_lost([f], lambda: self._best_intercept(f))
        return Solution(w, b, alpha)  # type: ignore[arg-type]

    def _best_intercept(self, f: Remote) -> float:
        """As `Hinge` finds it: the middle of those that leave no loss, if there are any and targets are numbers."""
        if self.has_targets:
            ends = self.each(_lossless, [f], f.ref)
            least, most = max(end[0] for end in ends), min(end[1] for end in ends)
            if -inf < least <= most < inf:
                return 0.5 * least + 0.5 * most
        return free_intercept.best_intercept_of(self._line(f, f).nearest())[0].b

    def fetched(self, vector: Remote) -> np.ndarray:
        """A vector of the length of the rows, brought here once: the dual vector of the finished model."""
        return np.concatenate(unless_lost(self.lost, lambda: self.groups.each(_fetch, vector.key), vector.remake))

    def _line(self, f: Remote, df: Remote, c: Remote | None = None) -> ClusterLine:
        """The same object for the same line: its samples are there already."""
        if self._lines and self._lines[0].is_along(f, df, c):
            return self._lines[0]
        self._lines[:] = [ClusterLine(self, self.n_outputs, 0.0 if self.has_targets else 1.0, f, df, c)]
        return self._lines[0]

    @cached_property
    def _lines(self) -> list[ClusterLine]:
        return []

    @cached_property
    def _latest(self) -> list[Remote]:
        return []

    @property
    def _last(self) -> Remote | None:
        """The plane that was made last: its c is what the next one is compared with."""
        return self._latest[0] if self._latest else None

    def _remember(self, c: Remote) -> None:
        self._latest[:] = [c]


def _is_near(counts: Sequence[Any]) -> bool:
    """Whether few enough coefficients changed; None of a group that does not remember the last plane."""
    if any(part is None for part in counts):
        return False
    return sum(part[0] for part in counts) <= CHANGED_SHARE * sum(part[1] for part in counts)


# What the workers do, with one group at a time.


def _n_hinges(group: Group, workers: Workers, posed: Posed) -> int:
    return group_problem(group, workers, posed).n_outputs


def _has_targets(group: Group, workers: Workers, posed: Posed) -> bool:
    return group_problem(group, workers, posed).targets is not None


def _risk(group: Group, workers: Workers, posed: Posed, f: tuple) -> float:
    shifted, _, hinges = group_line(group, workers, posed, f, f)
    return fixed_intercept.risk(shifted, hinges)


def _follow_fixed(
    group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, steps: tuple[float, float], names: tuple
) -> tuple[float, float, Any]:
    at, along, hinges = group_line(group, workers, posed, f, df)
    k, k_plane = steps
    c, bits = np.empty(at.size), np.empty(-(-at.size // 8), dtype=np.uint8)
    sums = fixed_intercept.follow(at, along, hinges, k, k_plane, np.empty(0), c, bits)
    counts = _keep_followed(group, f, along, k, c, bits, names)
    return *sums, counts


def _follow_free(
    group: Group, workers: Workers, posed: Posed, f: tuple, df: tuple, at: tuple, names: tuple
) -> tuple[list[np.ndarray], list[float], Any]:
    here, along, hinges = group_line(group, workers, posed, f, df)
    c, bits = np.empty(here.size), np.empty(-(-here.size // 8), dtype=np.uint8)
    (t, q, rows), sums = follow_rows(here, along, hinges, at, np.empty(0), c, bits)
    counts = _keep_followed(group, f, along, at[0], c, bits, names, rows)
    return [t, q], sums, counts


def _keep_followed(
    group: Group, f: tuple, along: np.ndarray, k: float, c: np.ndarray, bits: np.ndarray, names: tuple, rows: Any = None
) -> tuple[int, int] | None:
    """Remember the new outputs and what is known of the plane; how many of some coefficients changed, and are used."""
    f_key, c_key, bits_key, last_key = names
    group.memory[f_key] = group.memory[f[0]] + k * along
    group.memory[c_key] = c
    group.memory[bits_key] = ActiveHinges(bits, -1, 0.0)
    group.memory["open"] = c_key, rows
    last = None if last_key is None else group.memory.get(last_key)
    if last is None:
        return None
    some = slice(None, None, 1 + c.size // COUNTED_ROWS)
    return int(np.count_nonzero(c[some] != last[some])), int(np.count_nonzero(c[some]))


def _complete(
    group: Group, workers: Workers, posed: Posed, names: tuple, before: tuple | None, own: tuple | None
) -> tuple[np.ndarray, float]:
    """X'c, or X'(c - before), when the hinges that were left open have got their coefficients; and c.t."""
    _, c_key, bits_key, _ = names
    c, witness = group.memory.get(c_key), group.memory.get(bits_key)
    last = None if before is None else group.memory.get(before)
    opened, rows = group.memory.get("open", (None, None))
    if c is None or witness is None or opened != c_key or (before is not None and last is None):
        raise LostPiece
    if own is not None:
        out, row, fraction = own
        # From a copy: Dask may do a task again on the same worker.
        c = c.copy()
        c[rows] = out
        bits = witness.bits.copy()
        whole = rows[(out != 0.0) & (np.arange(out.size) != row)]
        np.bitwise_or.at(bits, whole >> 3, (128 >> (whole & 7)).astype(np.uint8))
        group.memory[c_key] = c
        group.memory[bits_key] = ActiveHinges(bits, int(rows[row]) if row >= 0 else -1, fraction)
    problem = group_problem(group, workers, posed)
    on_targets = 0.0 if problem.targets is None else float(c @ problem.targets)
    return problem.slope(c, last), on_targets


def _dual_vector(group: Group, workers: Workers, posed: Posed, key: tuple, planes: list) -> None:
    """The dual vector of weighted planes. Planes that are not remembered are found again from their weights."""
    problem = group_problem(group, workers, posed)
    _find_lost(group, workers, problem, [plane[:3] for plane in planes if plane[0] not in group.memory])
    witnesses = [group.memory[plane[0]] for plane in planes]
    weights = np.array([plane[3] for plane in planes])
    alpha = np.abs(problem.signed_weights) * problem.activity(witnesses, weights)
    group.memory[key] = as_target(problem.target).dual(alpha)


def _find_lost(group: Group, workers: Workers, problem: Hinge, planes: list[tuple]) -> None:
    """Remember again which hinges are active in these planes, (key, w, b) each, in one reading of the rows.

    The fraction of the one hinge that balances a plane is not found again: the judge balances the dual vector anyway.
    """
    if not planes:
        return
    if any(w is None for _, w, _ in planes):
        raise LostPiece
    split = [problem.intercept.split(w) for _, w, _ in planes]
    n, hinges = group.n_rows, problem.hinges
    v = hinges.v.reshape(-1, n)  # the hinges of a row stand n apart
    goals = hinges.targets(v) if problem.targets is None else problem.targets.reshape(-1, n)
    found = [np.zeros(-(-v.size // 8), dtype=np.uint8) for _ in planes]
    for where, products in group.rows(workers).dots(np.array([w for w, _ in split])):
        for bits, product, (_, feature), (_, _, b) in zip(found, products, split, planes, strict=True):
            outputs = product + (feature + b if problem.intercept.feature else b)
            for k in range(v.shape[0]):
                _set_bits(bits, k * n + where.start, v[k, where] * (goals[k, where] - outputs) > 0.0)
    for (key, _, _), bits in zip(planes, found, strict=True):
        group.memory[key] = ActiveHinges(bits, -1, 0.0)


def _set_bits(bits: np.ndarray, start: int, is_set: np.ndarray) -> None:
    """Set bits from number `start` on, the first one highest in its byte."""
    packed = np.packbits(np.concatenate([np.zeros(start % 8, dtype=bool), is_set]))
    bits[start // 8 : start // 8 + packed.size] |= packed


def _lossless(group: Group, workers: Workers, posed: Posed, f: tuple) -> tuple[float, float]:
    """Between which intercepts no hinge has a loss; nowhere if the first is larger."""
    shifted, _, hinges = group_line(group, workers, posed, f, f)
    v = hinges.v
    least, most = (-shifted).max(where=v > 0.0, initial=-inf), (-shifted).min(where=v < 0.0, initial=inf)
    return float(least), float(most)


def _fetch(group: Group, workers: Workers, key: tuple) -> np.ndarray:
    if key not in group.memory:
        raise LostPiece
    return group.memory[key]
