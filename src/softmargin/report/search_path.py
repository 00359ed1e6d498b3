"""The section of a report about the search that chose a model's parameters: score and support vectors against C."""

from typing import Any

import numpy as np

from softmargin.report.document import Block, Chart, Charts, Line, Section, Text

LINES = 6  # values of gamma that have curves of their own


def path(search: Any, model: Any) -> Section:
    """Of a search, or of a model that `softmargin tune` chose, whose file holds the points in short (`search_`)."""
    intro = "How the score of rows that were held out, and the size of the model, change with the parameters."
    found = getattr(model, "search_", None) or _points_of(search)
    title = "Score against C"
    if found is None:
        text = (
            "This model was trained for one choice of parameters, so no path is known. LinearSVCCV, SVCCV and "
            "softmargin tune search for C; the report of such a model shows the path here."
        )
        return Section("path", title, intro, [Text(text)])
    params = {name: np.asarray(values, dtype=np.float64) for name, values in found["params"].items()}
    score, sizes = (np.asarray(found[name], dtype=np.float64) for name in ("score", "support_vectors"))
    x = next((name for name, values in params.items() if np.unique(values).size > 1), next(iter(params)))
    best = int(score.argmax())
    own = np.ones(score.size, dtype=bool)
    for name, values in params.items():
        value = getattr(model, name, None)  # of gamma perhaps "scale"
        own &= values == (value if isinstance(value, int | float) else np.nan)
    chosen = int(own.argmax()) if own.any() else best
    folds = f"{found['n_folds']} fold{'s' if found['n_folds'] > 1 else ''}"
    told = f"The best mean over {folds} is {score[best]:.4g} at {_said(params, best)}"
    if found["n_folds"] > 1:
        told += f", with a standard error of {found['standard_error'][best]:.2g}"
    told += "."
    if chosen != best:
        told += f" This model has {_said(params, chosen)}, with {score[chosen]:.4g}."
    elif not own.any():
        told += " This model has other parameters: it was trained anew."
    by = "gamma" if "gamma" in params and x != "gamma" else None
    at = np.all([values == values[chosen] for name, values in params.items() if name not in (x, by)], axis=0)
    at = np.broadcast_to(at, score.shape)
    grid = np.unique(params[x][at])
    more = "" if len(params) == 1 + (by is not None) else " Other parameters are those of the model."
    named: list[tuple[str, np.ndarray]] = [("", at)]
    if by is not None:
        kinds = np.unique(params[by][at])
        kept = sorted(sorted(kinds, key=lambda kind: -score[at & (params[by] == kind)].max())[:LINES])
        named = [(f"gamma {kind:.3g}", at & (params[by] == kind)) for kind in kept]
        more += "" if len(kept) == kinds.size else f" The {LINES} best of {kinds.size} values of gamma."

    def chart(name: str, title: str, values: np.ndarray, told: str) -> Chart:
        lines = []
        for label, mask in named:
            known = dict(zip(params[x][mask].tolist(), values[mask].tolist(), strict=True))
            lines.append(Line(label or name, [known.get(place) for place in grid.tolist()]))
        return Chart(title, told + more, x, name, grid.tolist(), lines, log_x=bool(grid[0] > 0.0))

    charts = [chart(found["measure"].replace("_", " "), "Score", score, told)]
    if sizes.any():
        told = "The most in any fold: what a kernel model stores, and the rows that any other depends on."
        charts.append(chart("support vectors", "Support vectors", sizes, told))
    blocks: list[Block] = [Charts(charts)]
    return Section("path", title if x == "C" else f"Score against {x}", intro, blocks)


def _said(params: dict[str, np.ndarray], k: int) -> str:
    return ", ".join(f"{name} = {values[k]:.3g}" for name, values in params.items())


def _points_of(search: Any) -> dict[str, Any] | None:
    """A `LinearSVCCV` or `SVCCV` in the form that a model file holds."""
    if not hasattr(search, "scores_") or not hasattr(search, "Cs_"):
        return None
    Cs, gammas = np.asarray(search.Cs_, dtype=np.float64), getattr(search, "gammas_", None)
    n_folds = len(search.scores_)
    scores, sizes = (table.reshape(n_folds, -1) for table in (search.scores_, search.n_support_vectors_))
    params = {"C": np.tile(Cs, scores.shape[1] // Cs.size)}
    if gammas is not None and np.any(gammas):  # 0 stands for a kernel without gamma
        params["gamma"] = np.repeat(np.asarray(gammas, dtype=np.float64), Cs.size)
    errors = np.zeros(scores.shape[1])
    if n_folds > 1:
        errors = scores.std(axis=0, ddof=1) / np.sqrt(n_folds)
    return {
        "measure": "score",
        "n_folds": n_folds,
        "params": params,
        "score": scores.mean(axis=0),
        "standard_error": errors,
        "support_vectors": sizes.max(axis=0),
    }
