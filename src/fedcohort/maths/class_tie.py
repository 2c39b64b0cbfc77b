"""Uniform draws of clients that depend on their main class, for devices and schedules that are tied to the data.

    u_k = (c_k + U_k) / C  for a tied client k, and U_k for the others;  U_k ~ U[0, 1)

c_k is the class of which client k has most samples, one of C. Each client is tied with the same probability, by a draw
that is made once per run. If every class is the main class of equally many clients, u_k is uniform over the clients.
"""

import numpy as np
from jaxtyping import Float64

from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws


def tie_draws_to_classes(
    uniform_draws: Float64[np.ndarray, "clients"], run_draws: Draws, probability: float, option_name: str
) -> Float64[np.ndarray, "clients"]:
    """Return draws from U[0, 1) of which some depend on the main class of their client, [n_clients].

    Args:
        uniform_draws: one draw from U[0, 1) for each client, [n_clients].
        run_draws: random numbers of the run, with the main class of each client.
        probability: probability that a client is tied to its class.
        option_name: name of the option that sets `probability`, which keys the draw and is named in the error.

    Raises:
        IncompatibleConfig: clients are tied, and samples do not have one class each.
    """
    if probability == 0:
        return uniform_draws
    if run_draws.main_classes is None:
        raise IncompatibleConfig(
            f"{option_name}={probability:g} needs samples with one class each: set it to 0, or choose another dataset"
        )
    is_tied_client = run_draws.draws_of_run().uniform(option_name) < probability
    return np.where(is_tied_client, (run_draws.main_classes + uniform_draws) / run_draws.n_classes, uniform_draws)
