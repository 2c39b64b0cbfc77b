"""LinUCB: upper confidence bounds on linear rewards, over the ridge posterior (Li et al. 2010).

Li, Chu, Langford, Schapire, "A Contextual-Bandit Approach to Personalized News Article Recommendation", WWW 2010, arXiv
1003.0146.

    score:  x' theta_hat + gamma sqrt(x' V^-1 x)

Departures from the paper: one theta for all arms, as in FLASH.
"""

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import Ridge, cholesky_factor
from fedcohort.types import Values


def confidence_widths(regression: Ridge, X: Float64[np.ndarray, "n d"]) -> Values:
    """Return the confidence width sqrt(x' V^-1 x) of each row x of X [n, d], [n]; V is the matrix of `regression`."""
    return np.asarray(np.sqrt((np.linalg.solve(cholesky_factor(regression), X.T) ** 2).sum(axis=0)))
