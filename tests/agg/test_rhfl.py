"""RHFL's client confidence and alignment."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import Score, collect_updates, make_arrived, make_population, make_round_models, make_update
from case_loop import for_all
from config_options import make_component
from fedcohort.agg.base import Direction
from fedcohort.agg.rhfl import SAME_PARTICIPATION_REQUIREMENT, State, confidence_weights, mean_prediction_of_others
from fedcohort.errors import IncompatibleConfig
from fedcohort.maths.distil import distillation_loss
from fedcohort.round.arrivals import replace_update_weights
from fedcohort.round.server_models import RoundModels
from optional_values import not_none
from round_harness import run_without_files
from run_harness import run_training, startup_notices

NO_MEASUREMENT = math.nan


@for_all(
    "losses_before, losses_after, omega",
    [
        # F = (1, 1/3, 1/19), shares of their sum 1.38596; W = 1/2 + shares / 2 = (.8607595, .6202532, .5189873)
        ([2, 2, 2], [1, 1.5, 1.9], [0.4005223, 0.3149025, 0.2845751]),
        # F = (1, 1/3, 0); without the guard F_3 = -.2 and omega = (.42843, .31926, .25232)
        ([2, 2, 2], [1, 1.5, 2.5], [0.4055002, 0.3158038, 0.2786960]),
        # Everybody got worse: without the guard (.5312, .4688), more for the worse one.
        ([2, 2], [3, 2.5], [0.5, 0.5]),
        # Seen for the first time: F = 0. The other one has the whole sum: W = (1, 1.5).
        ([NO_MEASUREMENT, 2], [1, 1], [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))]),
        ([NO_MEASUREMENT, NO_MEASUREMENT, NO_MEASUREMENT], [1, 2, 3], [1 / 3, 1 / 3, 1 / 3]),
        ([2, 2, 2], [1.5, 1.5, 1.5], [1 / 3, 1 / 3, 1 / 3]),
        ([2], [1], [1.0]),
        ([1, 1], [0, 1], [1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5))]),
    ],
)
def test_client_confidence_by_hand(losses_before: list[float], losses_after: list[float], omega: list[float]) -> None:
    confidence = confidence_weights(
        np.array(losses_before, dtype=float), np.array(losses_after, dtype=float), 0.5, np.full(len(losses_after), 0.3)
    )
    assert confidence.tolist() == pytest.approx(omega, abs=1e-7)
    assert confidence.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_a_single_client_has_full_confidence() -> None:
    assert confidence_weights(np.array([1e300]), np.array([0.0]), 0.5, np.ones(1)).tolist() == [1.0]


def test_confidence_multiplies_the_advised_weights() -> None:
    # F = (1, 0): e^W in the proportion e^.5 : 1, times 1 : 3
    confidence = confidence_weights(np.array([2.0, 2.0]), np.array([1.0, 2.0]), 0.5, np.array([0.25, 0.75]))
    assert confidence.tolist() == pytest.approx(
        [math.exp(0.5) / (math.exp(0.5) + 3), 3 / (math.exp(0.5) + 3)], abs=1e-12
    )


def test_equal_advised_weights_change_no_bit() -> None:
    losses_before, losses_after = np.linspace(2, 3, 7), np.array([1.0, 1.3, 2.9, 1.7, 2.2, 0.3, 4.0])
    gain = np.maximum(losses_before - losses_after, 0) / losses_after
    e = np.exp(0.5 * gain / gain.sum() - (0.5 * gain / gain.sum()).max())
    assert confidence_weights(losses_before, losses_after, 0.5, np.full(7, 1 / 7)).tolist() == (e / e.sum()).tolist()


@pytest.mark.parametrize("mode", ["weights_only", "align_average"])
def test_an_advised_weight_changes_the_direction(mode: str) -> None:
    # Nobody was seen before, so that confidence is equal; lr is so small that nothing is aligned: .2 1 + .8 6
    agg = make_component("agg", "rhfl", mode=mode, lr=1e-12)
    arrivals = collect_updates(agg, [make_update(0, [1.0]), make_update(1, [6.0])])
    signals = {"sce_loss": np.array([1.0, 1.0])}
    advised = replace_update_weights(arrivals, np.array([1.0, 4.0]))
    direction, _ = agg.direction(agg.init(make_population(2), 1), make_arrived(advised, signals, agg.needs))
    assert direction.displacement.tolist() == pytest.approx([5.0], abs=1e-6)
    assert not_none(direction.weights).tolist() == pytest.approx([0.2, 0.8], abs=1e-12)


def test_the_mixture_of_others_equals_the_sum_over_pairs() -> None:
    # omega = (.5, .3, .2), p_1 = softmax(1, 0, 0), p_2 = softmax(0, 1, 0), own logits (.2, .1, 0): the gradient of
    # .5 KL(p_1 || p) + .3 KL(p_2 || p) is .5 (p - p_1) + .3 (p - p_2).
    own_logits = torch.tensor([[0.2, 0.1, 0.0]], dtype=torch.float64, requires_grad=True)
    other_predictions = torch.eye(3, dtype=torch.float64)[:2, None]
    p = torch.cat([other_predictions, own_logits.detach()[None]]).softmax(2)
    omega, mixture, pull = mean_prediction_of_others(p, torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(pull[2] * distillation_loss(mixture[2], own_logits), own_logits)
    assert gradient[0].tolist() == pytest.approx([-0.0579085888, -0.0130258494, 0.0709344382], abs=1e-9)
    assert omega.tolist() == [0.5, 0.3, 0.2]
    assert pull.tolist() == pytest.approx([0.5, 0.7, 0.8], abs=1e-12)


@pytest.mark.parametrize("beta", [10.0, 16.0, 30.0])
def test_the_mixture_of_others_is_exact_for_a_model_with_nearly_all_of_the_weight(beta: float) -> None:
    """Confidences (1, e^-beta, e^-beta): the others' mean prediction is their plain mean, also in float32."""
    omega = torch.tensor([1.0, math.exp(-beta), math.exp(-beta)]) / (1 + 2 * math.exp(-beta))
    p = torch.tensor([[[0.8, 0.2]], [[0.3, 0.7]], [[0.5, 0.5]]])
    _, mixture, pull = mean_prediction_of_others(p, omega)
    assert mixture[0, 0].tolist() == pytest.approx([0.4, 0.6], rel=1e-6)
    assert pull.tolist() == pytest.approx([float(omega[1] + omega[2]), 1, 1], rel=1e-4)


