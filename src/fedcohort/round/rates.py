"""The rates of a client's job: costs of the signals that are read, of hooks, and of queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedcohort.flat import Layout
from fedcohort.hook import ClientHook, weigher
from fedcohort.ledger import NUMBER
from fedcohort.signal.base import Measured, Reported, find
from fedcohort.types import Values


@dataclass(frozen=True)
class Rates:
    """The costs of a client's job, given the signals that are read and the hooks that train it.

    Attributes:
        step_passes: forward passes that a sample in a training step costs.
        probed: the aggregator's own probes.
        passes_after: over T_k, by each client that has trained.
        down_bytes: of a broadcast.
        beside_bytes: sent up with every update.
    """

    step_passes: float
    probed: Mapping[str, Measured]
    passes_after: float
    down_bytes: int
    beside_bytes: int

    @classmethod
    def from_signals(
        cls, read: Iterable[str], asked: Iterable[str], hooks: Sequence[ClientHook], layout: Layout, beside: int = 0
    ) -> "Rates":
        """Add up the signals and the hooks to the rates of a job.

        Args:
            read: signals that a component reads.
            asked: signals that the aggregator probes or reads.
            hooks: those that train the clients.
            layout: the model's.
            beside: further bytes that each client is sent.
        """
        reports = [s for w in read if isinstance(s := find(w), Reported)]
        fixed = NUMBER * layout.n_buffers + 8 * sum(b.size for b in layout.counters)
        vector = NUMBER * layout.n_params
        return cls(
            step_passes=3.0 + (weighs.passes if (weighs := weigher(hooks)) else 0.0),
            probed={w: s for w in sorted(asked) if isinstance(s := find(w), Measured)},
            passes_after=float(sum(s.passes for s in reports)),
            down_bytes=fixed + beside + vector * (1 + sum(len(h.downloads) for h in hooks)),
            beside_bytes=fixed + vector * sum(len(h.uploads) for h in hooks) + sum(s.bytes_up for s in reports),
        )


@dataclass(frozen=True)
class QueryWork:
    """The work that questions ask of clients, in samples' forward passes, each [n_clients].

    Attributes:
        passes: on w_t.
        trained: training from w_t, of those who send their updates for a signal.
        passes_after: on the model that comes of these updates.
    """

    passes: Values
    trained: Values
    passes_after: Values

    @property
    def total(self) -> Values:
        """All of them, [n_clients]."""
        total: Values = self.passes + self.trained + self.passes_after
        return total
