"""Laws of every aggregator, with the defaults of its yaml file."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import global_rng_guard
from agg_harness import collect_updates, make_arrived, make_population, make_update
from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.component import PROXY_INPUTS, RELATIVE_ADVICE, UNADVISED_WEIGHTS
from fedcohort.round.arrivals import Arrivals, replace_update_weights
from fedcohort.state import pack_state
from state_saving import save_and_restore

AGGREGATORS = list_options("agg")
P = 5


def vector(seed: int) -> torch.Tensor:
    return torch.randn(P, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def update(agg: Any, client: int, delta: torch.Tensor, n: int = 2) -> Any:
    uploads = {name: vector(100 + client) for hook in agg.hooks for name in hook.uploads}
    stored = {name: vector(200 + client) for hook in agg.hooks for name in hook.remembers}
    return make_update(client, delta.tolist(), n=n, uploads=uploads, stored=stored)


def step(agg: Any, state: Any, updates: list[Any], signal_spacing: float = 0.0) -> tuple[torch.Tensor, Any]:
    return close(agg, state, collect_updates(agg, updates), signal_spacing)


def close(agg: Any, state: Any, collected: Arrivals, signal_spacing: float = 0.0) -> tuple[torch.Tensor, Any]:
    """Return the round's arrivals; each signal is 1 and grows by `signal_spacing` from one client id to the next."""
    signals = dict.fromkeys(agg.needs, 1.0 + signal_spacing * collected.clients)
    direction, after = agg.direction(state, make_arrived(collected, signals, agg.needs))
    return direction.displacement, after


@pytest.fixture(params=AGGREGATORS)
def agg(request: pytest.FixtureRequest) -> Any:
    return make_component("agg", request.param)


def make_initial_state(agg: Any) -> Any:
    return agg.init(make_population(6, **dict.fromkeys(agg.needs, np.ones(6))), P)


def assert_along(direction: torch.Tensor, delta: torch.Tensor, agg: Any) -> None:
    """Assert that a direction is `delta`, or a positive multiple if the method chooses the length.

    Methods that train on the server use Adam, which turns gradients of rounding errors into steps.
    """
    if getattr(agg, "sets_step_length", False):
        assert float(direction @ delta) > 0
        delta = delta * direction.norm() / delta.norm()
    torch.testing.assert_close(direction, delta, atol=1e-4 if PROXY_INPUTS in agg.requirements else 1e-12, rtol=0)


@failure_hint("Where all updates are equal, return this update, or set `sets_step_length = True`.")
def test_equal_updates_give_the_common_direction(agg: Any) -> None:
    delta = vector(0)
    direction, _ = step(agg, make_initial_state(agg), [update(agg, k, delta, n=k + 1) for k in range(4)])
    assert_along(direction, delta, agg)


@failure_hint("A round may have one arrival: divide by no variance or count of others, and return its update.")
def test_the_direction_of_a_single_client_is_its_update(agg: Any) -> None:
    direction, _ = step(agg, make_initial_state(agg), [update(agg, 3, vector(1))])
    assert_along(direction, vector(1), agg)


@failure_hint("Index per-client state by `arrived.outcome.clients`, never by position in the round.")
def test_order_of_arrival_is_irrelevant(agg: Any) -> None:
    rows = [update(agg, k, vector(k), n=k + 1) for k in range(4)]
    forward, after = step(agg, make_initial_state(agg), rows, signal_spacing=0.3)
    backward, backward_state = step(agg, make_initial_state(agg), rows[::-1], signal_spacing=0.3)
    torch.testing.assert_close(forward, backward, atol=1e-14, rtol=0)
    assert_same(pack_state(after), pack_state(backward_state), 1e-14)


@failure_hint("Read clients from `arrived.outcome.clients`, which holds finite updates only, not from the selection.")
def test_dropping_a_client_equals_not_selecting_it(agg: Any) -> None:
    rows = [update(agg, k, vector(k)) for k in range(3)]
    nan_update = update(agg, 5, torch.full((P,), float("nan"), dtype=torch.float64))
    with_client, after = step(agg, make_initial_state(agg), [*rows, nan_update], signal_spacing=0.3)
    without_client, state_without = step(agg, make_initial_state(agg), rows, signal_spacing=0.3)
    torch.testing.assert_close(with_client, without_client, atol=0, rtol=0)
    assert_same(pack_state(after), pack_state(state_without), 0)


@failure_hint("Leave out the rows where `arrived.weights` is 0: the selector has excluded these clients.")
def test_clients_with_zero_weight_do_not_change_the_direction(agg: Any) -> None:
    """A client that the selector excludes has no effect, whatever update and reports it sent."""
    for kind in [agg, replace(agg, variant="second_order")] if hasattr(agg, "variant") else [agg]:
        rows = [update(kind, k, vector(k), n=k + 1) for k in range(3)]
        all_updates = collect_updates(kind, [*rows, update(kind, 5, vector(5), n=4)], keep_matrix=True)
        reweighted = replace_update_weights(all_updates, all_updates.weights * (all_updates.clients != 5))
        with_clients, after = close(kind, make_initial_state(kind), reweighted, signal_spacing=0.3)
        without_clients, state_without = step(kind, make_initial_state(kind), rows, signal_spacing=0.3)
        torch.testing.assert_close(with_clients, without_clients, atol=1e-12, rtol=0)
        assert_same(pack_state(after), pack_state(state_without), 1e-12)