def test_non_finite_predictions_are_left_out() -> None:
    p = torch.tensor([[[0.9, 0.1]], [[math.nan, 0.1]], [[0.3, 0.7]]], dtype=torch.float64)
    omega, mixture, pull = mean_prediction_of_others(p, torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64))
    assert omega.tolist() == [0.5, 0.0, 0.2]
    assert mixture[0, 0].tolist() == pytest.approx([0.3, 0.7])
    assert pull.tolist() == pytest.approx([0.2, 0.0, 0.5])


def test_one_non_finite_sample_excludes_the_client() -> None:
    p = torch.tensor([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [math.nan, 0.1]]], dtype=torch.float64)
    omega, mixture, pull = mean_prediction_of_others(p, torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert omega.tolist() == [0.5, 0.0]
    assert bool(torch.isfinite(mixture).all())
    assert pull.tolist() == [0.0, 0.0]


def step(
    agg: Any, state: State, deltas: dict[int, list[float]], losses: list[float], round_models: RoundModels | None = None
) -> tuple[Direction, State]:
    collected = collect_updates(agg, [make_update(k, delta) for k, delta in deltas.items()])
    result: tuple[Direction, State] = agg.direction(
        state, make_arrived(collected, {"sce_loss": np.array(losses)}, agg.needs, round_models)
    )
    return result


def test_a_loss_is_kept_until_the_client_arrives_again() -> None:
    agg = make_component("agg", "rhfl", mode="weights_only")
    first, state = step(agg, agg.init(make_population(4), 1), {0: [3.0], 1: [0.0], 3: [0.0]}, [2, 2, 2])
    assert first.displacement.tolist() == pytest.approx([1.0], abs=1e-12)  # no client has been seen: equal weights
    _, state = step(agg, state, {0: [0.0], 2: [0.0]}, [5, 7])
    np.testing.assert_array_equal(state.last_losses, [5, 2, 7, 2])
    last, _ = step(agg, state, {1: [1.0], 3: [0.0]}, [1, 2])
    # F = (1, 0): omega_1 = 1 / (1 + e^-beta)
    assert last.displacement.tolist() == pytest.approx([1 / (1 + math.exp(-0.5))], abs=1e-12)


def test_without_beta_the_direction_is_the_plain_mean() -> None:
    agg = make_component("agg", "rhfl", mode="weights_only", beta=0)
    direction, _ = step(agg, State(np.full(3, 2.0)), {0: [3.0], 1: [1.0], 2: [2.0]}, [1, 2, 0.1])
    assert direction.displacement.tolist() == pytest.approx([2.0], abs=1e-12)


@pytest.mark.parametrize("mode", ["weights_only", "align_average"])
def test_a_loss_that_is_not_finite_leaves_its_client_out(mode: str) -> None:
    agg = make_component("agg", "rhfl", mode=mode)
    state = State(np.array([2.0, 2.0, 2.0]))
    direction, after = step(agg, state, {0: [1.0], 1: [50.0], 2: [1.0]}, [1, math.nan, 1.5])
    assert not_none(direction.weights).tolist()[1] == 0
    assert not_none(direction.weights).sum() == pytest.approx(1, abs=1e-12)
    assert direction.displacement.tolist() == pytest.approx([1.0], abs=1e-9)
    assert after.last_losses.tolist() == [1.0, 2.0, 1.5]
    no_clients, unchanged = step(agg, state, {0: [1.0], 1: [3.0]}, [math.inf, math.nan])
    assert no_clients.displacement.tolist() == [2.0]
    assert unchanged.last_losses.tolist() == [2.0, 2.0, 2.0]


def align_model(x: list[float], **options: Any) -> float:
    """Models at 3 and -3 see `x`, a number a sample; F = (1, 0). Where the first one ends, if the other mirrors it."""
    omega = 1 / (1 + math.exp(-0.5))
    round_models = make_round_models(1, torch.tensor(x, dtype=torch.float64)[:, None])
    agg = make_component("agg", "rhfl", lr=0.01, **options)
    direction, _ = step(agg, State(np.array([2.0, 2.0])), {0: [3.0], 1: [-3.0]}, [1.0, 2.0], round_models)
    assert not_none(direction.weights).tolist() == pytest.approx([omega, 1 - omega], abs=1e-12)
    return float(direction.displacement) / (2 * omega - 1)


class Bytes(Score):
    """The model, of inputs that it makes numbers itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.double())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float64])
def test_inputs_can_be_bytes_or_tokens(dtype: torch.dtype) -> None:
    # As `align_model` with a proxy of 1: weights are no inputs, and 0.62 as a byte is 0.
    omega = 1 / (1 + math.exp(-0.5))
    round_models = make_round_models(1, torch.ones((1, 1), dtype=dtype), Bytes(1))
    state = State(np.array([2.0, 2.0]))
    direction, _ = step(make_component("agg", "rhfl", lr=0.01), state, {0: [3.0], 1: [-3.0]}, [1.0, 2.0], round_models)
    assert not_none(direction.weights).tolist() == pytest.approx([omega, 1 - omega], abs=1e-12)
    assert float(direction.displacement) == pytest.approx((2 * omega - 1) * 2.99, abs=1e-6)


def test_models_step_towards_each_other() -> None:
    # w = 3 and -3: Adam's first step is lr long, down for one and up for the other, whatever the gradients; what one
    # learns is where the other was, not where it has gone. omega_1 (3 - .01) - omega_2 (3 - .01).
    assert align_model([1.0]) == pytest.approx(2.99, abs=1e-6)


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_new_adam_forgets_the_last_batch(is_fresh: bool) -> None:
    # Gradients of two sizes: forgotten, each step is lr long. Remembered, the second one is about 0.7 lr.
    end = align_model([1.0, 0.05], batch=1, fresh_adam=is_fresh)
    assert (abs(end - 2.98) < 1e-4) is is_fresh


@pytest.mark.parametrize(("batches", "steps"), [(None, 2), (1, 1), (5, 5)])
def test_the_number_of_alignment_steps(batches: int | None, steps: int) -> None:
    # Two samples in batches of one: a pass has two steps, each lr long.
    assert align_model([1.0, 1.0], batch=1, batches=batches) == pytest.approx(3 - 0.01 * steps, abs=1e-6)


def test_a_model_whose_predictions_overflow_has_no_weight() -> None:
    round_models = make_round_models(1, torch.full((1, 1), 10.0, dtype=torch.float64))
    state = State(np.array([2.0, 2.0, 2.0]))
    direction, _ = step(
        make_component("agg", "rhfl"), state, {0: [1.0], 1: [1.0], 2: [1e308]}, [1.0, 1.0, 1.0], round_models
    )
    assert not_none(direction.weights).tolist() == [0.5, 0.5, 0.0]
    assert direction.displacement.tolist() == pytest.approx([1.0], abs=1e-12)


def test_a_non_finite_model_does_not_stop_the_others() -> None:
    """If a first model's predictions overflow, the other two still step .01 towards each other (see `align_model`)."""
    round_models = make_round_models(1, torch.full((1, 1), 10.0, dtype=torch.float64))
    state, losses = State(np.array([2.0, 2.0, 2.0])), [1.0, 1.0, 2.0]
    direction, _ = step(
        make_component("agg", "rhfl", lr=0.01), state, {0: [1e308], 1: [3.0], 2: [-3.0]}, losses, round_models
    )
    weights = not_none(direction.weights)
    assert weights[1] > weights[2] > weights[0] == 0
    assert float(direction.displacement) == pytest.approx(float(weights[1] - weights[2]) * 2.99, abs=1e-6)


def test_a_single_client_has_no_peers() -> None:
    round_models = make_round_models(1)
    direction, _ = step(make_component("agg", "rhfl"), State(np.array([2.0])), {0: [3.0]}, [1.0], round_models)
    assert direction.displacement.tolist() == [3.0]
    assert round_models.passes == 0


@pytest.mark.parametrize(("mode", "passes"), [("align_average", 36), ("weights_only", 0)])
def test_the_servers_passes_are_counted(mode: str, passes: int) -> None:
    # K = 3 models predict each of n = 3 proxies (in batches of 2 and 1), and take a step of 3 passes: 3 * 3 * (1 + 3).
    round_models = make_round_models(1, torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64))
    agg = make_component("agg", "rhfl", mode=mode, batch=2, lr=1e-4)
    step(agg, State(np.full(3, 2.0)), {0: [3.0], 1: [1.0], 2: [-2.0]}, [1.0, 2.0, 0.5], round_models)
    assert round_models.passes == passes


