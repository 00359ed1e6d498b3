"""A report about a fitted model and data: the sections in their order, and the file that holds them."""

import hashlib
import os
import platform
from typing import Any

import numpy as np

import softmargin
from softmargin.core.errors import SoftmarginError
from softmargin.io.atomic import replacing
from softmargin.metrics.measures import Case
from softmargin.report import measured, training
from softmargin.report.as_html import as_html
from softmargin.report.as_markdown import as_markdown
from softmargin.report.data_warnings import data_notes, short
from softmargin.report.document import (
    Block,
    Chart,
    Charts,
    Code,
    Document,
    Fact,
    Facts,
    Line,
    Note,
    Section,
    Table,
    Text,
    number,
)
from softmargin.report.drawing import last_step
from softmargin.report.margins import COLORS, MarginDisplay
from softmargin.report.search_path import path
from softmargin.tasks.records import task_behind

WEIGHTS = 25  # features that the table of weights holds
MARGIN_BINS = 41
SAMPLE = 100_000  # rows that the spread of the heaviest features is taken from
PARAMETER_TEXT = 120


class Report:
    """A report that `model.report(X, y)` made. In a notebook it shows itself.

    Attributes
    ----------
    document : the sections, as data
    """

    def __init__(self, document: Document) -> None:
        self.document = document

    @property
    def html(self) -> str:
        """One page that needs nothing else."""
        return as_html(self.document)

    @property
    def markdown(self) -> str:
        """The same as Markdown, with tables in the place of charts."""
        return as_markdown(self.document)

    def save(self, path: Any, *, overwrite: bool = False) -> "Report":
        """Write an HTML page, or Markdown if the name ends in .md; `overwrite` replaces a file that is there."""
        check_free(path, overwrite=overwrite)
        text = self.markdown if os.fsdecode(path).lower().endswith(".md") else self.html
        with replacing(path) as file:
            file.write(text.encode())
        return self

    def _repr_html_(self) -> str:
        inside = self.html.replace("&", "&amp;").replace('"', "&quot;")
        style = "width: 100%; height: 40rem; border: 1px solid #8888"
        return f'<iframe title="softmargin report" style="{style}" sandbox="allow-scripts" srcdoc="{inside}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.document.title!r}: {self.document.verdict})"


def check_free(path: Any, *, overwrite: bool) -> None:
    """Refuse a path where something is already."""
    if os.path.isdir(path):
        raise SoftmarginError(f"{os.fsdecode(path)} is a folder: name a file to write.")
    if not overwrite and os.path.lexists(path):
        raise SoftmarginError(
            f"{os.fsdecode(path)} is there already: name another file, or replace it with overwrite=True."
        )


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    feature_names: Any = None,
    command: str | None = None,
) -> Report:
    """A report about a fitted model, with these rows to measure it on and to look for trouble in.

    Parameters
    ----------
    model : a fitted estimator of softmargin, or a pipeline that ends in one
    X, y : rows and labels. If they are those of the training, in the same order, the margins tell which rows are
        support vectors; measures of other rows say how good the model is.
    sample_weight : the weights of the training, if any
    qid : for rankings, the query of each row
    feature_names : names of the columns of X, default: those that the model or X knows
    command : how the report was asked for, to stand in its last section
    """
    core, last = model, last_step(model)  # the core is the model without a calibration around it
    if calibrated := getattr(last, "calibrated_classifiers_", None):
        inner = calibrated[0].estimator
        core = inner if last is model else type(model)([*model.steps[:-1], ("model", inner)])
        last = last_step(inner)
    fitted = getattr(last, "best_estimator_", last)
    if not hasattr(fitted, "certificate_"):
        raise SoftmarginError(
            f"this {type(fitted).__name__} is not fitted yet, or no model of softmargin: call fit first."
        )
    names = _names(model, X, feature_names)
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise SoftmarginError("there are no rows to report on: give at least one row of data, with its label.")
    targets = None if y is None else np.ravel(np.asarray(y))
    if targets is not None and targets.size != rows.shape[0]:
        raise SoftmarginError(f"there are {targets.size} labels for {rows.shape[0]} rows: give one for each row.")
    _check_finite(rows, targets, has_steps=hasattr(core, "steps"))
    names = names if len(names) == rows.shape[1] else _numbers(fitted, rows.shape[1])
    level, sentence = training.verdict(fitted)
    sections = [
        training.convergence(fitted),
        _margins(core, fitted, X, targets, sample_weight),
        _weights(core, fitted, rows, names),
        path(last, fitted),
        _measures(model, core, fitted, X, targets, qid),
        _data(core, fitted, rows, targets, names),
        training.cost(fitted, _n_bytes(rows)),
        _repeat(model, fitted, rows, targets, command, has_queries=qid is not None),
    ]
    kind = type(last).__name__
    subtitle = f"{number(rows.shape[0])} rows, {number(rows.shape[1])} features"
    if hasattr(fitted, "classes_"):
        subtitle += f", {number(len(fitted.classes_))} classes"
    return Report(Document(f"{kind} model", subtitle, level, sentence, sections))


