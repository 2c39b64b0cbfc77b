"""The average of the server's models over rounds: `eval.average=ema`, evaluated instead of the model that clients get.

With the decay d of `eval.average_decay` and the server's model w_t after round t, the average is

    a_t = sum_{i=1..t} d^(t-i) w_i / sum_{i=1..t} d^(t-i) = a_{t-1} + (1 - d) / (1 - d^t) (w_t - a_{t-1}),    a_0 = w_0

This is an exponential moving average with bias correction: a_1 = w_1, and the untrained model has no weight after that.
d=0 is the last model, and d -> 1 the mean of all (Polyak and Juditsky, 1992). Each round counts, also one in which no
update arrives. Float buffers, such as the running means and variances of batch norm, have the same average. Integer
buffers are those of the last model. No component reads the average, so that it changes nothing in the rounds.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from fedcohort.flat import FlatModel


class ModelAverage:
    """The average of the global model over rounds.

    Args:
        global_model: the global model.
        average_decay: weight of a model relative to that of the next round, in [0, 1); None for no average.

    Attributes:
        rounds: number of rounds in the average.
        vectors: pairs of an averaged vector in float64 and the server's vector that it averages, of all parameters or
            of all float buffers; empty if there is no average.
    """

    def __init__(self, global_model: FlatModel, average_decay: float | None) -> None:
        self.decay, self.rounds = average_decay or 0.0, 0
        server_vectors = () if average_decay is None else (global_model.w, global_model.buffers)
        self.vectors = [(server_vector.to(torch.float64, copy=True), server_vector) for server_vector in server_vectors]

    def add_round(self) -> None:
        """Add the global model after a round to the average."""
        self.rounds += 1
        for averaged_vector, server_vector in self.vectors:
            averaged_vector.lerp_(server_vector.double(), (1 - self.decay) / (1 - self.decay**self.rounds))

    @contextmanager
    def load_average(self) -> Iterator[None]:
        """Give the global model the averaged parameters and buffers while the context lasts, if there is an average."""
        server_vector_copies = [server_vector.clone() for _, server_vector in self.vectors]
        for averaged_vector, server_vector in self.vectors:
            server_vector.copy_(averaged_vector)
        try:
            yield
        finally:
            for (_, server_vector), server_vector_copy in zip(self.vectors, server_vector_copies, strict=True):
                server_vector.copy_(server_vector_copy)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rounds and the averaged vectors by name, for a checkpoint."""
        return {"rounds": self.rounds, "vectors": [averaged_vector for averaged_vector, _ in self.vectors]}

    def load_state_dict(self, saved_average: Mapping[str, Any]) -> None:
        """Restore the average from `saved_average`, the result of `state_dict`."""
        self.rounds = saved_average["rounds"]
        for (averaged_vector, _), saved_vector in zip(self.vectors, saved_average["vectors"], strict=True):
            averaged_vector.copy_(saved_vector)
