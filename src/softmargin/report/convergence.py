"""Convergence of a fit as a picture."""

from typing import Any

import numpy as np

# The objective is shown up to this multiple of its final value.
ZOOM = 4.0


class ConvergenceDisplay:
    """Primal value and bound, and the relative gap on a log scale, against iterations or seconds.

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
            raise ValueError(f"{type(estimator).__name__} has no trace_: fit it first.")
        several = isinstance(traces, list)
        names = [str(label) for label in estimator.classes_] if several else [""]
        rule = getattr(getattr(estimator, "solver", None), "stopping", "relative_gap")
        tol = getattr(estimator, "tol", None) if rule == "relative_gap" else None  # other rules have other axes
        display = cls(traces=traces if several else [traces], names=names, tol=tol)
        return display.plot(against=against, ax=ax)

    def plot(self, *, against: str = "both", ax: Any = None) -> "ConvergenceDisplay":
        """Draw; see `from_estimator`."""
        import matplotlib.pyplot as plt

        columns = {"iterations": ["iteration"], "seconds": ["seconds"], "both": ["iteration", "seconds"]}
        if against not in columns:
            raise ValueError(f"against={against!r} is unknown: choose 'iterations', 'seconds' or 'both'.")
        keys = columns[against]
        if ax is None:
            figure, axes = plt.subplots(
                2, len(keys), figsize=(5.2 * len(keys), 6), sharex="col", squeeze=False, layout="constrained"
            )
        else:
            axes = np.asarray(ax, dtype=object)
            if axes.size != 2 * len(keys):
                raise ValueError(
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
        for k, (trace, name) in enumerate(zip(self.traces, self.names, strict=True)):
            x, primal, dual = trace[key], trace["primal"], trace["dual"]
            color = f"C{k}" if len(self.traces) > 1 else None
            label = f" ({name})" if name else ""
            values.plot(x, primal, color=color or "C0", label=f"primal{label}")
            values.plot(x, dual, color=color or "C1", linestyle="--", label=f"lower bound{label}")
            relative = np.array([record.relative_gap for record in trace])
            gaps.plot(x, np.where(relative > 0, relative, np.nan), color=color or "C2", label=name or "gap")
        top = max(trace["primal"].max() for trace in self.traces)
        end = max(trace["primal"][-1] for trace in self.traces)
        if top > ZOOM * end > 0:  # the first iterates would flatten all that follows
            values.set_ylim(-0.05 * ZOOM * end, ZOOM * end)
        if self.tol:
            gaps.axhline(self.tol, color="0.4", linestyle=":", label=f"tol = {self.tol:g}")
        gaps.set_yscale("log")
        gaps.set_xlabel(key)
        if first:
            values.set_ylabel("objective")
            gaps.set_ylabel("relative duality gap")
        many = len(self.traces) > 4
        if not many:
            values.legend(frameon=False)
        gaps.legend(frameon=False, fontsize="small" if many else None)
        for axis in pair:
            axis.grid(True, alpha=0.3)
