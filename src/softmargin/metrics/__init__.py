"""Measures of quality that the papers use, from labels and scores."""

from softmargin.metrics.classification import accuracy, prbep, roc_area

__all__ = ["accuracy", "prbep", "roc_area"]
