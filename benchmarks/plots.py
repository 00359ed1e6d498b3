"""The figures of the results. Matplotlib is imported here only, and draws into files, never onto a screen."""

import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# One colour and marker for each solver, in every figure; the colours are told apart by the colour-blind too. So for
# the data sets, where they are the curves.
STYLES = {
    "OCAS": ("#0072B2", "o"),
    "OCAS, C fixed": ("#56B4E9", "s"),
    "CPA": ("#D55E00", "^"),
    "OCAS, bound": ("#56B4E9", ","),
    "CPA, bound": ("#E69F00", ","),
    "SVM-light": ("#7F7F7F", "*"),
    "LIBSVM": ("#999933", "h"),
    "SGD": ("#009E73", "v"),
    "Pegasos": ("#CC79A7", "D"),
    "LIBLINEAR": ("#000000", "x"),
    "SGDClassifier": ("#E69F00", "P"),
    "ccat": ("#0072B2", "o"),
    "c11": ("#56B4E9", "s"),
    "covertype 1": ("#D55E00", "^"),
    "bio": ("#009E73", "v"),
    "a9a": ("#CC79A7", "D"),
    "w8a": ("#E69F00", "P"),
    "real targets": ("#0072B2", "o"),
    "two ranks": ("#D55E00", "^"),
}


@dataclass(frozen=True)
class Panel:
    """One set of axes: curves by solver or data set, each (x, y), and lines with their labels."""

    title: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    vertical: tuple[float, str] | None = None
    horizontal: tuple[float, str] | None = None
    guide: tuple[Sequence[float], Sequence[float], str] | None = None
    y_label: str = ""  # in place of that of the figure
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None  # of x and y, to compare panels


@dataclass(frozen=True)
class Duel:
    """One line of a race: the seconds of ours and of the best rival, which would have needed longer if `is_open`."""

    name: str
    ours: float
    rival: float
    is_open: bool


def race(panels: Mapping[str, Sequence[Duel]], rival: str) -> bytes:
    """Panels side by side; in each a line for every problem, from our time to the rival's. The bytes of a PNG."""
    from matplotlib.figure import Figure

    height = 0.26 * max(len(duels) for duels in panels.values()) + 1.3
    figure = Figure(figsize=(4.6 * len(panels) + 0.6, height), dpi=100, layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, sharex=True)[0]
    for (title, duels), ax in zip(panels.items(), axes, strict=True):
        for k, duel in enumerate(duels):
            ax.plot([duel.ours, duel.rival], [k, k], color="0.75", linewidth=2, zorder=1)
        places = range(len(duels))
        handles = [ax.scatter([duel.ours for duel in duels], places, color=STYLES["OCAS"][0], s=30, zorder=3)]
        for marker, is_open in (("o", False), (">", True)):
            chosen = [k for k in places if duels[k].is_open == is_open]
            colour = STYLES["CPA"][0]
            handles.append(
                ax.scatter([duels[k].rival for k in chosen], chosen, color=colour, s=30, marker=marker, zorder=2)
            )
        ax.set_yticks(list(places), [duel.name for duel in duels], fontsize="small")
        ax.invert_yaxis()
        ax.set_xscale("log")
        ax.set_xlabel("seconds of the whole fit")
        ax.set_title(title, fontsize="medium")
        ax.grid(True, axis="x", alpha=0.25, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    texts = ["softmargin, two threads, to a proven gap of 0.1 %", rival, f"{rival}, not there yet"]
    figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return _png(figure)


def log_log(panels: Sequence[Panel], x_label: str, y_label: str) -> bytes:
    """Panels side by side, two in a row, on logarithmic axes with one legend below; the bytes of a PNG."""
    from matplotlib.figure import Figure

    n_columns = min(2, len(panels))
    n_rows = -(-len(panels) // n_columns)
    figure = Figure(figsize=(4.8 * n_columns + 0.6, 3.7 * n_rows + 0.5), dpi=100, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    handles = {}
    for panel, ax in zip(panels, axes, strict=False):
        handles |= _draw(panel, ax)
        ax.set_xlabel(x_label)
        ax.set_ylabel(panel.y_label or y_label)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    ordered = [name for name in STYLES if name in handles]
    shown = [handles[name] for name in ordered]
    figure.legend(shown, ordered, loc="outside lower center", ncols=min(len(shown), 3 * n_columns), frameon=False)
    return _png(figure)


def _png(figure) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    out = io.BytesIO()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    image.quantize(64).save(out, format="PNG", optimize=True)  # a quarter of the bytes
    return out.getvalue()


def write(path: Path, png: bytes) -> None:
    """All of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as out:
        out.write(png)
    os.chmod(out.name, 0o644)
    os.replace(out.name, path)


def _draw(panel: Panel, ax) -> dict:
    handles = {}
    for name, (x, y) in panel.curves.items():
        colour, marker = STYLES[name]
        step = max(1, len(x) // 8)
        (handles[name],) = ax.plot(x, y, color=colour, marker=marker, markevery=step, markersize=5, linewidth=1.4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_title(panel.title, fontsize="medium")
    ax.grid(True, alpha=0.25, linewidth=0.6)
    if panel.limits:
        ax.set_xlim(panel.limits[0])
        ax.set_ylim(panel.limits[1])
    small = {"fontsize": "small", "color": "0.35"}
    if panel.guide:
        x, y, text = panel.guide
        ax.plot(x, y, color="0.35", linestyle="--", linewidth=1)
        middle = (x[0] * x[-1]) ** 0.5, (y[0] * y[-1]) ** 0.5
        rises = y[-1] > y[0]
        place = {"xytext": (5, -5), "va": "top"} if rises else {"xytext": (5, 3), "va": "bottom"}
        ax.annotate(text, middle, textcoords="offset points", **place, **small)
    if panel.vertical:
        place, text = panel.vertical
        ax.axvline(place, color="0.35", linestyle="--", linewidth=1)
        ax.annotate(
            text,
            (place, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            va="top",
            textcoords="offset points",
            **small,
        )
    if panel.horizontal:
        place, text = panel.horizontal
        ax.axhline(place, color="0.35", linestyle=":", linewidth=1)
        ax.annotate(
            text,
            (0.01, place),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            va="bottom",
            textcoords="offset points",
            **small,
        )
    return handles
