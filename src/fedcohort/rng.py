"""Named randomness: every draw is a pure function of (seed, purpose, round, client).

No global generator is read or set, and no generator is saved: a resumed run makes the same generators again. Runs that
differ only in `selector=` therefore share partition, noise, initial weights, batch orders and latencies.
"""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

NO_ROUND = -1  # the round of a draw that is made once a run
NO_CLIENT = -1  # the client of a draw of the server or for all clients


def philox_key(seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> int:
    """Return a 128-bit key that depends on the four arguments only, equal on every machine and version of Python.

    Args:
        seed: seed of the run or of the data.
        purpose: text that names the use of the random numbers.
        round: number of the round, from 0; `NO_ROUND` for draws that are made once per run.
        client: id of the client; `NO_CLIENT` for draws of the server or for all clients.
    """
    return int.from_bytes(_digest_key_parts(seed, purpose, round, client), "little")


def _digest_key_parts(seed: int, purpose: str, round: int, client: int) -> bytes:
    return hashlib.blake2b(f"{seed}/{purpose}/{round}/{client}".encode(), digest_size=16).digest()


def new_generator(seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> np.random.Generator:
    """Return a new random generator. Its stream depends only on the arguments, which are those of `philox_key`."""
    return np.random.Generator(np.random.Philox(key=philox_key(seed, purpose, round, client)))


class RekeyedGenerator:
    """A random generator that is reset for each key. It draws what `new_generator` draws, at a tenth of the cost."""

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=0)
        self._rng = np.random.Generator(self._bits)
        # The state is set from lists of Python's integers in half the time that arrays take.
        self._fresh: Any = self._bits.state
        self._fresh["buffer"] = self._fresh["buffer"].tolist()
        self._fresh["state"]["counter"] = self._fresh["state"]["counter"].tolist()

    def rekey(self, seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> np.random.Generator:
        """Return the generator, set to the start of the stream that `new_generator` has for the same arguments.

        The arguments are those of `philox_key`. Each call returns the same object, so that the previous stream ends.
        """
        self._fresh["state"]["key"] = struct.unpack("<2Q", _digest_key_parts(seed, purpose, round, client))
        self._bits.state = self._fresh
        return self._rng


@contextmanager
def seeded_torch(seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> Iterator[None]:
    """Seed torch's default generators (CPU, and the GPU in use) inside the context, and restore them after it.

    The seed follows from the arguments, which are those of `philox_key`. Use it for code that takes no generator:
    `reset_parameters` of torch.nn and dropout.
    """
    import torch  # noqa: PLC0415 - torch is imported once the options are checked

    gpu_indices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpu_indices):
        for torch_generator in (torch.default_generator, *(torch.cuda.default_generators[g] for g in gpu_indices)):
            torch_generator.manual_seed(philox_key(seed, purpose, round, client) % 2**63)
        yield


@lru_cache(maxsize=4)  # a step of deadline=buffered reads the same vectors at each arrival
def _draw_vector(method_name: str, seed: int, purpose: str, round: int, n_clients: int) -> Float64[np.ndarray, "_k"]:
    """Return one draw for every client, [n_clients], by the method `method_name` of a generator.

    The generator is that of `seed`, `purpose` and `round` (`new_generator`).
    """
    client_draws: Float64[np.ndarray, _k] = getattr(new_generator(seed, purpose, round), method_name)(n_clients)
    client_draws.flags.writeable = False
    return client_draws


@dataclass(frozen=True)
class Draws:
    """The random numbers of a population in a round: a vector per draw, indexed by client id.

    The numbers of a client do not depend on the other clients that take part.

    Attributes:
        seed: seed of the run.
        n_clients: number of clients of the population.
        round: number of the round, from 0; `NO_ROUND` for draws that are made once per run.
        main_classes: most frequent class of each client, int64 [n_clients], for numbers that depend on it
            (`maths/class_tie.py`); None if samples do not have one class each.
        n_classes: number of classes.
    """

    seed: int
    n_clients: int
    round: int = NO_ROUND
    main_classes: Int64[np.ndarray, "clients"] | None = field(default=None, repr=False, compare=False)
    n_classes: int = 1

    def generator(self, purpose: str, client: int = NO_CLIENT) -> np.random.Generator:
        """Return a new random generator for `purpose` in this round, for one client (its id) or for all."""
        return new_generator(self.seed, purpose, self.round, client)

    def uniform(self, purpose: str) -> Float64[np.ndarray, "clients"]:
        """Return one draw from U[0, 1) for every client, keyed by the text `purpose`, [n_clients], read-only."""
        return _draw_vector("random", self.seed, purpose, self.round, self.n_clients)

    def exponential(self, purpose: str) -> Float64[np.ndarray, "clients"]:
        """Return one draw from Exp(1) for every client, keyed by the text `purpose`, [n_clients], read-only."""
        return _draw_vector("standard_exponential", self.seed, purpose, self.round, self.n_clients)

    def draws_of_run(self) -> "Draws":
        """Return the draws that are made once per run, so that they are equal in all rounds."""
        return replace(self, round=NO_ROUND)

    once = draws_of_run  # the old name, for one release
