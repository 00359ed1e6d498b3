"""Where the pictures get matplotlib from, which is an extra."""

from typing import Any

from softmargin.core.errors import MissingPackageError


def pyplot() -> Any:
    """`matplotlib.pyplot`, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise  # it is there, but something that it needs is not
        raise MissingPackageError('Pictures need matplotlib: pip install "softmargin[plot]".') from None
    return plt


def axes(ax: Any, figsize: tuple[float, float] = (6.4, 4.0)) -> tuple[Any, Any]:
    """The axes to draw on and their figure: those that were given, or new ones."""
    if ax is not None:
        return ax, ax.figure
    figure, ax = pyplot().subplots(figsize=figsize, layout="constrained")
    return ax, figure


def last_step(estimator: Any) -> Any:
    """The model at the end of a pipeline, which knows its own parameters; any other estimator as it is."""
    steps = getattr(estimator, "steps", None)
    return last_step(steps[-1][1]) if steps else estimator


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers only, on an axis that counts something."""
    axis.get_major_locator().set_params(integer=True)


def legend_above(ax: Any, n_columns: int) -> Any:
    """A legend above the axes, where it hides nothing."""
    return ax.legend(frameon=False, ncols=n_columns, loc="lower center", bbox_to_anchor=(0.5, 1.0))
