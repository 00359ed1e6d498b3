"""Residuals of a regression as a picture."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.report.drawing import axes, last_step, legend_above

COLORS = {"outside the tube": "C3", "inside the tube": "0.55"}
# Dots of up to FEW rows are large and nearly opaque. Of more rows they shrink, so that a dense cloud shows its shape.
FEW, SMALLEST_DOT, LARGEST_DOT = 200, 2.0, 22.0


class ResidualDisplay:
    """What a regression is off by, y - prediction, against its prediction, with the tube in which errors cost nothing.

    A good model leaves a band of dots around zero. A bend in the band means that the model lacks a curve (try a
    kernel); a band that widens means that errors grow with the prediction (try to learn log y).

    Create it with `from_estimator` or `from_predictions`. After `plot` `ax_` holds the axes, `figure_` the figure, and
    `counts_` how many rows lie inside and outside the tube.

    Parameters
    ----------
    y_true, y_pred : arrays of the same length
    epsilon : half the width of the tube; None draws no tube
    """

    def __init__(self, *, y_true: Any, y_pred: Any, epsilon: float | None = None) -> None:
        self.y_true, self.y_pred = (np.asarray(values, dtype=np.float64) for values in (y_true, y_pred))
        if self.y_true.ndim != 1 or self.y_pred.shape != self.y_true.shape:
            raise SoftmarginError(
                f"y_true and y_pred must be vectors with one entry a row, but have the shapes {self.y_true.shape} and "
                f"{self.y_pred.shape}."
            )
        if epsilon is not None and not 0.0 <= epsilon < np.inf:
            raise SoftmarginError(f"epsilon={epsilon!r} must be a number of at least 0, or None for no tube.")
        self.epsilon = epsilon

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, epsilon: Any = "auto", ax: Any = None) -> Any:
        """Plot the residuals of a fitted regressor, on the rows it was trained on or on others.

        Parameters
        ----------
        estimator : a fitted regressor, such as `SVR`, `LinearSVR`, or a pipeline that ends with one
        X, y : rows and the numbers that belong to them
        epsilon : half the width of the tube. "auto" is the model's own; a model that has none gets no tube. None draws
            no tube either.
        ax : matplotlib axes, default: a new figure
        """
        if isinstance(epsilon, str):
            if epsilon != "auto":
                raise SoftmarginError(f"epsilon={epsilon!r} is unknown: give a number, None or 'auto'.")
            epsilon = getattr(last_step(estimator), "epsilon", None)
        return cls.from_predictions(np.ravel(y), estimator.predict(X), epsilon=epsilon, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, epsilon: float | None = None, ax: Any = None) -> Any:
        """Plot the residuals of predictions; the parameters are those of the class, and `ax` matplotlib axes."""
        return cls(y_true=y_true, y_pred=y_pred, epsilon=epsilon).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "ResidualDisplay":
        """Draw; see `from_estimator`."""
        self.ax_, self.figure_ = axes(ax)
        residuals = self.y_true - self.y_pred
        crowd = min(1.0, FEW / max(residuals.size, 1))
        style = {"s": SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * crowd, "linewidths": 0, "rasterized": True}
        if self.epsilon is None:
            self.counts_ = {"rows": residuals.size}
            self.ax_.scatter(self.y_pred, residuals, color="C0", alpha=0.7, **style)
        else:
            is_outside = np.abs(residuals) > self.epsilon
            self.counts_ = {}
            for name, kind in zip(COLORS, (is_outside, ~is_outside), strict=True):
                self.counts_[name] = int(np.count_nonzero(kind))
                label = f"{name}: {self.counts_[name]:,}"
                self.ax_.scatter(
                    self.y_pred[kind], residuals[kind], color=COLORS[name], alpha=0.7, label=label, **style
                )
            self.ax_.axhspan(-self.epsilon, self.epsilon, color="C0", alpha=0.15, linewidth=0, zorder=0)
            for edge in (-self.epsilon, self.epsilon):
                self.ax_.axhline(edge, color="C0", linewidth=0.8)
            for handle in legend_above(self.ax_, 2).legend_handles:
                handle.set_sizes([LARGEST_DOT])
        self.ax_.axhline(0.0, color="0.15", linestyle="--", linewidth=1.0)
        self.ax_.set_xlabel("prediction")
        self.ax_.set_ylabel("residual: y $-$ prediction")
        self.ax_.grid(True, alpha=0.3)
        self.ax_.set_axisbelow(True)
        return self
