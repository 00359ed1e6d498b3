"""Scores of a novelty detector as a picture."""

from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError
from softmargin.report.drawing import axes, last_step, legend_above, whole_numbers

COLORS = {"outliers": "C3", "inliers": "0.72"}
# Colours for as many labels as can be told apart.
MOST_LABELS = 10
# The legend has two columns if no text in it is longer than this.
LONGEST_IN_COLUMNS = 36


class NoveltyDisplay:
    """Histogram of the scores of rows, with the threshold below which a row is an outlier.

    Without labels the rows on the two sides of the threshold have two colours. With labels there is a colour for each
    label, and the legend says which share of its rows are outliers: that shows how well rows that are known to be novel
    are told from the others.

    Create it with `from_estimator` or `from_predictions`. After `plot` `ax_` holds the axes, `figure_` the figure, and
    `counts_` the number of rows of each colour.

    Parameters
    ----------
    scores : array of the scores of the rows, large for rows like those of training
    offset : number, the threshold
    labels : array with a label for each row, or None
    """

    def __init__(self, *, scores: Any, offset: Any, labels: Any = None) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        if self.scores.ndim != 1:
            raise SoftmarginError(
                f"scores must be a vector with one entry a row, but has the shape {self.scores.shape}."
            )
        if np.size(offset) != 1:
            raise SoftmarginError(f"offset must be one number, but has {np.size(offset)} entries.")
        self.offset = float(np.ravel(offset)[0])
        self.labels = None if labels is None else np.ravel(labels)
        if self.labels is not None:
            if self.labels.shape != self.scores.shape:
                raise SoftmarginError(f"there are {self.labels.size} labels for {self.scores.size} scores.")
            n_labels = len(np.unique(self.labels))
            if n_labels > MOST_LABELS:
                raise SoftmarginError(
                    f"there are {n_labels} different labels: at most {MOST_LABELS} can be told apart."
                )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, bins: Any = 50, ax: Any = None) -> Any:
        """Plot the scores that a fitted detector gives to the rows of X.

        Parameters
        ----------
        estimator : a fitted `OneClassSVM` or `LinearOneClassSVM`, a pipeline that ends with one, or any other detector
            with `score_samples` and `offset_`, such as scikit-learn's
        X : rows, those of training or others
        y : labels of the rows, each of which gets a colour; default: the two sides of the threshold do
        bins : number of bins, their edges, or the name of a rule of NumPy's, such as "auto"
        ax : matplotlib axes, default: a new figure
        """
        model = last_step(estimator)
        if not hasattr(model, "offset_"):
            raise SoftmarginError(
                f"{type(model).__name__} has no offset_: give a fitted novelty detector, such as "
                "softmargin.OneClassSVM."
            )
        return cls.from_predictions(estimator.score_samples(X), model.offset_, y, bins=bins, ax=ax)

    @classmethod
    def from_predictions(cls, scores: Any, offset: Any, labels: Any = None, *, bins: Any = 50, ax: Any = None) -> Any:
        """Plot scores that are known: the parameters are those of the class; `bins`, `ax`: see `from_estimator`."""
        return cls(scores=scores, offset=offset, labels=labels).plot(bins=bins, ax=ax)

    def plot(self, *, bins: Any = 50, ax: Any = None) -> "NoveltyDisplay":
        """Draw; see `from_estimator`."""
        self.ax_, self.figure_ = axes(ax)
        kinds, colors = self._kinds()
        self.counts_ = {name: int(np.count_nonzero(kind)) for name, kind in kinds.items()}
        self.ax_.hist(
            [self.scores[kind] for kind in kinds.values()],
            bins=bins if isinstance(bins, str) or np.ndim(bins) else self._edges(bins),
            stacked=True,
            color=colors,
            label=[self._described(name, kind) for name, kind in kinds.items()],
        )
        self.ax_.axvline(self.offset, color="0.15", linestyle="--", linewidth=1.0, label=f"offset {self.offset:.4g}")
        self.ax_.set_xlabel("score (outliers are left of the offset)")
        self.ax_.set_ylabel("rows")
        self.ax_.grid(True, axis="y", alpha=0.3)
        self.ax_.set_axisbelow(True)
        whole_numbers(self.ax_.yaxis)
        legend_above(self.ax_, self._legend_columns(kinds))
        return self

    def _kinds(self) -> tuple[dict[str, np.ndarray], list[str]]:
        """Which rows belong together, by name, and the colours of the groups."""
        if self.labels is None:
            is_outlier = self.scores < self.offset
            return {"outliers": is_outlier, "inliers": ~is_outlier}, list(COLORS.values())
        labels = np.unique(self.labels)
        return {str(label): self.labels == label for label in labels}, [f"C{k}" for k in range(len(labels))]

    def _described(self, name: str, kind: np.ndarray) -> str:
        n_rows = int(np.count_nonzero(kind))
        if self.labels is None:
            return f"{name}: {n_rows:,}"
        share = np.count_nonzero(self.scores[kind] < self.offset) / max(n_rows, 1)
        return f"{name}: {n_rows:,} rows, {share:.0%} outliers"

    def _legend_columns(self, kinds: dict[str, np.ndarray]) -> int:
        """As many as fit above the axes; texts with shares of outliers are long."""
        if self.labels is None:
            return 3
        longest = max((len(self._described(name, kind)) for name, kind in kinds.items()), default=0)
        return 2 if longest <= LONGEST_IN_COLUMNS else 1

    def _edges(self, bins: Any) -> np.ndarray:
        """Edges of equal bins over all scores, one of them at the offset, so that no bin has rows of both sides."""
        if int(bins) != bins or bins < 1:
            raise SoftmarginError(f"bins={bins!r} must be a positive integer, or the edges of the bins.")
        lowest = float(np.min(self.scores, initial=self.offset))
        highest = float(np.max(self.scores, initial=self.offset))
        width = (highest - lowest) / int(bins) or 1.0 / int(bins)
        below, above = np.ceil((self.offset - lowest) / width), np.floor((highest - self.offset) / width) + 1
        return self.offset + width * np.arange(-below, above + 1)