def test_a_notice_recommends_ccr_without_alignment() -> None:
    line = "agg.mode=weights_only is FedAvg weighted by RHFL's client confidence, not RHFL: use its name, agg=ccr"
    assert line in startup_notices("agg=rhfl", "agg.mode=weights_only")
    assert line not in startup_notices("agg=rhfl", "proxy=noise")
    assert line not in startup_notices("agg=ccr")


def test_rhfl_runs_complete(tmp_path: Path) -> None:
    aligned_run = run_without_files("agg=rhfl", "proxy=client_heldout")
    assert aligned_run.info.choices["objective"] == "sce"
    assert (
        aligned_run.last.metrics["comm/probe_bytes"] == 3 * 4 * 4
    )  # a number from each of four clients in three rounds
    without_alignment = run_without_files("agg=ccr")
    assert not torch.equal(aligned_run.weights(), without_alignment.weights())
    plain = run_without_files("agg=fedavg", "agg.weighting=uniform", "objective=sce", "rounds=1")
    equal_weights = run_without_files("agg=ccr", "agg.beta=0", "rounds=1")
    torch.testing.assert_close(equal_weights.weights(), plain.weights(), atol=1e-6, rtol=0)
    with pytest.raises(IncompatibleConfig, match=r"with proxy=none the server has no inputs"):
        run_training(tmp_path, "agg=rhfl")
    with pytest.raises(IncompatibleConfig, match=r"agg=ccr stands for agg.mode=weights_only, but agg.mode=align_aver"):
        run_training(tmp_path, "agg=ccr", "agg.mode=align_average", "proxy=noise")


@pytest.mark.parametrize(("beta", "recommendations"), [(0.0, set()), (0.5, {SAME_PARTICIPATION_REQUIREMENT})])
def test_gains_between_rounds_recommend_equal_absence(beta: float, recommendations: set[str]) -> None:
    assert make_component("agg", "rhfl", beta=beta).recommendations == recommendations
