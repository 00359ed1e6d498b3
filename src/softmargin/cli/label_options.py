"""Options whose text names labels of the data."""

import re
from typing import Any

import numpy as np

from softmargin.core.errors import SoftmarginError


def class_weights(text: str, y: np.ndarray) -> Any:
    """ "balanced", or weights as they are usually written: 1=2,-1=0.5 or 1:2 -1:0.5 or {1: 2, -1: 0.5}."""
    if text == "balanced":
        return text
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    joined = re.sub(r"\s*([=:])\s*", r"\1", text.strip().removeprefix("{").removesuffix("}"))
    for part in filter(None, re.split(r"[,;\s]+", joined)):
        name, separator, weight = re.fullmatch(r"(.*?)(?:([=:])([^=:]*))?", part).groups(default="")  # type: ignore[union-attr]
        name = name.strip("'\"").removeprefix("+")
        usage = "Write LABEL=WEIGHT,LABEL=WEIGHT,... or balanced."
        if not separator:
            raise SoftmarginError(f"--class-weight {text}: {part!r} has no weight. {usage}")
        if name not in labels:
            raise SoftmarginError(
                f"--class-weight {text}: {name!r} is no label of the data ({' '.join(labels)}). {usage}"
            )
        try:
            weights[labels[name]] = float(weight)
        except ValueError:
            raise SoftmarginError(f"--class-weight {text}: {weight!r} is not a number. {usage}") from None
    return weights


def ordered_labels(text: str, y: np.ndarray) -> list:
    """The labels that are named; those that do not occur in the data are read as the others are."""
    kind = float if y.dtype.kind == "f" else int if y.dtype.kind in "iu" else str
    try:
        return [kind(name.strip()) for name in text.split(",")]
    except ValueError:
        raise SoftmarginError(f"--classes {text}: the labels of the data are numbers, such as {y[0]}.") from None