@failure_hint("Declare `requirements = {RELATIVE_ADVICE}`, or multiply the direction by the sum of `arrived.weights`.")
def test_absolute_weights_keep_their_sum_or_are_rejected(agg: Any) -> None:
    all_updates = collect_updates(agg, [update(agg, k, vector(k), n=k + 1) for k in range(3)], keep_matrix=True)
    plain, weighted = (
        close(agg, make_initial_state(agg), replace_update_weights(all_updates, share, are_weights_absolute=True))[0]
        for share in (all_updates.weights, all_updates.weights * 0.693)
    )
    keeps_sum = torch.allclose(weighted, 0.693 * plain, atol=1e-12, rtol=0)
    assert keeps_sum == (RELATIVE_ADVICE not in agg.requirements)


@failure_hint("Weigh each update by `arrived.weights`, or declare `recommendations = {UNADVISED_WEIGHTS}`.")
def test_relative_weights_are_used_or_a_notice_says_that_they_are_not(agg: Any) -> None:
    """Losses are equal, and the selector advises four times the weight for the second of two clients.

    More than half of that weight has an effect on the model, or a notice at start-up says that it need not have.
    """
    rows = [update(agg, k, torch.eye(P, dtype=torch.float64)[k]) for k in range(2)]
    all_updates = collect_updates(agg, rows, keep_matrix=True)
    before, after = (
        close(agg, make_initial_state(agg), replace_update_weights(all_updates, np.array(share)))[0]
        for share in ([1.0, 1.0], [1.0, 4.0])
    )
    relative_change = float(after[1] / after[0]) / float(before[1] / before[0])
    assert relative_change < 3.6 if UNADVISED_WEIGHTS in agg.recommendations else relative_change > 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@failure_hint("Ignore losses that are not finite; without a finite one return `arrived.mean` and the state as it was.")
def test_without_finite_losses_the_direction_is_the_plain_mean(agg: Any, value: float) -> None:
    if not any(signal.endswith("loss") for signal in agg.needs):
        pytest.skip("it reads no loss")
    rows, state = collect_updates(agg, [update(agg, k, vector(k), n=k + 1) for k in range(3)]), make_initial_state(agg)
    for single in (False, True):  # a client's report has an effect on its own weight only
        signals = dict.fromkeys(agg.needs, np.array([0.7 if single else value, value, value]))
        if "lr" in agg.needs:  # the server sets it
            signals["lr"] = np.full(3, 0.7)
        direction, after = agg.direction(state, make_arrived(rows, signals, agg.needs))
        assert torch.isfinite(direction.displacement).all()
        if not single:
            torch.testing.assert_close(direction.displacement, rows.mean, atol=1e-12, rtol=0)
            assert_same(pack_state(after), pack_state(state), 0)


@failure_hint("Set `stacked = True` exactly where `direction` reads `arrived.matrix`.")
def test_only_aggregators_with_stacked_read_the_update_matrix(agg: Any) -> None:
    """Only these aggregators keep the matrix, which holds the updates of a cohort in memory."""
    all_updates = collect_updates(agg, [update(agg, k, vector(k), n=k + 1) for k in range(3)])
    assert (all_updates.updates is not None) == agg.stacked
    without_matrix = replace(all_updates, updates=None, client_vectors=None)
    if not agg.stacked:
        assert torch.isfinite(close(agg, make_initial_state(agg), without_matrix, signal_spacing=0.3)[0]).all()
        return
    with pytest.raises(ValueError, match="matrix of updates"):
        close(agg, make_initial_state(agg), without_matrix, signal_spacing=0.3)


@failure_hint(
    "Keep everything that changes between rounds in the State dataclass, as arrays, tensors, numbers or texts."
)
def test_a_restored_state_continues_identically(agg: Any) -> None:
    state = step(agg, make_initial_state(agg), [update(agg, k, vector(k)) for k in range(3)], signal_spacing=0.3)[1]
    loaded = save_and_restore(state)
    rows = [update(agg, k, vector(10 + k)) for k in (1, 4)]
    a, after = step(agg, copy.deepcopy(state), rows, signal_spacing=0.3)
    b, restored_state = step(agg, loaded, rows, signal_spacing=0.3)
    assert torch.equal(a, b)
    assert_same(pack_state(after), pack_state(restored_state), 0)


@failure_hint("Copy what you change: `direction` returns a new state and leaves its argument alone.")
def test_the_input_state_is_not_modified(agg: Any) -> None:
    state = make_initial_state(agg)
    before = copy.deepcopy(pack_state(state))
    step(agg, state, [update(agg, k, vector(3 + k)) for k in range(2)], signal_spacing=0.3)
    assert_same(pack_state(state), before, 0)


@failure_hint(
    "Draw from `arrived.required_server_models.rng(purpose)`, never from torch's or NumPy's global generator."
)
def test_global_generators_are_untouched(agg: Any) -> None:
    before = global_rng_guard.global_states()
    step(agg, make_initial_state(agg), [update(agg, k, vector(k)) for k in range(3)])
    assert global_rng_guard.global_states() == before


@failure_hint("Return from `broadcast` one vector of n_params numbers for each name in the hooks' `downloads`.")
def test_the_vectors_that_hooks_download_are_broadcast(agg: Any) -> None:
    downloads = {name for hook in agg.hooks for name in hook.downloads}
    assert set(agg.broadcast(make_initial_state(agg))) == downloads
    assert all(v.shape == (P,) for v in agg.broadcast(make_initial_state(agg)).values())


def assert_same(a: Any, b: Any, atol: float) -> None:
    """Assert that two packed states are equal within `atol`."""
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, atol=atol, rtol=0, equal_nan=True)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name], atol)
    else:
        assert a == b
