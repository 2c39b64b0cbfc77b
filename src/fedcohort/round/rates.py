"""Costs of a client's job per sample and per message, which follow from signals and hooks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedcohort.flat import Layout
from fedcohort.hook import ClientHook, find_weigher
from fedcohort.ledger import BYTES_PER_NUMBER
from fedcohort.signal.base import Measured, Reported, find_signal
from fedcohort.types import Values


@dataclass(frozen=True)
class JobCosts:
    """The costs of a client's job, which depend on the signals that are read and on the client hooks that are active.

    Attributes:
        training_passes: cost of a sample in a training step, in forward passes.
        queried_signals: signals that the aggregator queries, by name.
        report_passes: forward passes over each of the client's training samples after its training.
        down_bytes: bytes of a broadcast to one client.
        extra_bytes: bytes that a client sends in addition to its update.
    """

    training_passes: float
    queried_signals: Mapping[str, Measured]
    report_passes: float
    down_bytes: int
    extra_bytes: int

    @classmethod
    def from_signals(
        cls,
        signal_names: Iterable[str],
        agg_signals: Iterable[str],
        hooks: Sequence[ClientHook],
        layout: Layout,
        extra_down_bytes: int = 0,
    ) -> "JobCosts":
        """Return the costs of a client's job, added up over the signals that are read and the active hooks.

        Args:
            signal_names: names of the signals that any component reads.
            agg_signals: names of the signals that the aggregator reads.
            hooks: client hooks that are active in training.
            layout: positions of the model's tensors in its flat vector.
            extra_down_bytes: bytes that each client receives in addition to the model and the hooks' vectors.
        """
        reported_signals = [s for w in signal_names if isinstance(s := find_signal(w), Reported)]
        buffer_bytes = BYTES_PER_NUMBER * layout.n_buffers + 8 * sum(b.size for b in layout.counters)
        vector_bytes = BYTES_PER_NUMBER * layout.n_params
        return cls(
            training_passes=3.0 + (sample_weigher.passes if (sample_weigher := find_weigher(hooks)) else 0.0),
            queried_signals={w: s for w in sorted(agg_signals) if isinstance(s := find_signal(w), Measured)},
            report_passes=float(sum(s.passes for s in reported_signals)),
            down_bytes=buffer_bytes + extra_down_bytes + vector_bytes * (1 + sum(len(h.downloads) for h in hooks)),
            extra_bytes=buffer_bytes
            + vector_bytes * sum(len(h.uploads) for h in hooks)
            + sum(s.bytes_up for s in reported_signals),
        )


@dataclass(frozen=True)
class QueryPasses:
    """The work of queries at each client, in forward passes of one sample, each [n_clients].

    Attributes:
        model_passes: forward passes of the global model.
        training_passes: cost of the training of clients that send their updates for a signal, in forward passes.
        passes_after_training: forward passes of the model that results from these updates.
    """

    model_passes: Values
    training_passes: Values
    passes_after_training: Values

    @property
    def total_passes(self) -> Values:
        """Sum of `model_passes`, `training_passes` and `passes_after_training` of each client, [n_clients]."""
        n_passes: Values = self.model_passes + self.training_passes + self.passes_after_training
        return n_passes
