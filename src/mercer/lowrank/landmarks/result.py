"""What every way of choosing landmarks hands back, so that they can be laid side by side.

With S the m landmarks, A = k(X, S) (n, m) and B = k(S, S) (m, m), the matrix they stand for is K~ = A B^-1 A'.  K - K~
is positive semidefinite and zero on the landmarks; its trace is the error of the best approximation of all k(x_i, .)
by functions of the span of the k(s_j, .) (Schoelkopf and Smola 2002, section 10.2.1).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram.points import Points, size


@dataclass(frozen=True, eq=False)
class Landmarks:
    """m chosen points and how well they stand for all.

    Attributes
    ----------
    points : the landmarks, (m, d) dense or CSR as the data were, or a list of m objects.
    index : (m,) their rows in X, in the order in which they were chosen; None where they are no rows (centres).
    method : the name under which they were chosen.
    residual_trace : trace(K - K~), with sample weights sum_i w_i (K - K~)_ii; NaN where it was not measured.
    residual_rows : on how many rows of K it was measured: n means exact, fewer an estimate from random rows, 0 not at
        all.
    trace : trace(K), with sample weights sum_i w_i k(x_i, x_i).
    entropy : quadratic Renyi entropy of the landmarks, -log of the mean of k(s_i, s_j) over all i, j; larger is more
        spread out.
    seconds : time of the choice, without that of the measurements.
    details : what the method has to say: rows considered, history, points left out and why.

    """

    points: Points
    index: NDArray[np.intp] | None
    method: str
    residual_trace: float
    residual_rows: int
    trace: float
    entropy: float
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return size(self.points)

    @property
    def explained(self) -> float:
        """trace(K~) / trace(K): 1 where the landmarks span all points (Rifkin 2002, section 3.7)."""
        return 1.0 - self.residual_trace / self.trace if self.trace > 0 else float("nan")

    def __repr__(self) -> str:
        measured = f"{self.residual_rows} rows" if self.residual_rows else "not measured"
        return (
            f"<{len(self)} landmarks by {self.method}: residual trace {self.residual_trace:.4g} of {self.trace:.4g} "
            f"({measured}), entropy {self.entropy:.4g}, {self.seconds:.3g} s>"
        )
