"""Files that are written whole or not at all, what JSON cannot hold, and curves with few points."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

CURVE, MOST_POINTS = "curve_", 200  # keys of a row that begin so are the coordinates of one curve


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(plain(content), indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """All of it or nothing: a temporary file beside it, then a rename."""
    number, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(number, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def plain(value: Any) -> Any:
    """For JSON: NumPy scalars as Python numbers, nan as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def thinned(row: Mapping[str, Any], most: int = MOST_POINTS) -> dict[str, Any]:
    """The row with at most so many points of its curve: the first, the last, the extremes, and more at the beginning.

    Coordinates of equal length are thinned together, so that they stay those of the same points.
    """
    curves = {key: values for key, values in row.items() if key.startswith(CURVE) and len(values) > most}
    kept = dict(row)
    for length in {len(values) for values in curves.values()}:
        together = {key: values for key, values in curves.items() if len(values) == length}
        index = _kept_points(list(together.values()), most)
        kept |= {key: [values[k] for k in index] for key, values in together.items()}
    return kept


def _kept_points(curves: Sequence[Sequence[float]], most: int) -> list[int]:
    n = len(curves[0])
    found = {0, n - 1}
    for values in curves:
        known = np.array(values, dtype=float)  # None becomes nan
        if not np.isnan(known).all():
            found |= {int(np.nanargmin(known)), int(np.nanargmax(known))}
    rest = (most - len(found)) // 2
    found |= {int(k) for k in np.geomspace(1, n, rest) - 1} | {int(k) for k in np.linspace(0, n - 1, rest)}
    return sorted(found)
