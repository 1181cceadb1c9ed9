"""ProportionalOdds: the cumulative model of ordered classes with a kernel and three links."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from mercer.gram import GramOperator
from mercer.machine.base import Index, Vector
from mercer.ordinal.base import RankClassifier
from mercer.problems.cumulative import Cumulative, log_share
from mercer.problems.latent import LatentProblem


@dataclass(kw_only=True, eq=False, repr=False)
class ProportionalOdds(RankClassifier):
    """Cumulative ordinal regression, P(y <= k | x) = F(theta_k - f(x)), with a ridge on f.

        min 1/2 ||f||^2 - C sum_i w_i ln P(y_i | x_i)

    The ranks are the labels in their own order.  The smaller 1/C, the ridge, the nearer is the answer to maximum
    likelihood, which does not exist where a function separates the ranks.

    Parameters
    ----------
    C : positive number, one over the ridge.
    link : "logit" (proportional odds), "probit", or "cloglog" (proportional hazards), which names F.
    class_weight : as in scikit-learn.
    kernel, degree, gamma, coef0, tol, max_iter, max_time, approximation, random_state, memory, precision, warm_start,
    verbose, n_jobs : as in `RankSVM`.

    Attributes
    ----------
    classes_ : the ranks (k,), from low to high.
    thresholds_ : theta (k - 1,), increasing.
    Others : as in `RankSVM`; every point is a support vector.

    """

    link: str = "logit"
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RankClassifier._parameter_constraints,
        "link": [StrOptions({"logit", "probit", "cloglog"})],
    }

    def _problem(self, gram: GramOperator, codes: Index, weights: Vector | None) -> LatentProblem:
        link: Any = self.link
        return Cumulative(gram, codes, self.C, weights, link)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the probabilities of the ranks (n, k)."""
        return self._log_shares(self.utility(X))

    def _log_shares(self, f: Vector) -> NDArray[np.float64]:
        """The same at latent values f (n,)."""
        link: Any = self.link
        ends = np.concatenate(([-np.inf], self.thresholds_, [np.inf])) - f[:, None]
        return log_share(link, ends[:, :-1], ends[:, 1:])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the ranks (n, k)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _decisions(self, f: Vector) -> NDArray[np.float64]:
        """Logarithms of the probabilities (n, k); for two ranks their difference (n,)."""
        found = self._log_shares(f)
        return np.asarray(found[:, 1] - found[:, 0]) if found.shape[1] == 2 else found
