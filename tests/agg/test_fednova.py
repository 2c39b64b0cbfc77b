"""FedNova's closed forms."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import collect_updates, make_arrived, make_layout, make_update
from config_options import make_component
from fedcohort.round.arrivals import replace_update_weights
from fedcohort.signal.base import find_signal
from fedcohort.types import ClientUpdate
from run_harness import run_training, startup_notices
from signal_kinds import find_reported
from tolerances import ApproxTolerance

EXACT: ApproxTolerance = {"abs": 1e-12}


def client(k: int, D: float, a: float, n: int = 1, steps: int | None = None) -> ClientUpdate:
    return make_update(k, [D], n=n, response=a, steps=int(a) if steps is None else steps)


def nova(
    updates: Sequence[ClientUpdate], weights: Sequence[float] | None = None, **options: Any
) -> tuple[float, list[float]]:
    """(displacement, weights) of a one-parameter model; weights: what a selector advises."""
    agg = make_component("agg", "fednova", **options)
    collected = collect_updates(agg, updates, make_layout(1))
    if weights is not None:
        collected = replace_update_weights(collected, np.array(weights, dtype=np.float64), are_weights_absolute=True)
    rows = {update.client: update for update in updates}
    signals = {w: np.array([find_reported(w).read(rows[int(k)]) for k in collected.clients]) for w in agg.needs}
    direction, _ = agg.direction(None, make_arrived(collected, signals, agg.needs))
    return float(direction.displacement), direction.weights.tolist()


def test_unequal_work_has_equal_influence() -> None:
    # D / a = -1, -2; tau_eff = (2 + 6) / 2 = 4: 4 (-1/2 - 2/2) = -6, and FedAvg -7
    displacement, weights = nova([client(0, -2, 2), client(1, -12, 6)])
    assert displacement == pytest.approx(-6, **EXACT)
    assert weights == pytest.approx([4 / 2 / 2, 4 / 2 / 6], **EXACT)  # tau_eff p / a


def test_clients_are_weighted_by_samples() -> None:
    # p = 1/4, 3/4; tau_eff = .25 + 3 = 3.25; D / a = -4, -1.5: 3.25 (-1 - 1.125) = -6.90625, and FedAvg -5.5
    assert nova([client(0, -4, 1, n=1), client(1, -6, 4, n=3)])[0] == pytest.approx(-6.90625, **EXACT)
    # uniform: tau_eff 2.5, 2.5 (-2 - .75)
    displacement, _ = nova([client(0, -4, 1, n=1), client(1, -6, 4, n=3)], weighting="uniform")
    assert displacement == pytest.approx(-6.875, **EXACT)


def test_momentum_counts_as_more_than_its_steps() -> None:
    # rho = .9, K = 2, 4: a = 2.9, 9.049; tau_eff = 5.9745; (-1 / 2.9 - 2 / 9.049) / 2 of it
    pair = [client(0, -1, 2.9, steps=2), client(1, -2, 9.049, steps=4)]
    assert nova(pair)[0] == pytest.approx(-1.6903249073, abs=1e-10)
    # by mean steps it is 3 in place of 5.9745
    assert nova(pair, tau_eff="steps")[0] == pytest.approx(-1.6903249073 * 3 / 5.9745, abs=1e-10)


@pytest.mark.parametrize("a", [1.0, 5.61])
def test_equal_work_equals_fedavg(a: float) -> None:
    # n = 1, 3: (4 + 3 * 8) / 4 = 7
    assert nova([client(0, 4, a, n=1), client(1, 8, a, n=3)])[0] == pytest.approx(7, **EXACT)


@pytest.mark.parametrize(("a", "steps"), [(0.0, 0), (1e-13, 3), (float("nan"), 3), (float("inf"), 3), (-1.0, 3)])
def test_a_client_without_steps_is_left_out(a: float, steps: int) -> None:
    # the other two as above, whatever the third says
    other_clients = [client(0, -2, 2), client(1, -12, 6)]
    displacement, weights = nova([*other_clients, client(2, 100, a, n=50, steps=steps)])
    assert displacement == pytest.approx(-6, **EXACT)
    assert weights[2] == 0
    assert nova([*other_clients, client(2, 100, a, n=50, steps=steps)], tau_eff="steps")[0] == pytest.approx(
        -6, **EXACT
    )


def test_without_any_steps_the_direction_is_zero() -> None:
    assert nova([client(0, 3, 0), client(1, 4, 0)]) == (0.0, [0.0, 0.0])


def test_the_sum_of_a_selectors_weights_counts_once() -> None:
    # Weights 1 and 2: tau_eff = (2 + 12) / 3, 14 / 3 (-1 - 4) = -70 / 3. One left out: the other has all three.
    pair = [client(0, -2, 2), client(1, -12, 6)]
    assert nova(pair, weights=[1, 2])[0] == pytest.approx(-70 / 3, **EXACT)
    assert nova([client(0, -2, 2), client(1, 7, 0)], weights=[1, 2])[0] == pytest.approx(3 * 2 * -1, **EXACT)
    assert nova([client(0, -2, 2), client(1, 7, 0)], weights=[0, 2]) == (0.0, [0.0, 0.0])


@pytest.mark.parametrize("scale", [0.693, 3.0])
def test_equal_work_equals_fedavg_for_any_sum_of_weights(scale: float) -> None:
    # scale (4 + 3 * 8) / 4
    rows = [client(0, 4, 2.9), client(1, 8, 2.9)]
    assert nova(rows, weights=[scale / 4, scale * 3 / 4])[0] == pytest.approx(scale * 7, **EXACT)


def test_the_fixed_point_is_near_the_optimum_unlike_fedavgs() -> None:
    # f = w^2 / 2 with 1 step, (w - 1)^2 / 2 with 9, lr .01: one goes -.01 w, the other f (1 - w), f = 1 - .99^9.
    # FedAvg: .01 w = f (1 - w), w = .89635. FedNova: .01 w = f / 9 (1 - w), w = .49004: the optimum 1/2, for lr -> 0.
    step_of_nine = 1 - 0.99**9
    updates_by_start = [[client(0, -0.01 * w, 1), client(1, step_of_nine * (1 - w), 9)] for w in (0.0, 1.0)]
    for (low, high), fixed_point in (
        (map(_average, updates_by_start), 0.89635),
        ((nova(pair)[0] for pair in updates_by_start), 0.49004),
    ):
        assert low / (low - high) == pytest.approx(fixed_point, abs=1e-5)


def _average(updates: Sequence[ClientUpdate]) -> float:
    agg = make_component("agg", "fedavg")
    return float(agg.direction(None, make_arrived(collect_updates(agg, updates)))[0].displacement)


def test_clients_report_their_normaliser_and_steps() -> None:
    # 8 bytes an update
    assert sum(find_signal(signal).bytes_up for signal in make_component("agg", "fednova").needs) == 8
    assert find_reported("response_norm").read(client(0, 0, 2.9, steps=2)) == 2.9


def test_a_run_charges_and_reports_the_normaliser(tmp_path: Path) -> None:
    # Momentum .9, two local steps each: a = 2.9. Four clients a round, three rounds, 8 bytes.
    overrides = ("client.momentum=0.9", "client.steps=2")
    plain, run = run_training(tmp_path, "agg=fedavg", *overrides), run_training(tmp_path, "agg=fednova", *overrides)
    arrived = run.last.clients["arrived"]
    np.testing.assert_allclose(run.last.clients["signal_response_norm"][arrived], 2.9, rtol=1e-12)
    np.testing.assert_array_equal(run.last.clients["signal_steps"][arrived], 2)
    assert run.last.metrics["comm/up_bytes"] - plain.last.metrics["comm/up_bytes"] == 3 * 4 * 8
    # equal work: FedAvg
    torch.testing.assert_close(run.weights(), plain.weights(), atol=1e-6, rtol=0)


def test_partial_work_is_normalised(tmp_path: Path) -> None:
    overrides = ("deadline=fixed", "deadline.k=0.8", "deadline.partial_work=true", "client.batch=5", "client.epochs=4")
    run, plain = run_training(tmp_path, "agg=fednova", *overrides), run_training(tmp_path, "agg=fedavg", *overrides)
    last = run.last.clients
    assert len(set(last["signal_steps"][last["arrived"]])) > 1
    assert not torch.equal(run.weights(), plain.weights())
    # weight = tau_eff p / a, so that sum_i weight_i a_i = tau_eff = sum_i p_i a_i, here with the weights of FedAvg
    a = last["signal_response_norm"][last["arrived"]]
    p = plain.last.clients["weight"][plain.last.clients["arrived"]]
    assert last["weight"][last["arrived"]] @ a == pytest.approx(p @ a)


@pytest.mark.parametrize(("override", "expected"), [("client=sgd", 0), ("client.momentum=0.9", 0), ("client=adam", 1)])
def test_a_notice_says_where_steps_replace_the_normaliser(override: str, expected: int) -> None:
    messages = startup_notices("agg=fednova", override)
    assert len(messages) == expected
    assert all("is not defined for client=adam: the number of steps replaces it" in line for line in messages)
