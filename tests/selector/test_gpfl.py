"""GPFL: rewards, values and bonus by hand, the released rule, failures, and the charge of the server's evaluations."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig
from fedcohort.selector.gpfl import State, sign_of_improvement
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import Population, RoundOutcome
from run_harness import run_training
from selector_harness import TwoLayers, ids, make_context, make_outcome
from signal_kinds import find_derived

N_TRAIN = np.array([30, 10, 20, 40, 50])
START = Population(5, 2, 2, {"n_train": N_TRAIN})
NAN = math.nan
Scores = tuple[tuple[float, float], tuple[float, float]]  # accuracy and loss, before and after
RISING, FALLING, CONSTANT = ((0.5, 1.0), (0.6, 1.0)), ((0.6, 1.0), (0.5, 0.9)), ((0.5, 1.0), (0.5, 1.0))


def make_round_outcome(
    clients: list[int], project: Callable[[np.ndarray], np.ndarray], scores: Scores, failed: tuple[int, ...] = ()
) -> RoundOutcome:
    """Return a round with the projections, and the server's accuracy and loss before and after the step."""
    result = make_outcome(0, clients, failed=failed)
    signals = {"server_accuracy": lambda weights: scores[int(weights.any())], "step_projection": project}
    result.signals.update(signals)  # type: ignore[attr-defined]
    return result


def make_constant_projection(*projections: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda weights: np.array(projections)


def values_of(state: State) -> list[float]:
    values: list[float] = (state.reward_sums / (state.reward_counts + 1)).tolist()
    return values


def test_values_are_means_of_the_rewards_and_an_initial_zero() -> None:
    """exp(c) of 1, 2, 4 give 1/7, 2/7, 4/7, halved by the initial 0. Then 0 and 3 share -1, in halves."""
    selector = make_component("selector", "gpfl")
    state = selector.init(START)
    state = selector.observe(
        state, make_round_outcome([0, 1, 2], make_constant_projection(*np.log([1e4, 2e4, 4e4])), RISING, failed=(4,))
    )[1]
    assert values_of(state) == pytest.approx([1 / 14, 1 / 7, 2 / 7, 0, 0])
    state = selector.observe(state, make_round_outcome([0, 3], make_constant_projection(0.3, 0.3), FALLING))[1]
    assert values_of(state) == pytest.approx([(1 / 7 - 1 / 2) / 3, 1 / 7, 2 / 7, -1 / 4, 0])
    assert state.times_selected.tolist() == [2, 1, 1, 1, 1], "client 4 failed and was selected"


@pytest.mark.parametrize(
    ("after", "expected"),
    [((0.6, 9), 1), ((0.4, 0), -1), ((0.5, 0.9), 0.5), ((0.5, 1.1), -0.5), ((0.5, 1), 0), ((0.6, NAN), NAN)],
)
def test_the_improvement_is_of_accuracy_and_then_of_loss(after: tuple[float, float], expected: float) -> None:
    assert sign_of_improvement((0.5, 1.0), after) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("schedule", "t", "alpha"),
    [("peak", 50, 0.5), ("peak", 100, 1), ("peak", 300, 0.5), ("linear", 400, 0.5), ("constant", 7, 1)],
)
def test_the_bonus_follows_its_schedule(schedule: str, t: int, alpha: float) -> None:
    """At t = 50 and N = 4 it is .5 sqrt(2 ln 50 / 4) = .5 sqrt(1.9560115) = .6992874; exploration=2 doubles it."""
    for exploration in (1.0, 2.0):
        selector = make_component("selector", "gpfl", schedule=schedule, exploration=exploration)
        state = State(np.array([3.0, 0, 0, 0, 0]), ids(2, 0, 0, 0, 0), ids(4, 1, 1, 1, 0), N_TRAIN)
        selection = selector.select(state, make_context(round=t), {})[0]
        bonus = exploration * alpha * math.sqrt(2 * math.log(t) / 4)
        assert selection.score_terms["explore"][:2] == pytest.approx([bonus, 2 * bonus])
        assert selection.scores[0] == pytest.approx(1 + bonus)
        assert selection.scores[4] == np.inf
    if t == 50:
        assert bonus / 2 == pytest.approx(0.6992874, abs=1e-7)


