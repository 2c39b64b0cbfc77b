"""A small federation for tests of selectors: it plays rounds like the engine, with random signals and no model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from fedcohort import rng
from fedcohort.round import backoff
from fedcohort.round.backoff import NO_CLIENT_FAILURES, Backoff
from fedcohort.signal import base
from fedcohort.signal.base import Derived, QueriedSignal, RawUpdate, Reported, ServerMeasured, Static
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Signals
from signal_kinds import UnimplementedAccess, find_derived

ChangeSignal = Callable[[str, np.ndarray], np.ndarray]
find_signal = cache(base.find_signal)

# Values of signals as functions of one uniform draw per client; other signals are 0.2 + draw.
# A signal with another shape needs an entry here.
SIGNAL_VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "availability_forecast": lambda draws: np.floor(2 * draws),  # ready all the time, or not at all
    "class_loss": lambda draws: np.stack([1 + 13 * draws % 1 * (1 + column) for column in range(13)], axis=1),
    "compressed_gradient": lambda draws: np.stack([draws, 7 * draws % 1], axis=1),
    "dht": lambda draws: np.stack([draws, 7 * draws % 1, 13 * draws % 1], axis=1),
    "expected_down_s": lambda draws: 0.02 + 0.1 * draws,  # transfers are a part of the job
    "expected_up_s": lambda draws: 0.02 + 0.1 * draws,
    "gradient_moments": lambda draws: np.stack([draws, 7 * draws % 1, 0.2 + draws], axis=1),
    "group_counts": lambda draws: np.outer(100 * draws + 10, np.arange(1, 9)).astype(np.int64) % 37,
    "label_counts": lambda draws: (np.outer(draws + 0.1, [97, 53, 89, 31]) % 1 * 40).astype(np.int64) + 1,
    "n_train": lambda draws: (20 + 100 * draws).astype(np.int64),
    "update": lambda draws: np.stack([draws, 7 * draws % 1, 13 * draws % 1], axis=1),
}


def ids(*clients: int) -> Ids:
    return np.array(clients, np.int64)


def make_context(
    round: int = 0,
    cohort: int = 2,
    n_clients: int = 5,
    available: Sequence[int] | None = None,
    signals: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> RoundContext:
    """Return the context of a round; all clients are available by default."""
    available_ids = np.arange(n_clients) if available is None else np.array(available, np.int64)
    return RoundContext(
        round, cohort, n_clients, available_ids, signals or {}, rng.new_generator(seed, "selector", round)
    )


def make_outcome(
    round: int,
    clients: Sequence[int],
    probes: Mapping[str, ProbeResult] | None = None,
    failed: Sequence[int] = (),
    **signals: Sequence[Any],
) -> RoundOutcome:
    """Return the outcome of a round in which `clients` arrived with `signals`, and `failed` did not arrive."""
    chosen = Selection(np.sort(np.array([*clients, *failed], np.int64)))
    values = {signal: np.array(column, float) for signal, column in signals.items()}
    return RoundOutcome(round, chosen, ids(*clients), ids(*failed), values, probes or {}, 1.0)


class RecordingSignals(Signals):
    """Signals that record which of them were read."""

    def __init__(self, values: Mapping[str, Any], declared: frozenset[str], read: set[str]) -> None:
        super().__init__(values, declared, "it")
        self.read_signals = read

    def __getitem__(self, signal: str) -> Any:
        self.read_signals.add(signal)
        return super().__getitem__(signal)


class Answers(dict[str, ProbeResult]):
    """Answers by signal, which tell the author of a selector how to read those of a query that was not made."""

    def __missing__(self, signal: str) -> ProbeResult:
        raise KeyError(
            f"no client was queried for {signal!r} in this round: a query is not made if no client is available. "
            f"Read its answers by find_answers(probes, {signal!r}), which are empty then"
        )


@dataclass(frozen=True)
class World:
    """A federation whose signals are keyed by (seed, signal, round), independent of the other queried clients.

    Attributes:
        available: returns the available clients of a round; None means all.
        find_failing: returns the clients of a cohort that fail.
        corrupt: changes reported and measured signals.
        change_static: changes static signals.
        read_signals: signals that were read or queried.
    """

    n_clients: int = 12
    cohort: int = 3
    seed: int = 0
    available: Callable[[int], Sequence[int]] | None = None
    find_failing: Callable[[int, Ids], Sequence[int] | Ids] = field(default=lambda round, cohort: ())
    corrupt: ChangeSignal = field(default=lambda signal, values: values)
    change_static: ChangeSignal = field(default=lambda signal, values: values)
    read_signals: set[str] = field(default_factory=set)

    def values(self, signal: str, round: int = rng.NO_ROUND) -> np.ndarray:
        """Return the value of a signal for each client."""
        made_values = _make_up(self.seed, signal, round, self.n_clients).copy()
        if isinstance(find_signal(signal), Static):
            return self.change_static(signal, made_values)
        if made_values.ndim == 1:
            return self.corrupt(signal, made_values)
        return np.stack([self.corrupt(signal, column) for column in made_values.T], axis=1)

    def static(self, needs: frozenset[str], **server_signals: float) -> Signals:
        """Return the static signals in `needs` and the server's own; reading any other raises an error."""
        facts = {signal: self.values(signal) for signal in list_declared(needs, Static)}
        return RecordingSignals({**facts, **server_signals}, needs, self.read_signals)

    def population(self, needs: frozenset[str]) -> Population:
        return Population(self.n_clients, 4, self.cohort, self.static(needs))

    def context(self, round: int, needs: frozenset[str]) -> RoundContext:
        available_ids = None if self.available is None else self.available(round)
        server_signals = {w: float(self.values(w, round).max()) for w in list_declared(needs, ServerMeasured)}
        return make_context(
            round, self.cohort, self.n_clients, available_ids, self.static(needs, **server_signals), self.seed
        )

    def answer(self, probe: Probe, round: int) -> ProbeResult:
        assert isinstance(find_signal(probe.signal), QueriedSignal)
        self.read_signals.add(probe.signal)
        return ProbeResult(probe.clients, self.values(probe.signal, round)[probe.clients])

    def outcome(
        self, round: int, selection: Selection, probes: Mapping[str, ProbeResult], needs: frozenset[str]
    ) -> RoundOutcome:
        failed = np.intersect1d(selection.clients, np.array(self.find_failing(round, selection.clients), np.int64))
        arrived = np.setdiff1d(selection.clients, failed)
        values = {w: self.values(w, round)[arrived] for w in list_declared(needs, Reported | RawUpdate)}
        values |= {w: derive(w, self.values("update", round)[arrived]) for w in list_declared(needs, Derived)}
        return RoundOutcome(
            round, selection, arrived, failed, RecordingSignals(values, needs, self.read_signals), probes, 1.0
        )


