"""LinUCB: upper confidence bounds on linear rewards, over the ridge posterior (Li et al. 2010).

Li, Chu, Langford, Schapire, "A Contextual-Bandit Approach to Personalized News Article Recommendation" (2010), with one
theta for all arms.

    score = x' theta_hat + gamma sqrt(x' V^-1 x)
"""

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import Ridge, factor
from fedcohort.types import Values


def width(past: Ridge, X: Float64[np.ndarray, "n d"]) -> Values:
    """sqrt(x' V^-1 x) for each row, [n]: with V = C C' it is the length of C^-1 x."""
    return np.asarray(np.sqrt((np.linalg.solve(factor(past), X.T) ** 2).sum(axis=0)))
