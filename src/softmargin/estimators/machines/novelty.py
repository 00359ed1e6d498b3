"""What the one-class estimators have in common."""

from collections.abc import Sequence

from softmargin.core.result import Certificate
from softmargin.core.status import Status


class Novelty:
    """An estimator that tells whether rows are like those that it was trained on."""

    status_: Status
    certificate_: Certificate

    def _remarks(self) -> Sequence[str]:
        """A plane through the origin without a direction is no model.

        w = 0 and the offset 0 have the objective 0. If the rows lie on all sides of the origin of the feature space,
        nothing is better, and then the primal value is not negative, because it is an upper bound of the optimum.
        """
        certificate = self.certificate_
        if not self.status_.reached_goal or not certificate.dual <= 0.0 <= certificate.primal:
            return ()
        return (
            "the optimum is w = 0, so that this model tells no rows apart and its predictions mean nothing: the rows "
            "lie on all sides of the origin, from which a plane is to separate them. Do not centre the data "
            "(StandardScaler(with_mean=False)), or use softmargin.OneClassSVM with a kernel such as 'rbf'.",
        )