@cache
def list_declared(needs: frozenset[str], kind: Any) -> list[str]:
    """Return the signals in `needs` of this kind."""
    return [signal for signal in sorted(needs) if isinstance(find_signal(signal), kind)]


@cache
def _make_up(seed: int, signal: str, round: int, n_clients: int) -> np.ndarray:
    draws = rng.new_generator(seed, f"world/{signal}", round).random(n_clients)
    return SIGNAL_VALUES[signal](draws) if signal in SIGNAL_VALUES else 0.2 + draws


@dataclass(frozen=True)
class Step:
    """One round of a selector.

    Attributes:
        before: state before the round.
        chosen: state between selection and outcome.
        after: state after the round.
        failures: back-off after the round.
    """

    before: Any
    ctx: RoundContext
    probes: Sequence[Probe]
    blocking_answers: Mapping[str, ProbeResult]
    selection: Selection
    chosen: Any
    outcome: RoundOutcome
    after: Any
    failures: Backoff = NO_CLIENT_FAILURES


def has_pairs(name: str) -> bool:
    signal = find_signal(name)
    return isinstance(signal, Derived) and signal.pairs


def derive(signal: str, updates: np.ndarray) -> Any:
    """Return a signal that the server derives from updates, without a model: a server loss is the sum of the update."""
    if signal == "server_loss":
        with np.errstate(all="ignore"):  # as torch, which does not warn
            sums = updates.sum(axis=1)
        return lambda weights: math.fsum((weights * sums).tolist()) if np.isfinite(sums).all() else math.nan
    if signal == "server_accuracy":  # the accuracy is any number that rises and falls with the updates
        server_loss = derive("server_loss", updates)
        return lambda weights: (server_loss(weights), server_loss(weights))
    if signal == "step_projection":
        return find_derived(signal).make(TwoLayers(), torch.from_numpy(updates))
    if signal == "output_layer":  # one weight and one bias for each of four classes
        return np.hstack([updates, updates, updates[:, :2]])
    return find_derived(signal).make(UnimplementedAccess(), torch.from_numpy(updates))


