"""The hinge risk of ordered pairs, as cutting planes see it.

    R(w) = u * sum over pairs (i, j), y_i > y_j in the same query, of s_ij max(0, 1 - (w.x_i - w.x_j))

with s_ij = s_i s_j times the query's weight, and u = 1 / (sum of all s_ij) for the mean over the pairs or u = 1 for
their sum. With two distinct targets 1 - R bounds the area under the ROC curve. An intercept would cancel in every
difference, so there is none.

Pairs are never formed: at scores f let net_i and total be the counts of the pairs with f_i - f_j < 1 (see
`linalg/counting.py`). Then

    R(f) = u (total - sum_i net_i f_i),     the plane at f has c = -u net and the constant u total

and its witness is f itself: any vector of numbers defines a set of pairs, and any set of pairs a plane below R.

Along a line the risk has a breakpoint for every pair. The search only probes it, at one count a probe, until the
minimiser is enclosed (`bracketing`).

Reference: T. Joachims, Training Linear SVMs in Linear Time, KDD 2006, Section 2.2 and Algorithm 2. Symbols: m -> 1 / u;
c+ - c- -> net; 1/2 sum (c+ + c-) -> total. Departs from the paper: weights, queries, a line search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.core.kinds import PLANES
from softmargin.core.result import PlaneSolution
from softmargin.core.threads import Workers
from softmargin.data.rows import Products
from softmargin.linalg.counting import Pairs
from softmargin.problems.base import LineMinimum, Pattern, PlaneAlong, is_wide
from softmargin.problems.bracketing import Probe, search

# Relative, of the bracket. On a9a and w8a a tenth of it saves no iteration and costs a fifth more counts.
WIDTH = 0.1
# A plane is made at scores rounded to float32 where they are at most this large. It loses what the pairs lose that
# change sides: a share of about 1e-7 times the largest score, each by as little.
SINGLE_UP_TO = 100.0


@dataclass(frozen=True)
class PlaneScores:
    """The witness of a plane: the scores at which it was made, which say what pairs it counts.

    `c` are its coefficients where data are wide, because there they are needed in every iteration; otherwise None.
    """

    scores: np.ndarray
    c: np.ndarray | None


@dataclass(frozen=True)
class Known:
    """What a count found at a point: the risk, net in slot order, and the step that led there."""

    risk: float
    net: np.ndarray
    step: float


@dataclass(frozen=True)
class Ranking:
    """The problem of a ranking SVM over the pairs of rows; `average` says whether C multiplies their mean or sum."""

    rows: Products
    pairs: Pairs
    C: float
    average: bool = True
    workers: Workers = field(default_factory=Workers)
    serves: ClassVar[tuple[str, ...]] = (PLANES,)

    def __post_init__(self) -> None:
        if not self.pairs.n_pairs > 0.0:
            raise SoftmarginError(
                "there is no pair to rank: in no query do two rows (of weight above 0) have different targets. "
                "Check the targets, and that the query ids group rows that are to be compared."
            )

    @property
    def n_outputs(self) -> int:
        return self.rows.n_rows

    @property
    def n_weights(self) -> int:
        return self.rows.n_cols

    @cached_property
    def unit(self) -> float:
        """u."""
        return 1.0 / self.pairs.n_pairs if self.average else 1.0

    @property
    def lowest(self) -> float:
        return 0.0

    @cached_property
    def scale(self) -> float:
        return self.C * self.unit * self.pairs.n_pairs

    def outputs(self, w: np.ndarray) -> np.ndarray:
        return self.rows.dot(w)

    def slope(self, c: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        return self.rows.t_dot(c, before)

    def risk(self, f: np.ndarray) -> float:
        return self._known(self.pairs.take(f), 0.0).risk

    def pattern(self, f: np.ndarray) -> Pattern:
        scores = f.astype(np.float32) if np.abs(f).max() <= SINGLE_UP_TO else f
        net, total = self.pairs.count(self.pairs.take(scores), workers=self.workers)
        c = self.pairs.spread(-self.unit * net)
        kept = c if is_wide(self.n_outputs, self.n_weights) else None
        return Pattern(c, self.unit * total, PlaneScores(scores, kept))

    def follow(
        self, f: np.ndarray, df: np.ndarray, to: LineMinimum, k_plane: float
    ) -> tuple[np.ndarray, float, Pattern]:
        f_new = f + to.k * df
        risk = self.risk(f_new) if to.hint is None else to.hint.risk
        return f_new, risk, self.pattern(f + k_plane * df)

    def minimise_along(
        self,
        f: np.ndarray,
        df: np.ndarray,
        A0: float,
        B0: float,
        hint: Known | None = None,
        plane: PlaneAlong | None = None,
    ) -> LineMinimum:
        C, pairs, workers = self.C, self.pairs, self.workers
        f, df = pairs.take(f), pairs.take(df)

        def probe(k: float, known: Known | None = None) -> Probe:
            known = known or self._known(f + k * df, k)
            value = 0.5 * A0 * k * k + B0 * k + C * known.risk
            slope = A0 * k + B0 - C * self.unit * pairs.dot(known.net, df, workers)
            return Probe(k, value, slope, C * known.risk, known)

        first = hint.step if hint is not None and 0.0 < hint.step < 1.0 else 1.0
        lo, hi = search(probe, probe(0.0, hint), WIDTH, first)
        best = lo if lo.value < hi.value else hi
        return LineMinimum(best.k, lo.k, hi.k, best.known)

    def coefficients(self, witnesses: Sequence[PlaneScores], weights: np.ndarray) -> np.ndarray:
        out = np.zeros(self.n_outputs)
        for witness, weight in zip(witnesses, weights, strict=True):
            if weight != 0.0:
                out += weight * (self.pattern(witness.scores).c if witness.c is None else witness.c)
        return out

    def solution(
        self, w: np.ndarray, f: np.ndarray, witnesses: Sequence[PlaneScores], weights: np.ndarray
    ) -> PlaneSolution:
        points = tuple(witness.scores for witness, weight in zip(witnesses, weights, strict=True) if weight != 0.0)
        return PlaneSolution(w, 0.0, weights[weights != 0.0], points)

    def _known(self, f: np.ndarray, step: float) -> Known:
        net, total = self.pairs.count(f, workers=self.workers)
        return Known(max(0.0, self.unit * (total - self.pairs.dot(net, f, self.workers))), net, step)
