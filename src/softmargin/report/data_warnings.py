"""What is suspicious about the data, found in bounded time.

At most ENTRIES values are looked at: of larger data evenly spaced rows, and the report says how many. Dense and CSR
rows are summed up in the same way, column by column, with the zeros of CSR rows added to what is stored.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from softmargin.report.document import Note, number

ENTRIES = 10_000_000
NAMED = 5  # columns that a warning names
# Columns whose ranges differ by more than this factor make training slow and weights incomparable.
WILD_SCALES = 1e3
RARE_CLASS = 0.05  # of the rows; a class below it is called rare
ID_ROWS, ID_SHARE = 50, 0.95  # a column of at least so many rows, of which such a share is different, looks like an id
LEFT_ERRORS = 0.1  # a column determines the label if it leaves this share of the errors that guessing makes ...
ERROR_RATE = 0.01  # ... and errs on at most this share of the rows
CLASSES = 20  # with more classes, no column is asked whether it determines them


def data_notes(X: Any, y: Any, names: Sequence[str], *, has_classes: bool, is_scaled: bool = False) -> list[Note]:
    """A note for each kind of trouble; one that nothing was found, if so. `is_scaled`: the model scales them itself."""
    rows, targets, notes = _examined(X, y)
    every, columns = rows, _columns(rows)
    whole = np.isfinite(columns["low"]) & np.isfinite(columns["high"])
    if not whole.all():
        notes.append(_holes(np.flatnonzero(~whole), names))
        rows, columns = rows[:, whole], {name: values[whole] for name, values in columns.items()}
        names = [name for name, good in zip(names, whole.tolist(), strict=True) if good]
    notes += _scales(columns, names, is_scaled)
    if targets is not None and has_classes:
        codes = np.unique(targets, return_inverse=True)[1]
        notes += [*_balance(targets), *_contradictions(every, codes), *_determining(rows, columns, codes, names)]
    notes += _ids(rows, columns, names)
    if not any(note.level != "good" for note in notes):
        notes.append(Note("good", "Scales, constant columns, contradicting rows, balance and ids: nothing suspicious."))
    return notes


def _examined(X: Any, y: Any) -> tuple[Any, np.ndarray | None, list[Note]]:
    n = X.shape[0]
    entries = X.nnz if hasattr(X, "indptr") else n * X.shape[1]
    step = max(1, -(-entries // ENTRIES))
    targets = None if y is None else np.asarray(y)
    if step == 1:
        return X, targets, []
    told = f"The warnings are about {number(-(-n // step))} evenly spaced of {number(n)} rows, to save time."
    return X[::step], None if targets is None else targets[::step], [Note("good", told)]


def _columns(X: Any) -> dict[str, np.ndarray]:
    """Least and largest value and number of nonzero values of each column."""
    n, d = X.shape
    if not hasattr(X, "indptr"):
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            low, high = (extreme(X, axis=0).astype(np.float64) for extreme in (np.min, np.max))
        return {"low": low, "high": high, "nonzero": np.count_nonzero(X, axis=0)}
    values, where = np.asarray(X.data, dtype=np.float64), X.indices
    stored = np.bincount(where, minlength=d)
    start = np.where(stored < n, 0.0, np.inf)  # a column that is not stored in full holds a zero
    low, high = start.copy(), -start
    np.minimum.at(low, where, values)
    np.maximum.at(high, where, values)
    return {
        "low": low,
        "high": high,
        "nonzero": np.bincount(where[values != 0.0], minlength=d),
    }


def _holes(found: np.ndarray, names: Sequence[str]) -> Note:
    return Note(
        "bad",
        f"{_many(found.size, 'column has', 'columns have')} values that are not finite (NaN or infinity): "
        f"{_named(found, names)}. Predictions for such rows rest on what the pipeline puts in their place.",
    )


def _scales(columns: dict[str, np.ndarray], names: Sequence[str], is_scaled: bool) -> Iterator[Note]:
    is_constant = columns["low"] == columns["high"]
    if is_constant.any():
        found = np.flatnonzero(is_constant)
        yield Note(
            "look",
            f"{_many(found.size, 'column has', 'columns have')} the same value in every row, which tells nothing "
            f"apart: {_named(found, names)}. Leave {'it' if found.size == 1 else 'them'} out.",
        )
    used = np.flatnonzero(~is_constant)
    span = (columns["high"] - columns["low"])[used]
    if not is_scaled and used.size > 1 and span.max() > WILD_SCALES * span.min():
        small, large = np.argmin(span), np.argmax(span)
        widest, narrowest = short(names[used[large]]), short(names[used[small]])
        yield Note(
            "bad",
            f"Columns are on wild scales: the values of {widest} span {number(float(span[large]))}, those of "
            f"{narrowest} span {number(float(span[small]))}. The margin is measured in these units, so large columns "
            "decide alone and training takes longer. Scale the columns first.",
        )


def _balance(y: np.ndarray) -> Iterator[Note]:
    labels, counts = np.unique(y, return_counts=True)
    rare = np.flatnonzero(counts < RARE_CLASS * counts.sum() * min(1.0, 2.0 / max(labels.size, 1)))
    if rare.size:
        least = np.argmin(counts)
        share = f"{number(int(counts[least]))} of {number(int(counts.sum()))} rows"
        yield Note(
            "look",
            f"Classes are out of balance: {_many(rare.size, 'class is', 'classes are')} rare; class "
            f"{short(labels[least])} has {share}. Accuracy says little then: look at each class, and consider "
            'class_weight="balanced".',
        )


def _contradictions(X: Any, codes: np.ndarray) -> Iterator[Note]:
    """Equal rows with different labels."""
    order = np.lexsort((codes, hashes := row_hashes(X)))
    hashes, codes = hashes[order], codes[order]
    first = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    last = np.concatenate([first[1:], [hashes.size]]) - 1
    bad = codes[first] != codes[last]
    if bad.any():
        n_rows = int((last - first + 1)[bad].sum())
        yield Note(
            "bad",
            f"{number(n_rows)} rows have a duplicate with another label. No model can be right about all of them: look "
            "for wrong labels, or for a column that is missing.",
        )


def row_hashes(X: Any) -> np.ndarray:
    """64 bits for each row; equal rows have equal ones, whether zeros are stored or not."""
    columns = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if not hasattr(X, "indptr"):
        step = max(1, 1_000_000 // max(1, X.shape[1]))
        parts = [X[k : k + step] for k in range(0, X.shape[0], step)]
        return np.concatenate([(_bits(part) * columns).sum(axis=1, dtype=np.uint64) for part in parts])
    sums = np.concatenate([[np.uint64(0)], np.cumsum(_bits(X.data) * columns[X.indices], dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]  # modulo 2^64, and so exact


def _bits(values: Any) -> np.ndarray:
    """The bits of float64 values, mixed; zero for both zeros."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    return np.where(values == 0.0, np.uint64(0), _mixed(values.view(np.uint64)))


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of the SplitMix64 generator: every bit of the result depends on every bit of x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _determining(X: Any, columns: dict[str, np.ndarray], codes: np.ndarray, names: Sequence[str]) -> Iterator[Note]:
    """Columns that alone tell the label."""
    counts = np.bincount(codes)
    if counts.size < 2 or counts.size > CLASSES:
        return
    most = min(LEFT_ERRORS * (codes.size - counts.max()), ERROR_RATE * codes.size)
    errors = _sparse_errors(X, codes, counts) if hasattr(X, "indptr") else _dense_errors(X, columns, codes, counts.size)
    found = np.flatnonzero(errors <= most)
    if found.size:
        yield Note(
            "bad",
            f"{_many(found.size, 'column tells', 'columns tell')} the label nearly alone: {_named(found, names)}. If "
            "it is not known at the time of a prediction, the model has learned from the answer.",
        )


