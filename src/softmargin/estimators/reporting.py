"""What every estimator tells about itself to people: `report`, and how it looks in a notebook."""

from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr


class ReportMixin:
    """Adds `report` and the status to the picture in a notebook; it stands before scikit-learn's `BaseEstimator`."""

    def report(self, X: Any, y: Any = None, *, sample_weight: Any = None, qid: Any = None) -> Any:
        """A report about this fitted model for people, with these rows to measure it on.

        Parameters
        ----------
        X, y : rows and labels. If they are those of the training, in the same order, the margins tell which rows are
            support vectors; rows that training has not seen tell how good the model is.
        sample_weight : the weights of the training, if any
        qid : for rankings, the query of each row

        Returns
        -------
        Report
            Has `save(path)`, which writes one HTML page, or Markdown if the name ends in .md; `html` and `markdown` are
            the texts. In a notebook it shows itself.
        """
        from softmargin.report.model_report import report

        return report(self, X, y, sample_weight=sample_weight, qid=qid)

    def _html_repr(self) -> str:
        """Scikit-learn's diagram, with status, gap and a small picture of the convergence above it."""
        from softmargin.report.notebook import summary_html

        return summary_html(self) + estimator_html_repr(self)

    def _repr_html_inner(self) -> str:
        """As scikit-learn's own since 1.7; older versions do not ask `_html_repr`."""
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Likewise."""
        has_diagram = get_config()["display"] == "diagram"
        return {"text/plain": repr(self)} | ({"text/html": self._html_repr()} if has_diagram else {})
