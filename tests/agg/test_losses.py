"""Whose losses count, and how much: what all aggregators that weigh by losses have in common."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import collect_updates, make_arrived, make_update
from case_loop import for_all
from config_options import make_component
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived
from loss_weighting_harness import LR, aggregate_losses, loss_weights
from optional_values import not_none
from round_harness import run_without_files
from run_harness import FinishedRun

FAIR = ("fedmaba", "qffl", "afl", "term")
FLAT: dict[str, dict[str, float]] = {
    "fedmaba": {"alpha": 0.0},
    "qffl": {"q": 0.0},
    "afl": {"gamma": 0.0},
    "term": {"tilt": 0.0},
}
STEEP: dict[str, dict[str, float]] = {
    "fedmaba": {"eta": 2.0, "rho": 5.0},
    "qffl": {"q": 2.0},
    "afl": {"gamma": 0.05},
    "term": {"tilt": 2.0},
}


def make_arrived_losses(values: list[float], advice: list[float] | None = None) -> Arrived:
    agg = make_component("agg", "term")
    collected = collect_updates(agg, [make_update(k, [1.0]) for k in range(len(values))])
    arrived = make_arrived(collected, {"loss": np.array(values)}, frozenset({"loss"}))
    return arrived if advice is None else replace(arrived, weights=np.array(advice))


@for_all("loss", losses.LOSS_SIGNALS)
@for_all("agg", ["fedmaba", "afl", "term"])
def test_aggregators_use_the_configured_loss(agg: str, loss: str) -> None:
    """Reading an undeclared signal would raise an error; weights do not depend on the name of the loss signal."""
    configured, default = make_component("agg", agg, loss=loss, **STEEP[agg]), make_component("agg", agg, **STEEP[agg])
    assert configured.needs == {loss}
    (_, state), (_, default_state) = (
        aggregate_losses(aggregator, [1.0, 3.0, 2.0]) for aggregator in (configured, default)
    )
    weights, usual_weights = (
        loss_weights(m, [2.0, 5.0, 1.0], state=s) for m, s in ((configured, state), (default, default_state))
    )
    np.testing.assert_array_equal(weights, usual_weights)


def test_the_cap_is_relative_to_the_median() -> None:
    rows, F = losses.read_valid_losses(make_arrived_losses([1.0, 2.0, 3.0, 1e9]), "loss", 2.0)
    assert rows.tolist() == [0, 1, 2, 3]
    assert F.tolist() == [1.0, 2.0, 3.0, 5.0]  # the median is 2.5
    assert losses.read_valid_losses(make_arrived_losses([1.0, 2.0, 3.0, 1e9]), "loss", None)[1].tolist() == [
        1.0,
        2.0,
        3.0,
        1e9,
    ]


def test_non_finite_losses_are_excluded_from_the_median() -> None:
    rows, F = losses.read_valid_losses(
        make_arrived_losses([float("nan"), 2.0, float("inf"), 100.0, 4.0, -float("inf")]), "loss", 1.0
    )
    assert rows.tolist() == [1, 3, 4]
    assert F.tolist() == [2.0, 4.0, 4.0]


def test_reported_losses_are_clipped_to_the_valid_range() -> None:
    assert losses.read_valid_losses(make_arrived_losses([-3.0, 1e300]), "loss", None)[1].tolist() == [
        0.0,
        losses.MAX_LOSS,
    ]


def test_clients_that_the_selector_excludes_get_no_weight() -> None:
    rows, F = losses.read_valid_losses(make_arrived_losses([1.0, 50.0, 3.0], advice=[0.5, 0.0, 0.5]), "loss", 1.0)
    assert rows.tolist() == [0, 2]
    assert F.tolist() == [1.0, 2.0]


@pytest.fixture(scope="module")
def means() -> tuple[FinishedRun, FinishedRun]:
    """FedAvg with equal weights, of a few clients and of all."""
    overrides = ("agg=fedavg", "agg.weighting=uniform")
    plain = run_without_files(*overrides, "rounds=2")
    return plain, run_without_files(*overrides, "selector=full", "rounds=3")


@pytest.mark.parametrize("choice", FAIR)
class TestAll:
    def test_without_steepness_the_direction_is_a_plain_mean(self, choice: str) -> None:
        agg = make_component("agg", choice, **FLAT[choice])
        direction, state = aggregate_losses(agg, [1.0, 5.0, 3.0], [[3.0, 0], [0, 6], [9, 9]])
        assert direction.displacement.tolist() == pytest.approx([4.0, 5.0], abs=1e-12)
        repeat, _ = aggregate_losses(agg, [2.0, 0.1], [[3.0, 0], [0, 6]], clients=[0, 2], state=state)
        assert repeat.displacement.tolist() == pytest.approx([1.5, 3.0], abs=1e-12)

    def test_a_higher_loss_weighs_more(self, choice: str) -> None:
        agg = make_component("agg", choice, **STEEP[choice])
        _, state = aggregate_losses(agg, [1.0, 2.0, 3.0])
        w = loss_weights(agg, [1.0, 2.0, 3.0], state=state)  # AFL ascends after it has aggregated
        assert w[0] < w[1] < w[2]

    def test_equal_losses_weigh_the_same(self, choice: str) -> None:
        w = loss_weights(make_component("agg", choice, **STEEP[choice]), [2.0, 2.0, 2.0], n_clients=5)
        np.testing.assert_allclose(w, np.full(3, w[0]), rtol=1e-12)

    @pytest.mark.parametrize("non_finite", [float("nan"), float("inf"), -float("inf")])
    def test_a_loss_that_is_not_finite_drops_its_client(self, choice: str, non_finite: float) -> None:
        agg = make_component("agg", choice, **STEEP[choice])
        with_client, after = aggregate_losses(agg, [1.0, non_finite, 3.0], [[1.0], [7.0], [2.0]], n_clients=4)
        without_client, state_without = aggregate_losses(agg, [1.0, 3.0], [[1.0], [2.0]], clients=[0, 2], n_clients=4)
        assert with_client.weights is not None
        assert with_client.weights[1] == 0
        torch.testing.assert_close(with_client.displacement, without_client.displacement, atol=1e-14, rtol=0)
        for name, value in vars(after).items() if after is not None else ():
            np.testing.assert_array_equal(value, getattr(state_without, name))

    def test_without_finite_losses_the_direction_is_the_mean_and_the_state_is_kept(self, choice: str) -> None:
        agg = make_component("agg", choice, **STEEP[choice])
        _, state = aggregate_losses(agg, [1.0, 3.0, 2.0])
        direction, after = aggregate_losses(agg, [float("nan")] * 3, [[1.0], [2.0], [6.0]], state=state)
        assert direction.displacement.tolist() == pytest.approx([3.0])
        assert after is state

    def test_a_single_client_gets_all_the_weight(self, choice: str) -> None:
        direction, _ = aggregate_losses(make_component("agg", choice), [2.0], [[4.0, -3.0]], clients=[3], n_clients=6)
        scale = direction.displacement.numpy() / np.array([4.0, -3.0])
        # q-FFL's step is shorter: 1 / (1 + q L |D|^2 / F), |D|^2 = 25
        expected = 1 / (1 + 0.005 * (1 / LR) * 25 / 2) if choice == "qffl" else 1.0
        np.testing.assert_allclose(scale, expected, rtol=1e-9)

    @pytest.mark.parametrize("claim", [1e6, 1e99, 1e300])
    def test_huge_reported_losses_give_a_finite_direction(self, choice: str, claim: float) -> None:
        agg = make_component("agg", choice, **STEEP[choice])
        state = None
        for _ in range(3):
            direction, state = aggregate_losses(agg, [1.0, claim, 0.0], [[1.0], [2.0], [3.0]], state=state)
            assert torch.isfinite(direction.displacement).all()
            assert np.isfinite(not_none(direction.weights)).all()

    def test_with_a_cap_the_size_of_a_false_loss_does_not_matter(self, choice: str) -> None:
        # the honest 1, 2, 3, 2 and a liar: the median of five is 2 whatever a claim above it
        agg = make_component("agg", choice, **STEEP[choice], loss_cap=1.5)
        states: dict[float, Any] = {3.0: None, 1e3: None, 1e50: None}
        for _ in range(3):
            weights_by_claim = {}
            for claim, state in states.items():
                direction, states[claim] = aggregate_losses(agg, [1.0, 2.0, 3.0, 2.0, claim], state=state)
                weights_by_claim[claim] = not_none(direction.weights)
            np.testing.assert_allclose(weights_by_claim[1e3], weights_by_claim[3.0], rtol=1e-12)
            np.testing.assert_allclose(weights_by_claim[1e50], weights_by_claim[3.0], rtol=1e-12)

    def test_a_run_without_steepness_equals_fedavg(self, choice: str, means: tuple[FinishedRun, FinishedRun]) -> None:
        option, value = next(iter(FLAT[choice].items()))
        fair = run_without_files(f"agg={choice}", f"agg.{option}={value}", "rounds=2")
        torch.testing.assert_close(fair.weights(), means[0].weights(), atol=1e-6, rtol=0)

    def test_a_run_with_steepness_differs_from_fedavg(
        self, choice: str, means: tuple[FinishedRun, FinishedRun]
    ) -> None:
        options = [f"agg.{name}={value}" for name, value in STEEP[choice].items()]
        fair = run_without_files(f"agg={choice}", *options, "selector=full", "rounds=3")
        before = -3 if choice == "afl" else -2  # AFL's weights are of the losses before last
        weight, loss = fair.last.clients["weight"], fair.reports[before].clients["loss"]
        assert torch.isfinite(fair.weights()).all()
        assert np.corrcoef(weight, loss)[0, 1] > 0.5
        # each round every client is asked for its loss: 4 bytes and a forward pass
        costs, plain = fair.last.metrics, means[1].last.metrics
        assert costs["comm/up_bytes"] - plain["comm/up_bytes"] == 3 * 12 * 4
        assert costs["comp/client_flops"] > plain["comp/client_flops"]
        assert costs["time/virtual_s"] > plain["time/virtual_s"]
