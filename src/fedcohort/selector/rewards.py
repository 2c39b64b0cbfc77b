"""FLASH's rewards: by how much a loss falls from w_{t-1} to w_t, per second.

    client     L_i(w_{t-1}) - L_i(w_t)                        each client's own loss, of whoever answered both times
    global     sum p_i (L_i(w_{t-1}) - L_i(w_t)) / sum p_i    over these, one number for everybody
    progress   (L(w_{t-1}) - L(w_t)) / |S_{t-1}|              the server's validation loss, for those who arrived alone

progress (selector=flash_progress, of no paper) pays for what training is for: a better global model, which neither the
fall of a client's own loss nor its size is. It is signed there: a round that spoils the model costs its cohort.

Shares are equal. Nothing is known but what the cohort was worth as a whole, and who can't be told apart by that is due
the same (the symmetry of Shapley's value); the regression tells clients apart, over rounds whose cohorts have other
contexts. Shares by aggregation weight would pay the large for being large whatever their updates do, which no feature
of the context but the last reward would show, and a selector doesn't see the weights. Divided by |S|, the
round of everybody is worth no more to each than another.
"""

from collections.abc import Mapping

import numpy as np

from fedcohort import ranges
from fedcohort.selector.contexts import Pending
from fedcohort.types import Values

NEEDS: Mapping[str, frozenset[str]] = {
    "client": frozenset(),
    "global": frozenset({"n_train"}),
    "progress": frozenset({"server_val_loss"}),
}


def check(reward: str, credit: str, scale: str, bandit: str) -> None:
    """Raise `OptionError` for a reward credited to those whom it says nothing of, or in no unit that `bandit` knows."""
    if reward == "progress" and credit != "causal":
        raise ranges.refuse("credit", "causal with reward=progress, which those who took part share", credit)
    if credit == "answered" and reward != "client":
        raise ranges.refuse("reward", "client with credit=answered, which learns from each answer", reward)
    if bandit == "calibrated" and scale == "none":
        allowed = (
            "running or first_round with bandit=calibrated, which begins with a noise of 1, the size of such rewards"
        )
        raise ranges.refuse("scale", allowed, scale)


def pool(fall: Values, p: Values) -> Values:
    """Return the mean fall, weighted by p, of those whose own is known, for everybody; NaN where nobody's is."""
    known = np.isfinite(fall)
    weight = p[known].sum()
    return np.full_like(fall, p[known] @ fall[known] / weight if weight > 0 else np.nan)


def share(fall: float, cohort: Pending | None, n_clients: int) -> Values:
    """Return equal shares for the cohort, [n_clients], NaN for the others."""
    out = np.full(n_clients, np.nan)
    if cohort is not None and len(cohort.clients):
        out[cohort.clients] = fall / len(cohort.clients)
    return out


def per_second(fall: Values, seconds: Values, change: str) -> Values:
    """Return rewards, NaN where no time passed; change: "abs" has a rise count as a fall, "signed" against it."""
    gain = np.full_like(fall, np.nan)
    np.divide(np.abs(fall) if change == "abs" else fall, seconds, out=gain, where=seconds > 0)
    return gain