def _check_finite(rows: Any, y: np.ndarray | None, *, has_steps: bool) -> None:
    """Refuse NaN and infinity, but in rows that a pipeline may fill before they come to the model."""
    values = rows.data if hasattr(rows, "indptr") else rows
    if not has_steps and values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.argmin(np.isfinite(values)) if hasattr(rows, "indptr") else np.argmin(np.isfinite(values).all(axis=1))
        row = int(np.searchsorted(rows.indptr, bad, "right")) if hasattr(rows, "indptr") else int(bad) + 1
        raise SoftmarginError(
            f"Input X contains NaN or infinity, first in row {row}: leave such rows out, or fill them before."
        )
    if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y))) + 1
        raise SoftmarginError(f"Input y contains NaN or infinity, first in row {row}: leave such rows out.")


def _names(model: Any, X: Any, given: Any) -> list[str]:
    known = (given, getattr(model, "feature_names_in_", None), getattr(X, "columns", None))
    return [str(name) for name in next((found for found in known if found is not None), ())]


def _numbers(fitted: Any, n: int) -> list[str]:
    """In the place of names: numbers that begin as in the svmlight file of the training, if that is known."""
    first = getattr(fitted, "index_base_", 0)
    return [f"feature {k}" for k in range(first, first + n)]


def _margins(model: Any, fitted: Any, X: Any, y: Any, sample_weight: Any) -> Section:
    intro = (
        "How far rows are on the right side of the boundary. Below 0 a row is predicted wrong; between 0 and 1 it is "
        "right but inside the margin; support vectors are the rows that hold the boundary in place."
    )
    blocks: list[Block] = []
    counts = _support_facts(fitted)
    if counts:
        blocks.append(Facts(counts))
    classes = getattr(fitted, "classes_", None)
    if classes is None or not hasattr(model, "decision_function"):
        intro = "Support vectors are the rows that hold the model in place; others could be left out without a change."
    if classes is None or y is None or not hasattr(model, "decision_function"):
        if not counts:
            blocks.append(Text("Margins are those of models that learn classes."))
        return Section("margins", "Margins and support vectors", intro, blocks)
    try:
        Z = model[:-1].transform(X) if hasattr(model, "steps") else X
        display = MarginDisplay.of_training_rows(fitted, Z, y, sample_weight=sample_weight)
    except SoftmarginError:
        chart, text = _margins_of_other_rows(model, classes, X, y)
        blocks += [Charts([chart]), Text(text)] if chart is not None else [Text(text)]
    else:
        kinds = display.kinds()
        middles, bars = measured.histogram([display.margins[kind] for kind in kinds], MARGIN_BINS)
        lines = [
            Line(name, values, "bars", muted=name == "not support vectors")
            for name, values in zip(COLORS, bars, strict=True)
        ]
        told = ", ".join(f"{number(int(kind.sum()))} {name}" for kind, name in zip(kinds, COLORS, strict=True))
        blocks.append(Charts([Chart("Margins of the training rows", f"{told}.", "margin", "rows", middles, lines)]))
        blocks.append(
            Text(
                "Free support vectors lie on the margin; bounded ones inside it or beyond, where each pulls with all "
                "the weight that C allows. All other rows could be left out without any change to the model."
            )
        )
    return Section("margins", "Margins and support vectors", intro, blocks)


def _margins_of_other_rows(model: Any, classes: np.ndarray, X: Any, y: np.ndarray) -> tuple[Chart | None, str]:
    scores = np.asarray(model.decision_function(X))
    places = {label: k for k, label in enumerate(classes.tolist())}
    codes = np.array([places.get(label, -1) for label in y.tolist()])
    known = codes >= 0
    why = "These are not the training rows, or there are more than two classes: support vectors are not marked."
    if not known.any() or (scores.ndim == 2 and scores.shape[1] != len(classes)):
        return None, why
    if scores.ndim == 1:
        margins = np.where(codes == 1, scores, -scores)[known]
    else:
        own = np.arange(len(codes)), np.maximum(codes, 0)
        true, others = scores[own].copy(), scores.astype(float)
        others[own] = -np.inf
        margins = (true - others.max(axis=1))[known]
    middles, (bars,) = measured.histogram([margins], MARGIN_BINS)
    n_wrong = int(np.count_nonzero(margins < 0))
    what = "y f(x)" if scores.ndim == 1 else "the score of the true class minus the best of the others"
    told = f"Here a margin is {what}. {number(n_wrong)} of {number(margins.size)} rows lie below 0."
    return Chart("Margins", told, "margin", "rows", middles, [Line("rows", bars, "bars")]), why