def test_clients_that_were_never_selected_come_first() -> None:
    selector = make_component("selector", "gpfl", exploration=0.0)
    state = State(np.array([5.0, 4.0, 3.0, 0, 0]), ids(1, 1, 1, 0, 0), ids(1, 1, 1, 0, 0), N_TRAIN)
    assert selector.select(state, make_context(round=150), {})[0].clients.tolist() == [3, 4]
    assert selector.select(state, make_context(round=150, available=[1, 2, 4]), {})[0].clients.tolist() == [1, 4]
    assert selector.select(state, make_context(round=150, available=[2]), {})[0].clients.tolist() == [2]
    first_cohorts = {
        tuple(selector.select(selector.init(START), make_context(seed=s), {})[0].clients) for s in range(60)
    }
    assert len(first_cohorts) == 10, "all pairs of five clients"


def test_without_rewards_every_client_has_its_turn() -> None:
    """v = 0 leaves the bonus alone, which is largest for the clients that were selected least."""
    selector = make_component("selector", "gpfl")
    state = selector.init(Population(6, 2, 2, {"n_train": np.full(6, 5)}))
    for t in range(12):
        clients = selector.select(state, make_context(round=t, n_clients=6), {})[0].clients.tolist()
        state = selector.observe(state, make_round_outcome(clients, make_constant_projection(0.0, 1.0), CONSTANT))[1]
        assert np.ptp(state.times_selected) == (0 if t % 3 == 2 else 1)
    assert state.reward_counts.tolist() == [4] * 6
    assert not state.reward_sums.any()


def test_values_that_are_not_finite_give_no_reward() -> None:
    selector = make_component("selector", "gpfl")
    state = selector.init(START)
    for result in (
        make_round_outcome([0, 1], make_constant_projection(NAN, NAN), RISING),
        make_round_outcome([0, 1], make_constant_projection(0.0, 1.0), ((0.5, 1.0), (0.6, NAN))),
        make_outcome(0, [], failed=[0, 1]),
    ):
        after = selector.observe(state, result)[1]
        assert not after.reward_counts.any()
        assert not after.reward_sums.any()
        assert after.times_selected.tolist() == [1, 1, 0, 0, 0]
    next_state = selector.observe(
        state, make_round_outcome([0, 1, 2], make_constant_projection(1e6, math.inf, 1e6), RISING)
    )[1]
    assert next_state.reward_sums.tolist() == [0.5, 0, 0.5, 0, 0]
    assert next_state.reward_counts.tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize(("n_train", "expected"), [([0, 0], [0.5, 0.5]), ([-3, 6], [0, 1]), ([1, 3], [0.25, 0.75])])
def test_weights_are_shares_of_the_reported_samples(n_train: list[int], expected: list[float]) -> None:
    weights: list[np.ndarray] = []

    def project(step_weights: np.ndarray) -> np.ndarray:
        weights.append(step_weights)
        return np.zeros(2)

    selector = make_component("selector", "gpfl")
    selector.observe(
        selector.init(Population(2, 2, 2, {"n_train": np.array(n_train)})), make_round_outcome([0, 1], project, RISING)
    )
    assert weights[0].tolist() == expected


class Released:
    """The rule of the released code, in the form of its documented facts: models, lists of rewards, two layers."""

    def __init__(self, n_clients: int) -> None:
        self.rewards = [[0.0] for _ in range(n_clients)]
        self.counts = np.zeros(n_clients)
        self.rounds = 0

    def select(self, n: int) -> list[int]:
        t = self.rounds
        factor = t / 100 if t < 100 else 200 / (100 + t)
        means = np.array([sum(rewards) / len(rewards) for rewards in self.rewards])
        bounds = means + factor * np.sqrt(2 * np.log(t) / self.counts)
        return sorted(np.argsort(-bounds)[:n].tolist())

    def learn(
        self, clients: list[int], old: np.ndarray, models: np.ndarray, new: np.ndarray, improvement: float
    ) -> None:
        self.rounds += 1
        projections = []
        for model in models:
            parts = [
                np.dot((model - old)[layer], (new - old)[layer]) / np.sqrt(((new - old)[layer] ** 2).sum())
                for layer in (slice(0, 2), slice(2, 3))
            ]
            projections.append(sum(parts) / 2)
        shares = np.exp(projections) / np.exp(projections).sum()
        for client, share in zip(clients, shares, strict=True):
            self.rewards[client].append(improvement * share)
            self.counts[client] += 1


