"""Helpers for tests of FLASH: a selector that plays rounds with given losses and durations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from config_options import make_typed
from fedcohort.bandit.ridge import Ridge
from fedcohort.selector.contexts import State
from fedcohort.selector.flash import Flash
from fedcohort.types import Population, ProbeResult
from selector_harness import make_context, make_outcome

NAN, INF = float("nan"), float("inf")
RAW_FEATURES: dict[str, Any] = {"scale": "none"}


def make_flash(**changes: Any) -> Flash:
    return make_typed(Flash, "selector", "flash", **changes)


def make_probe_results(robust_loss: Sequence[float], val_loss: Sequence[float]) -> Mapping[str, ProbeResult]:
    all_clients = np.arange(len(robust_loss))
    values = {"robust_loss": robust_loss, "val_loss": val_loss}
    return {signal: ProbeResult(all_clients, np.array(column, float)) for signal, column in values.items()}


def play_losses(
    selector: Flash,
    losses: Sequence[tuple[Sequence[float], Sequence[float]]],
    trained: Sequence[Mapping[int, float]],
    n_train: Sequence[int] = (1, 1),
    failed_by_round: Sequence[Sequence[int]] = (),
    server: Sequence[float] = (),
) -> list[State]:
    """Play rounds and return the state after each.

    The last round selects without training, so that a fresh context learns from the last measurement.

    Args:
        selector: the selector to play.
        losses: (robust loss, validation loss) of all clients for each w_t.
        trained: seconds by client for the cohort of each round.
        n_train: samples of each client.
        failed_by_round: clients that fail in each round.
        server: the server's validation loss of each w_t.
    """
    K = len(n_train)
    state = selector.init(Population(K, 2, 1, {"n_train": np.array(n_train)}))
    has_fresh_context = selector.context == "fresh"
    states = []
    empty_rounds: Sequence[Mapping[int, float]] = [{}] * (len(losses) - len(trained))
    for t, (measured, seconds) in enumerate(zip(losses, [*trained, *empty_rounds], strict=True)):
        probes = make_probe_results(*measured)
        chosen = sorted({*seconds, *(failed_by_round[t] if t < len(failed_by_round) else ())}) or [0]
        server_signal = {"server_val_loss": server[t]} if server else {}
        ctx = make_context(t, len(chosen), K, available=chosen, signals=server_signal)
        state = selector.select(state, ctx, probes if has_fresh_context else {})[1]
        failed_clients = [k for k in chosen if k not in seconds]
        durations = {"duration": list(seconds.values())}
        state = selector.observe(
            state, make_outcome(t, list(seconds), {} if has_fresh_context else probes, failed_clients, **durations)
        )[1]
        states.append(state)
    return states


def get_ridge(state: State) -> Ridge:
    assert isinstance(state.posterior, Ridge)
    return state.posterior


def theta(state: State) -> np.ndarray:
    return np.linalg.solve(get_ridge(state).V, get_ridge(state).b)


# Two clients: both train in round 0 (1 s and 2 s), then only client 1 (1 s). Losses are those of w_0, w_1 and w_2.
LOSSES = [([1.0, 1.0], [1.0, 1.0]), ([0.8, 0.5], [0.9, 0.6]), ([0.75, 0.1], [0.9, 0.6])]
SECONDS = [{0: 1.0, 1: 2.0}, {1: 1.0}, {}]
