"""What the verdicts on the papers' tables share: sentences, counts of cases, and what a fit that was cut leaves open.

A verdict is one sentence on a table or figure: what its rows show beside what the paper prints. It is computed from the
rows of a result, and is None where they lack what it needs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Rows = list[dict[str, Any]]
NEAR = 0.1  # relative: a count that differs by less from the paper's counts as found again


def was_cut(*fits: Mapping[str, Any]) -> bool:
    return any(fit["was_cut"] for fit in fits)


def takes(times: float, slow: Mapping[str, Any], fast: Mapping[str, Any]) -> bool | None:
    """Whether one fit takes at least so many times as long as the other; None where a cut leaves it open."""
    if fast["was_cut"]:
        return None
    return is_less(times * fast["seconds"], slow["seconds"], slow["was_cut"])


def is_less(one: float, other: float, is_bound: bool) -> bool | None:
    """Whether one number is smaller; None where it is not, but the other is a lower bound only."""
    return True if one < other else None if is_bound else False


def of(holds: Iterable[bool | None]) -> str:
    known = [bool(one) for one in holds if one is not None]
    return f"{sum(known)} of {len(known)}"


def span(values: Iterable[float]) -> str:
    found = list(values)
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low} to {high}"


def sentence(*parts: str) -> str:
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."
