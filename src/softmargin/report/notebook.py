"""What a fitted model shows of itself in the cell of a notebook, above scikit-learn's diagram."""

import html
from typing import Any

import numpy as np

from softmargin.report import training


def summary_html(model: Any) -> str:
    """Status, gap and a small picture of how the gap fell, without any script: for the cell of a notebook."""
    fitted = getattr(model, "best_estimator_", model)
    if not hasattr(fitted, "certificate_"):
        return ""
    _, sentence = training.verdict(fitted)
    status = getattr(fitted, "status_", None)
    head = "not known" if status is None else status.name
    gap = fitted.certificate_.relative_gap
    return (
        '<div style="font-family: system-ui, sans-serif; margin: .4em 0; padding: .5em .8em; border: 1px solid #8888; '
        f'border-radius: 6px; max-width: 46em"><strong>{html.escape(head)}</strong>, relative gap {gap:.3g}'
        f"{_small_picture(fitted)}<br><small>{html.escape(sentence)}</small></div>"
    )


def _small_picture(fitted: Any) -> str:
    """The relative gap on a log scale over the iterations, as a row of bars: notebooks run no scripts of strangers."""
    found = getattr(fitted, "trace_", None)
    traces = [
        trace for trace in (found if isinstance(found, list) else [found]) if trace is not None and len(trace) > 1
    ]
    if not traces:
        return ""
    trace = max(traces, key=len)
    gaps = np.array([trace[k].relative_gap for k in training.spread(len(trace), 40)])
    if not np.isfinite(gaps).any():
        return ""
    logs = np.log10(np.clip(np.where(np.isfinite(gaps), gaps, np.nanmax(gaps[np.isfinite(gaps)])), 1e-16, 1e16))
    low, high = logs.min(), logs.max()
    heights = 2 + 26 * (logs - low) / (high - low if high > low else 1.0)
    style = "display: inline-block; width: 4px; margin-right: 1px; background: #3b82c4; height:"
    bars = "".join(f'<span style="{style} {height:.0f}px"></span>' for height in heights)
    told = f"The relative gap fell from {gaps[0]:.2g} to {gaps[-1]:.2g} in {len(trace)} measurements."
    style = "height: 30px; margin: .3em 0; line-height: 0"
    return f'<div role="img" aria-label="{told}" title="{told}" style="{style}">{bars}</div>'
