"""SCAFFOLD's closed forms: f_i = (w - a_i)^2 / 2, so that a gradient is w - a_i."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from agg_harness import CLIENT_CONTEXT, collect_updates, make_arrived, make_layout, make_population, make_update
from config_options import make_component
from fedcohort.agg.scaffold import PLAIN_SGD_REQUIREMENT
from fedcohort.component import UNRESTRICTED_UPDATE

A = (0.0, 2.0)


def train(agg: Any, state: Any, w: float, client: int, steps: int, c_i: float, lr: float = 0.1) -> Any:
    """The local steps of one client with a hand-written SGD."""
    y = torch.tensor([w], dtype=torch.float64)
    hook = agg.hooks[0]
    stored = {"c": torch.tensor([c_i], dtype=torch.float64)}
    correction = hook.begin(y.clone(), agg.broadcast(state), stored, CLIENT_CONTEXT)
    start = y.clone()
    for _ in range(steps):
        g = y - A[client]
        correction.correct(g, y)
        y = y - lr * g
    upload = correction.finish(y, steps, lr)
    return make_update(client, (y - start).tolist(), uploads=upload.uploads, stored=upload.stored)


def run_rounds(
    agg: Any, rounds: Sequence[Sequence[int]], steps: Sequence[int], w: float = 1.0
) -> list[tuple[float, ...]]:
    """(w, c, c_0, c_1) after each round."""
    state = agg.init(make_population(2), 1)
    c_i = {0: 0.0, 1: 0.0}
    history: list[tuple[float, ...]] = []
    for cohort in rounds:
        updates = [train(agg, state, w, k, steps[k], c_i[k]) for k in cohort]
        collected = collect_updates(agg, updates, make_layout(1))
        direction, state = agg.direction(state, make_arrived(collected))
        w += float(direction.displacement)
        c_i.update({k: float(collected.stored[k]["c"]) for k in cohort})
        history.append((w, float(state.c), c_i[0], c_i[1]))
    return history


@pytest.mark.parametrize("control", ["mean_gradient", "displacement"])
def test_three_scaffold_rounds_by_hand(control: str) -> None:
    history = run_rounds(make_component("agg", "scaffold", control=control), [[0, 1], [0], [1]], [2, 2])
    expected = [
        (1.0, 0.0, 0.95, -0.95),
        (0.9905, 0.02375, 0.9975, -0.95),
        (0.9972925, -0.00510625, 0.9975, -1.0077125),
    ]
    for result, expected_row in zip(history, expected, strict=True):
        assert result == pytest.approx(expected_row, abs=1e-12)


def test_the_server_variate_stays_the_mean_of_the_client_variates() -> None:
    # c = (1/N) sum c_i with N = all clients; dividing by the cohort breaks it in round 2.
    for _, c, c_0, c_1 in run_rounds(make_component("agg", "scaffold"), [[0, 1], [0], [1], [0], [0, 1]], [2, 3]):
        assert c == pytest.approx((c_0 + c_1) / 2, rel=1e-6, abs=1e-12)


def test_unequal_work_converges_to_the_optimum() -> None:
    # K = (1, 5): FedAvg with equal weights settles at 1.6075, SCAFFOLD at the mean of the optima.
    assert run_rounds(make_component("agg", "scaffold"), [[0, 1]] * 100, [1, 5])[-1][0] == pytest.approx(1.0, abs=1e-6)


def test_the_first_round_is_uniform_fedavg() -> None:
    agg = make_component("agg", "scaffold")
    ((w, *_),) = run_rounds(agg, [[0, 1]], [1, 5], w=0.5)
    # 1 step from 0.5 towards 0: 0.45; 5 steps towards 2: 2 - 1.5 * 0.9^5.
    assert w == pytest.approx((0.45 + 2 - 1.5 * 0.9**5) / 2, abs=1e-12)


def test_the_printed_formula_is_wrong_under_momentum() -> None:
    # A constant gradient 1, K = 10, rho = 0.9: the displacement over K eta is 4.1381, the mean gradient is 1.
    displacement = {}
    for control in ("mean_gradient", "displacement"):
        agg = make_component("agg", "scaffold", control=control)
        y = torch.zeros(1, dtype=torch.float64)
        state = agg.init(make_population(2), 1)
        correction = agg.hooks[0].begin(y.clone(), agg.broadcast(state), {}, CLIENT_CONTEXT)
        buffer = torch.zeros(1, dtype=torch.float64)
        for _ in range(10):
            g = torch.ones(1, dtype=torch.float64)
            correction.correct(g, y)
            buffer = 0.9 * buffer + g
            y = y - 0.1 * buffer
        displacement[control] = float(correction.finish(y, 10, 0.1).stored["c"])
    assert displacement["mean_gradient"] == pytest.approx(1.0, abs=1e-12)
    # K - rho (1 - rho^K) / (1 - rho), over (1 - rho) K
    assert displacement["displacement"] == pytest.approx((10 - 0.9 * (1 - 0.9**10) / 0.1) / 0.1 / 10, abs=1e-9)
    assert make_component("agg", "scaffold", control="displacement").requirements == {
        PLAIN_SGD_REQUIREMENT,
        UNRESTRICTED_UPDATE,
    }


def test_a_client_without_steps_changes_nothing() -> None:
    agg = make_component("agg", "scaffold")
    state = agg.init(make_population(2), 1)
    c_i = {"c": torch.tensor([0.25], dtype=torch.float64)}
    upload = (
        agg.hooks[0]
        .begin(torch.zeros(1, dtype=torch.float64), agg.broadcast(state), c_i, CLIENT_CONTEXT)
        .finish(torch.zeros(1, dtype=torch.float64), 0, 0.1)
    )
    assert float(upload.uploads["delta_c"]) == 0.0
    assert float(upload.stored["c"]) == 0.25


def test_a_stored_control_variate_gets_the_models_device_and_precision() -> None:
    """Rows of files and of checkpoints are on the host, in float32, wherever the model is and in whatever precision."""
    agg = make_component("agg", "scaffold")
    w = torch.zeros(2, dtype=torch.float64, device="meta")
    drift = agg.hooks[0].begin(w, agg.broadcast(agg.init(make_population(2), 2)), {"c": torch.ones(2)}, CLIENT_CONTEXT)
    assert (drift.c_i.device, drift.c_i.dtype) == (w.device, w.dtype)
