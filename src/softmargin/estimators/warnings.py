"""The warning of a fit that ended before its goal."""

from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning


class ConvergenceWarning(SklearnConvergenceWarning):
    """A fit stopped before `tol`. The message says the gap reached, what it bounds, and what to change."""
