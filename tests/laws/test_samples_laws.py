"""Every sample selection returns positions of the client's samples, at least one, fixed by the generator."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from agg_harness import make_update
from case_loop import for_all
from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.component import LOSS_LISTS, Facts
from fedcohort.rng import Draws
from fedcohort.round.sampling import predict_chosen_samples
from fedcohort.samples.base import SampleRequest
from fedcohort.signal.base import find_signal, list_signals
from fedcohort.types import Population, RoundOutcome, Selection
from global_rng_guard import forbid_global_rng
from run_harness import make_components
from signal_kinds import find_reported
from state_saving import save_and_restore

SIZES = (1, 2, 7, 30, 100)


@pytest.fixture(params=list_options("samples"))
def samples(request: pytest.FixtureRequest) -> Any:
    return make_component("samples", request.param)


def population() -> Population:
    return Population(len(SIZES), 10, 3, {"n_train": np.array(SIZES)})


def request(n: int, deadline_s: float, seed: int = 0) -> SampleRequest:
    losses = np.random.default_rng(n).exponential(1.0, n)
    return SampleRequest(
        client=SIZES.index(n),
        n=n,
        deadline_s=deadline_s,
        travel_s=1.0,
        unit_s=float(n),
        units=5,
        batch=min(10, n),
        losses=losses,
        rng=lambda purpose: np.random.default_rng(seed),
    )


@for_all("n", SIZES)
@for_all("deadline_s", [0.001, 40.0, np.inf])
@failure_hint("Return sorted, distinct int64 positions, at least one.")
def test_chosen_samples_are_sorted_distinct_and_at_least_one(samples: Any, n: int, deadline_s: float) -> None:
    chosen = samples.choose(samples.init(population()), request(n, deadline_s))
    assert chosen.dtype == np.int64
    assert 1 <= len(chosen) <= n
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < n


@failure_hint("Draw from the generator of the request.")
def test_sample_selection_is_deterministic_without_global_generators(samples: Any) -> None:
    state = samples.init(population())
    with forbid_global_rng():
        first = samples.choose(state, request(30, 40.0))
    with forbid_global_rng():
        np.testing.assert_array_equal(samples.choose(state, request(30, 40.0)), first)


@failure_hint("Keep everything that changes between rounds in the State dataclass.")
def test_a_restored_state_continues_identically(samples: Any) -> None:
    signals = {signal: np.linspace(1.0, 2.0, 3) for signal in samples.needs}
    clients, no_clients = np.arange(3), np.empty(0, dtype=np.int64)
    state = samples.observe(
        samples.init(population()), RoundOutcome(1, Selection(clients), clients, no_clients, signals, {}, 9.0)
    )
    np.testing.assert_array_equal(
        samples.choose(save_and_restore(state), request(30, 40.0)), samples.choose(state, request(30, 40.0))
    )


@failure_hint("Set `is_foreseeable = False` where state, deadline or losses change the choice.")
def test_a_foreseen_selection_of_samples_equals_the_rounds(samples: Any) -> None:
    """State, deadline and losses do not change the selection; samples=all returns no rows."""
    if not samples.is_foreseeable:
        return
    draws = Draws(seed=3, n_clients=len(SIZES), round=7)
    for client, n in enumerate(SIZES):
        rng = partial(draws.generator, client=client)
        chosen = samples.choose(samples.init(population()), replace(request(n, 0.001), rng=rng))
        predicted = predict_chosen_samples(samples, client, n, draws)
        assert (np.arange(n) if predicted is None else predicted).tolist() == chosen.tolist()


@failure_hint("Read each signal that rests on the clients' lists of losses, or leave it out of `needs`.")
def test_reported_statistics_of_loss_lists_are_read_or_rejected(samples: Any) -> None:
    """Each signal of a loss list is a finite number, or the run is rejected."""
    facts = Facts(replace(make_components(), samples=samples), {})
    loss_list_signals = [signal for signal in list_signals() if find_signal(signal).requirement is LOSS_LISTS]
    assert {"loss_low", "loss_high"} <= set(loss_list_signals)
    sample_request = request(30, 40.0)
    threshold = samples.sent_threshold(samples.init(population()))
    report = samples.report_losses(threshold, sample_request, sample_request.losses)
    for signal in loss_list_signals:
        if LOSS_LISTS.holds(facts):
            assert np.isfinite(find_reported(signal).read(make_update(0, [0.0], loss_report=report)))
        else:
            assert signal not in report


@failure_hint("Set `is_foreseeable` and `keeps_losses` to what `choose` depends on.")
def test_the_flags_foreseen_and_keeps_losses_are_correct(samples: Any) -> None:
    """Reversed losses and another deadline show what a choice depends on, in a state with a positive threshold."""
    signals = {name: np.linspace(0.5, 1.0, 3) for name in samples.needs}
    clients = np.arange(3)
    state = samples.init(population())
    for round_number in range(100):  # until the controllers have raised a threshold
        falling_signals = signals | {"loss_sum": np.full(3, 0.99**round_number)}
        outcome = RoundOutcome(round_number, Selection(clients), clients, clients[:0], falling_signals, {}, 9.0, 9.0)
        state = samples.observe(state, outcome)
    plain = [request(100, deadline_s) for deadline_s in (0.001, 40.0, np.inf)]
    reversed_losses = [replace(sample_request, losses=sample_request.losses[::-1].copy()) for sample_request in plain]
    chosen = [
        [samples.choose(state, sample_request).tolist() for sample_request in requests]
        for requests in (plain, reversed_losses)
    ]
    reads_losses = chosen[0] != chosen[1]
    assert reads_losses == samples.keeps_losses
    assert samples.is_foreseeable == (not reads_losses and chosen[0][0] == chosen[0][1] == chosen[0][2])
