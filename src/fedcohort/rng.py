"""Named randomness: every draw is a pure function of (seed, purpose, round, client).

No global generator is read or set, and nothing is saved: a resumed run makes the same generators again. Runs that
differ only in `selector=` therefore share partition, noise, initial weights, batch orders and latencies.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

ONCE = -1  # the "round" of what is drawn once a run
NOBODY = -1  # the "client" of a draw that belongs to the server or to the whole population


def key(seed: int, purpose: str, round: int = ONCE, client: int = NOBODY) -> int:
    """Return a 128-bit key for (seed, purpose, round, client); equal on every machine and version of Python."""
    return int.from_bytes(_digest(seed, purpose, round, client), "little")


def _digest(seed: int, purpose: str, round: int, client: int) -> bytes:
    return hashlib.blake2b(f"{seed}/{purpose}/{round}/{client}".encode(), digest_size=16).digest()


def generator(seed: int, purpose: str, round: int = ONCE, client: int = NOBODY) -> np.random.Generator:
    """Make a fresh generator for (seed, purpose, round, client)."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, round, client)))


class Rekeyed:
    """One generator that is set to a key again and again: `generator`'s draws at an eighth of the cost.

    What `at` gives is good until the next `at`.
    """

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=0)
        self._rng = np.random.Generator(self._bits)
        self._fresh = self._bits.state

    def at(self, seed: int, purpose: str, round: int = ONCE, client: int = NOBODY) -> np.random.Generator:
        self._fresh["state"]["key"] = np.frombuffer(_digest(seed, purpose, round, client), dtype="<u8")
        self._bits.state = self._fresh
        return self._rng


@contextmanager
def torch_scope(seed: int, purpose: str, round: int = ONCE, client: int = NOBODY) -> Iterator[None]:
    """Key torch's default generators inside, the CPU's and that of the GPU in use; outside they are as they were.

    For code that can draw from nowhere else: `reset_parameters` of torch.nn and dropout.
    """
    import torch  # noqa: PLC0415 - torch only once the words are right

    cards = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=cards):
        for each in (torch.default_generator, *(torch.cuda.default_generators[card] for card in cards)):
            each.manual_seed(key(seed, purpose, round, client) % 2**63)
        yield


@dataclass(frozen=True)
class Draws:
    """The random numbers of a population: one vector a draw, indexed by client id.

    What client k draws does not depend on who else is asked.
    """

    seed: int
    n_clients: int
    round: int = ONCE

    def generator(self, purpose: str, client: int = NOBODY) -> np.random.Generator:
        """A fresh generator for `purpose` in this round."""
        return generator(self.seed, purpose, self.round, client)

    def uniform(self, purpose: str) -> Float64[np.ndarray, "clients"]:
        """U[0, 1) for every client."""
        return self.generator(purpose).random(self.n_clients)

    def exponential(self, purpose: str) -> Float64[np.ndarray, "clients"]:
        """Exp(1) for every client."""
        return self.generator(purpose).standard_exponential(self.n_clients)

    def once(self) -> "Draws":
        """The same population, for what is drawn once a run."""
        return Draws(self.seed, self.n_clients)
