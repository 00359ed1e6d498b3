"""Measures of quality that the papers use, from labels and scores."""

from softmargin.metrics.classification import accuracy, pr_area, prbep, roc_area, weighted_roc_area
from softmargin.metrics.ranking import (
    QueryValues,
    mean_average_precision_by_query,
    ndcg_by_query,
    precision_by_query,
    reciprocal_rank_by_query,
    swapped_pairs,
)

__all__ = [
    "accuracy",
    "prbep",
    "roc_area",
    "pr_area",
    "weighted_roc_area",
    "precision_by_query",
    "reciprocal_rank_by_query",
    "swapped_pairs",
    "ndcg_by_query",
    "mean_average_precision_by_query",
    "QueryValues",
]