class TwoLayers(UnimplementedAccess):
    """SignalAccess with a network of two tensors, of two parameters and of one."""

    def copy(self) -> torch.nn.Module:
        return torch.nn.ParameterList([torch.zeros(2), torch.zeros(1)])


def reorder(signal: str, values: Any, order: Ids) -> Any:
    """Return a signal of the clients that arrived, in another order; a function takes its weights in that order."""
    if callable(values):

        def reorder_result(weights: np.ndarray) -> Any:
            result = values(np.asarray(weights)[np.argsort(order)])
            return result[order] if isinstance(result, np.ndarray) else result

        return reorder_result
    reordered: np.ndarray = values[np.ix_(order, order)] if has_pairs(signal) else values[order]
    return reordered


def play_round(selector: Any, state: Any, world: World, round: int, failures: Backoff = NO_CLIENT_FAILURES) -> Step:
    ctx = world.context(round, selector.needs)
    if selector.backs_off:
        ctx = backoff.omit_failed_clients(failures, ctx, selector.shortlist(world.cohort))
    probes = tuple(selector.plan(state, ctx)) if len(ctx.available) else ()
    blocking = Answers({probe.signal: world.answer(probe, round) for probe in probes if not probe.concurrent})
    concurrent = Answers({probe.signal: world.answer(probe, round) for probe in probes if probe.concurrent})
    selection, chosen = selector.select(state, ctx, blocking)
    result = world.outcome(round, selection, concurrent, selector.needs)
    after = selector.observe(chosen, result)[1] if len(selection.clients) else chosen
    failures = backoff.update_backoff(failures, result)
    return Step(state, ctx, probes, blocking, selection, chosen, result, after, failures)


def play_rounds(
    selector: Any, world: World, rounds: int, state: Any = None, start: int = 0, failures: Backoff = NO_CLIENT_FAILURES
) -> list[Step]:
    """Play `rounds` rounds from round `start`; without `state` the selector starts from its initial state."""
    state = selector.init(world.population(selector.needs)) if state is None else state
    steps: list[Step] = []
    for round in range(start, start + rounds):
        steps.append(play_round(selector, state, world, round, failures))
        state, failures = steps[-1].after, steps[-1].failures
    return steps


def to_list(clients: Ids) -> list[int]:
    ids_list: list[int] = clients.tolist()
    return ids_list


def list_cohorts(steps: Sequence[Step]) -> list[list[int]]:
    return [to_list(step.selection.clients) for step in steps]


def changing_clients(round: int) -> list[int]:
    """Return the available clients of a round; both the clients and their number change between rounds."""
    return [k for k in range(12) if (k * 7 + round * 5) % 11 < 3 + round % 5]


def lose_half(round: int, cohort: Ids) -> Ids:
    return cohort[round % 2 :: 2]


def check_selection(selector: Any, selection: Selection, available: Ids, cohort: int) -> None:
    chosen, n_expected = selection.clients, min(cohort, len(available))
    assert chosen.dtype == np.int64
    assert np.array_equal(chosen, np.unique(chosen)), "sorted and distinct"
    assert np.isin(chosen, available).all()
    if selector.may_choose_fewer:
        assert min(1, n_expected) <= len(chosen) <= (len(available) if selection.uncapped else n_expected)
    else:
        assert len(chosen) == (len(available) if selection.uncapped else n_expected)
