"""No proxy set: the server holds no inputs apart from its validation set."""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.data.federation import Federation
from fedcohort.proxy.base import Proxy


@dataclass(frozen=True)
class NoProxy(Proxy):
    """An empty proxy set; it has no options."""

    has_inputs: ClassVar[bool] = False

    def inputs(self, federation: Federation, seed: int) -> None:
        """Return None: the server holds no proxy inputs."""
