"""Convergence of a fit as a picture."""

from itertools import combinations
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.report.drawing import pyplot, whole_numbers

# The objective is shown up to this multiple of its final value.
ZOOM = 4.0
# A log scale has no place for a gap of zero or below, which rounding may leave at the end: it is drawn as this.
NO_GAP = 1e-16
# The legend names up to NAMED_VALUES sub-problems at the objective, and up to NAMED_GAPS at the gap. Beyond that lines
# have no colours of their own.
NAMED_VALUES, NAMED_GAPS = 4, 10


class ConvergenceDisplay:
    """Primal value and bound, and the relative gap on a log scale, against iterations or seconds.

    A model of several classes has a line for each class (LinearSVC) or each pair of classes (SVC). A gap of zero or
    below is drawn at 1e-16.

    Create it with `from_estimator`; `ax_` holds the pair of axes, `figure_` the figure, after `plot`.
    """

    def __init__(self, *, traces: list, names: list[str], tol: float | None = None) -> None:
        self.traces, self.names, self.tol = traces, names, tol

    @classmethod
    def from_estimator(cls, estimator: Any, *, against: str = "both", ax: Any = None) -> "ConvergenceDisplay":
        """Plot the trace of a fitted estimator.

        Parameters
        ----------
        estimator : a fitted estimator with `trace_`
        against : "iterations", "seconds" or "both"
        ax : pair of matplotlib axes for each of what it is plotted against, default: a new figure
        """
        traces = getattr(estimator, "trace_", None)
        if traces is None:
            raise SoftmarginError(f"{type(estimator).__name__} has no trace_: fit it first.")
        several = isinstance(traces, list)
        names = _names(estimator) if several else [""]
        asked_of = (estimator, getattr(estimator, "solver", None))
        rules = {getattr(each, "stopping", "gap") for each in asked_of}
        is_for_gap = rules <= {"gap", "relative_gap"}  # the tol of another stop rule has no place on this axis
        tol = getattr(estimator, "tol", None) if is_for_gap else None
        display = cls(traces=traces if several else [traces], names=names, tol=tol)
        return display.plot(against=against, ax=ax)

    def plot(self, *, against: str = "both", ax: Any = None) -> "ConvergenceDisplay":
        """Draw; see `from_estimator`."""
        plt = pyplot()

        columns = {"iterations": ["iteration"], "seconds": ["seconds"], "both": ["iteration", "seconds"]}
        if against not in columns:
            raise SoftmarginError(f"against={against!r} is unknown: choose 'iterations', 'seconds' or 'both'.")
        keys = columns[against]
        if ax is None:
            figure, axes = plt.subplots(
                2, len(keys), figsize=(5.2 * len(keys), 6), sharex="col", squeeze=False, layout="constrained"
            )
        else:
            axes = np.asarray(ax, dtype=object)
            if axes.size != 2 * len(keys):
                raise SoftmarginError(
                    f"ax must hold {2 * len(keys)} axes for against={against!r}, but it holds {axes.size}."
                )
            axes = axes.reshape(2, len(keys))
            figure = axes[0, 0].figure
        for column, key in enumerate(keys):
            self._plot_column(axes[:, column], key, first=column == 0)
        self.figure_, self.ax_ = figure, axes
        return self

    def _plot_column(self, pair: np.ndarray, key: str, first: bool) -> None:
        values, gaps = pair
        drawn = [(trace, name) for trace, name in zip(self.traces, self.names, strict=True) if len(trace)]
        several, has_names = len(drawn) > 1, len(drawn) <= NAMED_GAPS
        for k, (trace, name) in enumerate(drawn):
            x, primal, dual = trace[key], trace["primal"], trace["dual"]
            color = (f"C{k}" if has_names else "C0") if several else None
            style = {"linewidth": 1.0, "alpha": 0.4} if not has_names else {}
            label = f" ({name})" if name else ""
            values.plot(x, primal, color=color or "C0", label=f"primal{label}", **style)
            values.plot(x, dual, color=color or "C1", linestyle="--", label=f"lower bound{label}", **style)
            relative = np.array([record.relative_gap for record in trace])
            gap_label = (name or "gap") if has_names else (f"{len(drawn)} sub-problems" if k == 0 else None)
            gaps.plot(x, np.maximum(relative, NO_GAP), color=color or "C2", label=gap_label, **style)
        self._limit(values, [trace for trace, _ in drawn])
        if self.tol:
            gaps.axhline(self.tol, color="0.4", linestyle=":", label=f"tol = {self.tol:g}")
        gaps.set_yscale("log")
        gaps.set_xlabel(key)
        if key == "iteration":
            whole_numbers(gaps.xaxis)
        if first:
            values.set_ylabel("objective")
            gaps.set_ylabel("relative duality gap")
        if len(drawn) <= NAMED_VALUES:
            values.legend(loc="best", frameon=False)  # asked for, so that matplotlib does not warn if it takes long
        many = len(drawn) > NAMED_VALUES
        gaps.legend(loc="best", frameon=many, fontsize="small" if many else None)
        for axis in pair:
            axis.grid(True, alpha=0.3)

    @staticmethod
    def _limit(values: Any, traces: list) -> None:
        """Leave out the first iterates where they would flatten all that follows."""
        top = max((trace["primal"].max() for trace in traces), default=0.0)
        end = max((trace["primal"][-1] for trace in traces), default=0.0)
        if top > ZOOM * end > 0:
            values.set_ylim(-0.05 * ZOOM * end, ZOOM * end)


def _names(estimator: Any) -> list[str]:
    """Of sub-problems: pairs of classes where support vectors are combined by pairs, else the classes."""
    labels = [str(label) for label in estimator.classes_]
    if hasattr(estimator, "dual_coef_"):
        return [f"{first} against {second}" for first, second in combinations(labels, 2)]
    return labels