def _dense_errors(X: Any, columns: dict[str, np.ndarray], codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Of each column: the rows outside the majority of their value, plus the changes of majority beyond one a class."""
    errors = np.full(X.shape[1], np.inf)
    for k in np.flatnonzero(columns["low"] < columns["high"]):
        _, group = np.unique(X[:, k], return_inverse=True)
        table = np.bincount(group * n_classes + codes, minlength=(group.max() + 1) * n_classes).reshape(-1, n_classes)
        changes = np.count_nonzero(np.diff(table.argmax(axis=1)))
        errors[k] = codes.size - table.max(axis=1).sum() + max(0, changes - (n_classes - 1))
    return errors


def _sparse_errors(X: Any, codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of each column: the rows that are guessed wrong by whether the column is zero."""
    n_classes = counts.size
    stored = X.data != 0.0
    of_entries = np.repeat(codes, np.diff(X.indptr))[stored]
    where = X.indices[stored].astype(np.int64) * n_classes + of_entries
    inside = np.bincount(where, minlength=X.shape[1] * n_classes).reshape(-1, n_classes)
    return codes.size - inside.max(axis=1) - (counts - inside).max(axis=1)


def _ids(X: Any, columns: dict[str, np.ndarray], names: Sequence[str]) -> Iterator[Note]:
    n = X.shape[0]
    if n < ID_ROWS:
        return
    found = []
    for k in np.flatnonzero((columns["nonzero"] >= n - 1) & (columns["high"] - columns["low"] >= ID_SHARE * n - 1)):
        values = X[:, [k]].toarray().ravel() if hasattr(X, "indptr") else X[:, k]
        if np.all(values == np.rint(values)) and np.unique(values).size >= ID_SHARE * n:
            found.append(k)
        if len(found) > NAMED:
            break
    if found:
        yield Note(
            "bad",
            f"{_named(np.array(found), names)}: whole numbers that differ in nearly every row. If these are ids, leave "
            "them out: a model learns them by heart, and they mean nothing for new rows.",
        )


def _many(n: int, one: str, more: str) -> str:
    return f"{number(n)} {one if n == 1 else more}"


def _named(found: np.ndarray, names: Sequence[str]) -> str:
    shown = ", ".join(short(names[k]) for k in found[:NAMED])
    return shown + (" and others" if found.size > NAMED else "")


def short(name: Any, limit: int = 60) -> str:
    """A name of a stranger, cut where it is very long."""
    text = str(name)
    return text if len(text) <= limit else text[: limit - 1] + "…"
