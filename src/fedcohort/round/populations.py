"""The static facts of clients, and the population that each component may read of them when its state is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.deadline.base import Deadline
from fedcohort.signal.base import Static, find_signal
from fedcohort.types import Ids, Population, Signals, Values

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation

JOB_COLUMNS = (
    "expected_s",
    "expected_unit_s",
    "expected_up_s",
    "expected_down_s",
    "pass_units",
)  # facts that `round/cost.py` computes


@dataclass(frozen=True)
class Populations:
    """Makes the `Population` of each component, with the static signals that the component declares.

    Attributes:
        n_clients: size of the population.
        n_classes: number of classes.
        cohort: number of clients per round.
        facts: static facts of all clients, each [n_clients, ...], by the names in `signal.base.Static.fact`.
        report_values: function from the name of a signal, client ids and their true values to the values that they
            report.
    """

    n_clients: int
    n_classes: int
    cohort: int
    facts: Mapping[str, np.ndarray]
    report_values: Callable[[str, Ids, np.ndarray], np.ndarray] = lambda signal, clients, values: values

    def read_reported_values(self, signal_name: str, signal: Static) -> np.ndarray:
        """Return the values of a static signal that clients report when they register, [n_clients, ...].

        Args:
            signal_name: name of the signal.
            signal: the signal, whose `fact` names the true values.
        """
        return self.report_values(signal_name, np.arange(self.n_clients), self.facts[signal.fact])

    def signals(
        self, needs: frozenset[str], reader_name: str, server_signals: Mapping[str, float] = MappingProxyType({})
    ) -> Signals:
        """Return the values of the signals that a component declares; reading others raises `UndeclaredSignal`.

        Args:
            needs: names of the declared signals.
            reader_name: name of the component in messages.
            server_signals: signals that the server has measured, by name.
        """
        static_signal_values = {
            k: self.read_reported_values(k, signal) for k in needs if isinstance(signal := find_signal(k), Static)
        }
        return Signals({**static_signal_values, **server_signals}, needs, reader_name)

    def resize_cohort(self, deadline: Deadline[Any]) -> "Populations":
        """Return the populations for a selector, with the cohort size that `deadline` requests."""
        return replace(self, cohort=deadline.cohort_size(self.cohort))

    def make_population(self, needs: frozenset[str], reader_name: str) -> Population:
        return Population(self.n_clients, self.n_classes, self.cohort, self.signals(needs, reader_name))

    @classmethod
    def from_federation(
        cls, federation: "Federation", cohort_size: int, job_facts: Mapping[str, Values] = MappingProxyType({})
    ) -> "Populations":
        """Return the populations of a federation's clients, with their static facts.

        Args:
            federation: data of the run.
            cohort_size: number of clients per round.
            job_facts: facts of devices and jobs, each [n_clients], by the names in `JOB_COLUMNS`; a missing one is 1
                for every client.
        """
        facts = {
            "n_train": federation.n_train,
            "label_counts": federation.label_counts,
            "noise_rate": federation.noise_rate,
            **{fact_name: job_facts.get(fact_name, np.ones(federation.n_clients)) for fact_name in JOB_COLUMNS},
        }
        if federation.group_counts is not None:
            facts["group_counts"] = federation.group_counts
        return cls(federation.n_clients, federation.n_classes, cohort_size, facts)