def _support_facts(fitted: Any) -> list[Fact]:
    if hasattr(fitted, "support_vectors_") or hasattr(fitted, "support_"):
        n = fitted.dual_coef_.shape[1]
    elif isinstance(dual := getattr(fitted, "dual_", None), np.ndarray):
        n = int(np.count_nonzero(np.abs(dual).reshape(len(dual), -1).max(axis=1)))
    else:
        return []
    facts = [Fact("Support vectors", number(n), "Training rows that the model depends on.")]
    free, bounded = (np.ravel(getattr(fitted, name, ())) for name in ("n_free_", "n_bounded_"))
    if free.size == bounded.size == 1:  # of several pairs of classes a row may be both
        facts += [
            Fact("Free", number(int(free[0])), "Of these, those on the edge of the margin or the tube."),
            Fact("Bounded", number(int(bounded[0])), "Those beyond it, which pull with all their weight."),
        ]
    return facts


def _weights(model: Any, fitted: Any, rows: Any, names: list[str]) -> Section:
    intro = "Which features the model looks at, and to which side they push."
    coef = None if getattr(fitted, "kernel", "linear") != "linear" else getattr(fitted, "coef_", None)
    if coef is None:
        text = "This model has a kernel: its decision is no sum over features, so that there are no weights to show."
        return Section("weights", "Weights", intro, [Text(text)])
    coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
    same = coef.shape[1] == rows.shape[1]
    names = names if same else _numbers(fitted, coef.shape[1])
    sizes = np.abs(coef).max(axis=0)
    top = np.argsort(-sizes, kind="stable")[:WEIGHTS]
    top = top[sizes[top] > 0.0]
    which = np.abs(coef[:, top]).argmax(axis=0)
    values = coef[which, top]
    spread = np.full(top.size, np.nan)
    if same and not hasattr(model, "steps"):
        part = rows[:: max(1, rows.shape[0] // SAMPLE)][:, top]
        spread = np.std(part.toarray() if hasattr(part, "toarray") else part, axis=0, dtype=np.float64)
    classes = getattr(fitted, "classes_", None)
    has_effect = np.isfinite(spread).all() and top.size > 0
    columns = ["feature", "weight", "pushes towards"] + (["weight × spread"] if has_effect else [])
    if top.size == 0:
        return Section("weights", "Weights", intro, [Text("All weights are zero: the model looks at no feature.")])
    table = []
    for k, feature in enumerate(top):
        row = [short(names[feature]), float(values[k]), _side(classes, len(coef), int(which[k]), float(values[k]))]
        table.append(row + ([float(abs(values[k]) * spread[k])] if has_effect else []))
    used = int(np.count_nonzero(sizes))
    caption = f"The {len(table)} largest of {number(used)} weights that are not zero, of {number(sizes.size)} features."
    caveat = (
        "A weight depends on the unit of its feature: measured in metres instead of millimetres it is 1000 times as "
        "large. Compare weights only if the features are on one scale"
        + (", or compare weight × spread, the effect of a change by one standard deviation." if has_effect else ".")
        + (" Here the pipeline before the model scales them." if hasattr(model, "steps") else "")
        + " Features that are correlated share their weight."
    )
    return Section("weights", "Weights", intro, [Table(caption, columns, table), Note("look", caveat)])


def _side(classes: Any, n_machines: int, which: int, value: float) -> str:
    if classes is None:
        return "higher" if value > 0 else "lower"
    if n_machines == 1:
        return short(classes[-1] if value > 0 else classes[0])
    if n_machines == len(classes):
        return short(classes[which]) if value > 0 else f"not {short(classes[which])}"
    return "one class of a pair"


def _measures(model: Any, core: Any, fitted: Any, X: Any, y: Any, qid: Any) -> Section:
    intro = (
        "How good predictions are on the rows of this report. If the model was trained on these rows, the figures "
        "flatter it: measure on rows that it has never seen."
    )
    task = task_behind(fitted)
    if task is None or (y is None and task.target != "nothing"):
        blocks: list[Block] = [Note("look", "The data have no labels, so nothing can be measured.")]
        return Section("measures", "Measures on these data", intro, blocks)
    classes = np.array([-1, 1]) if task.target == "nothing" else getattr(fitted, "classes_", None)
    scores = None
    if hasattr(fitted, "predict_score"):
        scores = fitted.predict_score(core[:-1].transform(X) if hasattr(core, "steps") else X)
    elif classes is not None and hasattr(core, "decision_function"):
        scores = np.asarray(core.decision_function(X))
        if scores.ndim == 2 and scores.shape[1] != len(classes):
            scores = None  # a score for each pair of classes
    proba = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    case = Case(y, np.asarray(model.predict(X)), scores, classes, qid, probabilities=proba)
    try:
        blocks = measured.blocks_of(case, task.measures.load()(case))
    except SoftmarginError as error:
        blocks = [Note("bad", f"Nothing can be measured: {str(error).removesuffix('.')}.")]
    return Section("measures", "Measures on these data", intro, blocks)


def _data(core: Any, fitted: Any, rows: Any, y: Any, names: list[str]) -> Section:
    intro = "Trouble in the data that a model cannot repair. Each warning is a reason to look, not a proof."
    if getattr(fitted, "kernel", None) == "precomputed":
        notes = [Note("look", "The data are values of a kernel, so that nothing can be said about columns.")]
    elif rows.dtype.kind not in "fiub":
        notes = [Note("look", "The columns are not all numbers, so that scales are not compared.")]
    else:
        notes = data_notes(rows, y, names, has_classes=hasattr(fitted, "classes_"), is_scaled=hasattr(core, "steps"))
    return Section("data", "Warnings about the data", intro, notes)


def _repeat(model: Any, fitted: Any, rows: Any, y: Any, command: str | None, *, has_queries: bool) -> Section:
    versions = {"softmargin": softmargin.__version__, "python": platform.python_version(), "numpy": np.__version__}
    parameters = [
        [name, short(repr(value), PARAMETER_TEXT)] for name, value in sorted(fitted.get_params(deep=False).items())
    ]
    shown = short(" ".join(repr(model).split()), 2000)
    task = task_behind(fitted)
    given = "X" if task is not None and task.target == "nothing" else "X, y"
    if has_queries and task is not None and task.target == "queries":
        given += f", {model.steps[-1][0]}__qid=qid" if hasattr(model, "steps") else ", qid=qid"
    code = f"{_imports(model)}\n\nmodel = {shown}\nmodel.fit({given})"
    blocks: list[Block] = [
        Facts([Fact(name, version, "Version that wrote this report.") for name, version in versions.items()]),
        Facts(
            [
                Fact(
                    "Fingerprint of the data",
                    fingerprint(rows, y)[:16],
                    "SHA-256 of shape, values and labels: the same data give the same.",
                )
            ]
        ),
        Table("Parameters of the model", ["parameter", "value"], parameters),
        Text("The fit in Python:"),
        Code(code),
    ]
    if command is not None:
        blocks += [Text("The command that wrote this report:"), Code(command)]
    return Section("repeat", "How to repeat it", "Everything that is needed to get the same result again.", blocks)


def _imports(model: Any) -> str:
    """The lines that import what the text of a model names: its class, and those of its steps and solver."""
    names: dict[str, set[str]] = {}
    for kind in {type(part) for part in (model, *model.get_params(deep=True).values())}:
        home, *rest = kind.__module__.split(".")
        if home in {"sklearn", "softmargin"}:
            public = [part for part in rest if not part.startswith("_")] if home == "sklearn" else []
            names.setdefault(".".join([home, *public]), set()).add(kind.__name__)
    return "\n".join(f"from {home} import {', '.join(sorted(names[home]))}" for home in sorted(names))


def fingerprint(rows: Any, y: Any) -> str:
    """Identifies rows and labels, whatever file they came from."""
    digest = hashlib.sha256(repr(rows.shape).encode())
    parts = [rows.data, rows.indices, rows.indptr] if hasattr(rows, "indptr") else [rows]
    for part in (*parts, y):
        if part is not None:
            is_text = part.dtype.kind in "OU"
            digest.update(repr(part.tolist()).encode() if is_text else np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _n_bytes(rows: Any) -> int:
    parts = (rows.data, rows.indices, rows.indptr) if hasattr(rows, "indptr") else (rows,)
    return sum(part.nbytes for part in parts)
