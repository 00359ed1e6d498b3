"""How good a ranking is, against C or against the iterations of a fit, as a picture."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.report.drawing import axes

COLORS = {"ndcg": "C0", "pairs": "C1"}
# "auto" takes a log scale for values that grow by at least this factor, none of them zero.
LOG_FROM = 10.0
# Values are marked by dots if there are at most this many.
FEW = 30
# The names of two lines are at least this far apart, so that they do not overlap.
LINE_POINTS = 14.0


class RankingDisplay:
    """NDCG and the share of correctly ordered pairs, against a parameter or the progress of a fit.

    A ring marks the best value of each. Create it with `from_estimators`, `from_predictions`, `from_records` or
    `from_curves`. After `plot` `ax_` holds the axes, `figure_` the figure, and `lines_` the lines by name, "ndcg" and
    "pairs".

    Parameters
    ----------
    x : array of what the values are shown against
    ndcg, pairs : arrays of the same length, or None for one that is not shown
    x_label : what x is
    x_scale : "linear", "log", or "auto": log for positive values over a range of at least 10
    k : of NDCG@k, for its name; None for all places
    """

    def __init__(
        self, *, x: Any, ndcg: Any = None, pairs: Any = None, x_label: str = "C", x_scale: str = "auto", k: Any = 10
    ) -> None:
        self.x = np.asarray(x, dtype=np.float64)
        self.ndcg, self.pairs = (None if v is None else np.asarray(v, dtype=np.float64) for v in (ndcg, pairs))
        self.x_label, self.x_scale, self.k = x_label, x_scale, k
        if self.ndcg is None and self.pairs is None:
            raise SoftmarginError("there is neither ndcg nor pairs: give at least one of them.")
        if self.x.ndim != 1 or self.x.size == 0:
            raise SoftmarginError(f"x has the shape {self.x.shape}: it must be a vector of at least one value.")
        for name, values in self._curves().items():
            if values.shape != self.x.shape:
                raise SoftmarginError(f"{name} has the shape {values.shape}, but x {self.x.shape}: one for each.")
        if x_scale not in ("auto", "linear", "log"):
            raise SoftmarginError(f"x_scale={x_scale!r} is unknown: choose 'auto', 'linear' or 'log'.")
        if x_scale == "log" and self.x.min() <= 0:
            raise SoftmarginError("x holds values of zero or below: these have no place on a log scale.")

    @classmethod
    def from_curves(
        cls,
        x: Any,
        ndcg: Any = None,
        pairs: Any = None,
        *,
        x_label: str = "C",
        x_scale: str = "auto",
        k: Any = 10,
        ax: Any = None,
    ) -> "RankingDisplay":
        """Plot values that are known; the parameters are those of the class, and `ax` matplotlib axes."""
        return cls(x=x, ndcg=ndcg, pairs=pairs, x_label=x_label, x_scale=x_scale, k=k).plot(ax=ax)

    @classmethod
    def from_records(
        cls, records: Iterable, *, against: str = "iterations", k: Any = 10, ax: Any = None
    ) -> "RankingDisplay":
        """Plot what was recorded during a fit: (iteration, seconds, ndcg, pairs) each time.

        Parameters
        ----------
        records : list of records, for example kept by a callback
        against : "iterations" or "seconds"
        k : of NDCG@k, for its name
        ax : matplotlib axes, default: a new figure
        """
        if against not in ("iterations", "seconds"):
            raise SoftmarginError(f"against={against!r} is unknown: choose 'iterations' or 'seconds'.")
        rows = [tuple(record) for record in records]
        if not rows or any(len(row) != 4 for row in rows):
            raise SoftmarginError("records must be a list of (iteration, seconds, ndcg, pairs), with at least one.")
        table = np.array(rows, dtype=np.float64)
        x = table[:, ("iterations", "seconds").index(against)]
        label = "iteration" if against == "iterations" else "seconds"
        return cls.from_curves(x, table[:, 2], table[:, 3], x_label=label, x_scale="linear", k=k, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        x: Any,
        y: Any,
        scores: Iterable,
        qid: Any = None,
        *,
        k: int | None = 10,
        x_label: str = "C",
        x_scale: str = "auto",
        ax: Any = None,
    ) -> "RankingDisplay":
        """Plot the quality of several score vectors of the same rows, one for each x.

        Parameters
        ----------
        x : array of what was varied
        y, qid : grades and queries of the rows
        scores : a score vector for each x
        k, x_label, x_scale, ax : as for `from_curves`
        """
        from softmargin.metrics import ndcg_by_query, swapped_pairs

        scores = list(scores)
        ndcg = [float(ndcg_by_query(y, each, qid, k=k)) for each in scores]
        pairs = [1.0 - swapped_pairs(y, each, qid) for each in scores]
        return cls.from_curves(x, ndcg, pairs, x_label=x_label, x_scale=x_scale, k=k, ax=ax)

    @classmethod
    def from_estimators(
        cls,
        models: Iterable,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        parameter: str = "C",
        k: int | None = 10,
        x_scale: str = "auto",
        ax: Any = None,
    ) -> "RankingDisplay":
        """Plot the quality of fitted models on the same rows against one of their parameters.

        The scores are an OrdinalSVC's `predict_score`, another model's `decision_function`, or what it predicts if it
        has none.

        Parameters
        ----------
        models : fitted models, which differ in the parameter
        X, y, qid : rows, their grades and queries, preferably not those of the training
        parameter : its name, in a pipeline as in `set_params`, for example "ranksvm__C"
        k, x_scale, ax : as for `from_curves`
        """
        models = list(models)
        x = [_parameter(model, parameter) for model in models]
        scores = [_scores(model, X) for model in models]
        x_label = parameter.split("__")[-1]
        return cls.from_predictions(x, y, scores, qid, k=k, x_label=x_label, x_scale=x_scale, ax=ax)

    def plot(self, *, ax: Any = None) -> "RankingDisplay":
        """Draw, on these axes or a new figure."""
        ax, figure = axes(ax)
        order = np.argsort(self.x, kind="stable")
        curves = {name: values[order] for name, values in self._curves().items()}
        self.lines_ = {}
        for name, values in curves.items():
            (self.lines_[name],) = ax.plot(
                self.x[order], values, color=COLORS[name], marker="." if self.x.size <= FEW else None
            )
        if self._is_log():
            ax.set_xscale("log")
        ax.margins(y=0.12)  # the best values stand above and below the lines
        ax.set_xlabel(self.x_label)
        ax.grid(True, alpha=0.3)
        self._write(ax, self.x[order], {name: values for name, values in curves.items() if np.isfinite(values).any()})
        self.figure_, self.ax_ = figure, ax
        return self

    def _write(self, ax: Any, x: np.ndarray, curves: dict[str, np.ndarray]) -> None:
        """The name of each line at its end, and its best value beside a ring."""
        names = {"ndcg": "NDCG" if self.k is None else f"NDCG@{self.k}", "pairs": "pairs in order"}
        ends = {name: values[np.isfinite(values)][-1] for name, values in curves.items()}
        upper = max(ends, key=lambda name: ends[name], default=None)
        heights = [ax.transData.transform((x[0], end))[1] * 72.0 / ax.figure.dpi for end in ends.values()]
        apart = max(0.0, LINE_POINTS - (max(heights) - min(heights))) / 2 if len(ends) == 2 else 0.0
        for name, values in curves.items():
            side = 1 if name == upper else -1
            style = {"color": COLORS[name], "textcoords": "offset points"}
            ax.annotate(
                names[name],
                (1.0, ends[name]),
                xycoords=("axes fraction", "data"),
                xytext=(6, side * apart),
                va="center",
                **style,
            )
            best = int(np.nanargmax(values))
            ax.plot(x[best], values[best], "o", color=COLORS[name], markersize=9, markerfacecolor="none")
            ax.annotate(
                f"{values[best]:.3f}",
                (x[best], values[best]),
                xytext=(0, 8 * side),
                ha="center",
                va="bottom" if side > 0 else "top",
                **style,
            )

    def _curves(self) -> dict[str, np.ndarray]:
        both = {"ndcg": self.ndcg, "pairs": self.pairs}
        return {name: values for name, values in both.items() if values is not None}

    def _is_log(self) -> bool:
        if self.x_scale == "auto":
            return bool(self.x.min() > 0 and self.x.max() >= LOG_FROM * self.x.min())
        return self.x_scale == "log"


def _parameter(model: Any, name: str) -> float:
    parameters = model.get_params()
    if name not in parameters:
        raise SoftmarginError(
            f"{type(model).__name__} has no parameter {name!r}: name what the models differ in with parameter=."
        )
    try:
        return float(parameters[name])
    except (TypeError, ValueError):
        raise SoftmarginError(
            f"{name}={parameters[name]!r} is no number: use from_predictions, with an x of your own."
        ) from None


def _scores(model: Any, X: Any) -> np.ndarray:
    """One number a row: the score that is cut into classes if there is one, else the decision function."""
    if hasattr(model, "steps"):  # a pipeline, which shows only the usual methods of its last step
        return _scores(model[-1], model[:-1].transform(X))
    methods = ("predict_score", "decision_function", "predict")
    scores = np.asarray(next(getattr(model, name) for name in methods if hasattr(model, name))(X))
    if scores.ndim != 1:
        raise SoftmarginError(
            f"{type(model).__name__} has {scores.shape[1]} scores for each row, and a ranking needs one: use "
            "from_predictions, with scores of your own."
        )
    return scores