def test_cohorts_are_those_of_the_released_rule() -> None:
    """K = 6 and m = 2: the code's warm-up of three rounds has cohorts of ceil(6 / 3) = 2. No values are tied."""
    rng, n_train = np.random.default_rng(3), np.array([30, 10, 20, 40, 50, 60])
    selector, released, improvements = make_component("selector", "gpfl"), Released(6), list[float]()
    state, model, scores = selector.init(Population(6, 2, 2, {"n_train": n_train})), np.zeros(3), (0.5, 1.0)
    for t in range(130):
        clients = selector.select(state, make_context(round=t, n_clients=6), {})[0].clients.tolist()
        assert t < 3 or clients == released.select(2)
        updates = rng.normal(size=(2, 3)) + np.array(clients)[:, None] / 2
        step = n_train[clients] @ updates / n_train[clients].sum()
        new_scores = (scores[0] if rng.random() < 0.3 else rng.random(), rng.random())
        improvements.append(
            float(np.sign(new_scores[0] - scores[0])) or (0.5 if new_scores[1] < scores[1] else -0.5),
        )
        project = find_derived("step_projection").make(TwoLayers(), torch.from_numpy(updates))
        state = selector.observe(state, make_round_outcome(clients, project, (scores, new_scores)))[1]
        released.learn(clients, model, model + updates, model + step, improvements[-1])
        model, scores = model + step, new_scores
        np.testing.assert_allclose(values_of(state), [np.mean(rewards) for rewards in released.rewards], atol=1e-12)
    assert set(improvements) == {1, -1, 0.5, -0.5}
    assert state.times_selected.tolist() == released.counts.tolist()


def test_the_step_is_fedavgs_and_its_evaluation_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes over the server's samples in a round; one of logistic regression on 8 x 8 digits is 2 * 64 * 10."""
    noted, evaluate = list[tuple[float, float]](), SignalMeasurer.server_accuracy_after

    def note(lab: SignalMeasurer, update: torch.Tensor) -> tuple[float, float]:
        noted.append(evaluate(lab, update))
        return noted[-1]

    monkeypatch.setattr(SignalMeasurer, "server_accuracy_after", note)
    reports = run_training(tmp_path, "selector=gpfl", "rounds=3").reports
    measured = [(report.metrics["server_val/acc"], report.metrics["server_val/loss"]) for report in reports]
    assert len(noted) == 6
    np.testing.assert_allclose(noted[0::2], measured[:-1], rtol=1e-5)
    np.testing.assert_allclose(noted[1::2], measured[1:], rtol=1e-5)
    n_val = round(reports[-1].metrics["comp/server_flops"] / (3 * 2 * 2 * 64 * 10))
    assert n_val > 10
    assert [report.metrics["comp/server_flops"] for report in reports] == [
        step * 2 * n_val * 2 * 64 * 10 for step in range(4)
    ]


def test_two_processes_select_the_same_clients_with_batch_normalisation(tmp_path: Path) -> None:
    """Each process trains a part of the cohort. Projections and evaluations need the updates of the whole cohort."""
    overrides = (
        "selector=gpfl",
        "rounds=3",
        "split.limit=240",
        "model=resnet8_gn",
        "model.norm=batch",
        "model.width=2",
        "client.epochs=1",
    )
    single, double = (
        run_training(tmp_path / "one", *overrides),
        run_training(tmp_path / "two", *overrides, "trainer.devices=2"),
    )
    np.testing.assert_allclose(double.weights(), single.weights(), rtol=0, atol=1e-5)


def test_late_updates_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match="selector=gpfl needs all updates of a round to start from the same"):
        run_training(tmp_path, "selector=gpfl", "deadline=buffered", "device=shifted_exponential")
