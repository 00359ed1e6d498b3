"""What changes with C, as a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.report.drawing import pyplot

# The legend names up to this many values of gamma.
NAMED_GAMMAS = 8
# A dual variable is above zero if it is at least this share of its upper bound or, where that is not known, of the
# largest one.
ABOVE_ZERO = 1e-9


class RegularizationPathDisplay:
    """Score, objective and number of support vectors against C on a log axis.

    The line of the score is the mean over the folds, its band one standard deviation to either side. The best C is
    marked. A search over gamma has a line for each gamma.

    Create it with `from_estimator` or `from_path`. After `plot` `ax_` holds the axes, one for each quantity, and
    `figure_` the figure.

    Parameters
    ----------
    Cs : array of shape (n_Cs,)
    scores, objectives, n_support : arrays of shape (n_folds, n_gammas, n_Cs); None draws nothing
    gammas : list of the values of gamma, for the legend; None if there is nothing to choose
    best : (index of gamma, C) that is marked; None marks nothing
    score_name : what is written at the axis of the scores
    """

    def __init__(
        self,
        *,
        Cs: Any,
        scores: Any = None,
        objectives: Any = None,
        n_support: Any = None,
        gammas: Sequence[float] | None = None,
        best: tuple[int, float] | None = None,
        score_name: str = "score",
    ) -> None:
        Cs = np.asarray(Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size:
            raise SoftmarginError(f"Cs must be a list of numbers, but has the shape {Cs.shape}.")
        order = np.argsort(Cs, kind="stable")
        self.Cs, self.gammas, self.best, self.score_name = Cs[order], gammas, best, score_name
        given = {"scores": scores, "objectives": objectives, "n_support": n_support}
        tables = {name: np.asarray(table, dtype=np.float64) for name, table in given.items() if table is not None}
        if not tables:
            raise SoftmarginError("there is nothing to draw: give scores, objectives or n_support.")
        for name, table in tables.items():
            if table.ndim != 3 or table.shape[2] != Cs.size:
                raise SoftmarginError(
                    f"{name} must have the shape (n_folds, n_gammas, {Cs.size}), but has {table.shape}."
                )
        self.tables = {name: table[:, :, order] for name, table in tables.items()}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "RegularizationPathDisplay":
        """Plot a search.

        Parameters
        ----------
        estimator : a fitted `LinearSVCCV` or `SVCCV`
        ax : matplotlib axes, three of them, default: a new figure
        """
        if not hasattr(estimator, "scores_") or not hasattr(estimator, "Cs_"):
            raise SoftmarginError(
                f"{type(estimator).__name__} has no scores_ and Cs_: fit a LinearSVCCV or SVCCV, or give the models of "
                "c_path to RegularizationPathDisplay.from_path."
            )

        def table(values: np.ndarray) -> np.ndarray:
            return values if values.ndim == 3 else values[:, None, :]

        gammas = list(getattr(estimator, "gammas_", [0.0]))
        scoring = estimator.scoring
        display = cls(
            Cs=estimator.Cs_,
            scores=table(estimator.scores_),
            objectives=table(estimator.objectives_),
            n_support=table(estimator.n_support_vectors_),
            gammas=gammas if len(gammas) > 1 else None,
            best=(gammas.index(getattr(estimator, "gamma_", 0.0)), estimator.C_),
            score_name="accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score",
        )
        return display.plot(ax=ax)

    @classmethod
    def from_path(cls, models: Sequence[Any], X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
        """Plot the models of `c_path`.

        Parameters
        ----------
        models : list of fitted estimators
        X, y : rows to score the models on, best ones that they were not trained on; without them no score is drawn
        ax : matplotlib axes, three of them or without a score two, default: a new figure
        """
        models = list(models)
        if not models or not all(hasattr(model, "certificate_") for model in models):
            raise SoftmarginError("models must be a list of fitted estimators, as c_path returns them.")
        counts = [_n_support(model) for model in models]
        display = cls(
            Cs=[model.C for model in models],
            scores=None if X is None else [[[model.score(X, y) for model in models]]],
            objectives=[[[model.certificate_.primal for model in models]]],
            n_support=None if None in counts else [[counts]],
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "RegularizationPathDisplay":
        """Draw; see `from_estimator`."""
        names = list(self.tables)
        if ax is None:
            figure, axes = pyplot().subplots(
                1, len(names), figsize=(4.0 * len(names), 3.4), squeeze=False, layout="constrained"
            )
        else:
            axes = np.asarray(ax, dtype=object)
            if axes.size != len(names):
                raise SoftmarginError(f"ax must hold {len(names)} axes, but it holds {axes.size}.")
            figure = axes.flat[0].figure
        self.figure_, self.ax_ = figure, axes.reshape(-1)
        titles = {"scores": self.score_name, "objectives": "objective", "n_support": "support vectors"}
        for axis, name in zip(self.ax_, names, strict=True):
            self._plot_lines(axis, self.tables[name], has_band=name == "scores")
            axis.set_xscale("log")
            if name == "objectives":
                axis.set_yscale("log" if (self.tables[name] > 0.0).all() else "linear")
            elif name == "n_support":
                axis.set_ylim(bottom=0.0)
            axis.set_xlabel("C")
            axis.set_ylabel(titles[name])
            axis.grid(True, alpha=0.3)
        first = self.ax_[0]
        if first.get_legend_handles_labels()[1]:
            first.legend(loc="best", frameon=True, fontsize="small")
        return self

    def _plot_lines(self, axis: Any, table: np.ndarray, has_band: bool) -> None:
        mean, deviation = table.mean(axis=0), table.std(axis=0)
        is_named = self.gammas is not None and len(self.gammas) <= NAMED_GAMMAS
        for g, line in enumerate(mean):
            color = f"C{g % 10}"
            label = f"gamma = {self.gammas[g]:.2g}" if self.gammas is not None and is_named else None
            axis.plot(self.Cs, line, color=color, marker="o", markersize=3.5, label=label)
            if has_band and len(table) > 1:
                lower, upper = line - deviation[g], line + deviation[g]
                axis.fill_between(self.Cs, lower, upper, color=color, alpha=0.15, linewidth=0)
        if self.best is not None:
            g, C = self.best
            of_gamma = "" if self.gammas is None else f", gamma = {self.gammas[g]:.2g}"
            label = f"best: C = {C:.3g}{of_gamma}" if has_band else None
            axis.axvline(C, color="0.4", linestyle=":", linewidth=1.2, label=label)


def _n_support(model: Any) -> int | None:
    """How many rows support a model; None if it does not tell."""
    if hasattr(model, "support_"):
        return len(model.support_)
    dual = getattr(model, "dual_", None)
    if dual is None:
        return None
    sizes = np.abs(dual).reshape(len(dual), -1)
    return int(np.count_nonzero((sizes > ABOVE_ZERO * sizes.max(initial=0.0)).any(axis=1)))
