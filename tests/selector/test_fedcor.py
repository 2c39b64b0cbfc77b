"""FedCor: choices by hand, the rounds with queries, and the shadow round."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import make_update
from config_options import make_typed
from engine_harness import make_federation, make_network, make_trainer
from fedcohort.bandit import gaussian
from fedcohort.flat import FlatModel
from fedcohort.selector import fedcor
from fedcohort.selector.fedcor import FedCor, State
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import Population, ProbeResult
from optional_values import not_none
from run_harness import run_training
from selector_harness import World, list_cohorts, make_context, make_outcome, play_rounds
from signal_kinds import find_computed
from state_saving import save_and_restore

SIGMA = np.array([[1, 0.9, 0.1], [0.9, 1.2, 0.2], [0.1, 0.2, 0.8]])
P = np.array([0.2, 0.3, 0.5])
NAN, INF = float("nan"), float("inf")


def cor(**changes: Any) -> FedCor:
    return make_typed(FedCor, "selector", "fedcor", **{"tie": "id", **changes})


def quick(**changes: Any) -> FedCor:
    return cor(**{"warmup": 1, "interval": 2, "dim": 4, "first_steps": 30, "steps": 5, **changes})


def choose_cohort_in_order(p: np.ndarray = P, alpha: Sequence[float] = (1, 1, 1)) -> tuple[list[int], list[np.ndarray]]:
    order, scores = cor().choose_cohort_in_order(SIGMA, p, np.array(alpha, float), make_context(20, 2, 3))
    return order.tolist(), scores


def test_a_choice_by_hand() -> None:
    """p Sigma = (.52, .64, .48) over roots (1, 1.0954, .8944); then (.0400, ., .3733) over (.5701, ., .8756)."""
    order, scores = choose_cohort_in_order()
    np.testing.assert_allclose(scores[0], [0.52, 0.584237, 0.536656], atol=5e-7)
    np.testing.assert_allclose(scores[1], [0.070165, -INF, 0.426377], atol=5e-7)
    assert order == [1, 2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n", "p"), [((2, 3, 5), [0.2, 0.3, 0.5]), ((0, 0, 0), [0.0, 0.0, 0.0])])
def test_losses_are_weighted_by_shares_of_samples(n: tuple[int, ...], p: list[float]) -> None:
    """Without any samples all shares of samples are 0."""
    assert cor().init(Population(3, 2, 2, {"n_train": np.array(n)})).p.tolist() == p


def test_clients_that_trained_often_are_discounted() -> None:
    order, scores = choose_cohort_in_order(alpha=(1, 0.8, 1))
    np.testing.assert_allclose(scores[0], [0.52, 0.46739, 0.536656], atol=5e-7)
    np.testing.assert_allclose(scores[1], [0.462902, 0.387922, -INF], atol=5e-7)
    assert order == [2, 0]


def test_the_posterior_avoids_two_correlated_clients() -> None:
    """Equal p: clients 1 and 0, correlated with .82, have the best two scores; given 1, there is little left in 0."""
    order, scores = choose_cohort_in_order(p=np.full(3, 1 / 3))
    np.testing.assert_allclose(scores[0], [0.666667, 0.699868, 0.409946], atol=5e-7)
    np.testing.assert_allclose(scores[1], [0.160794, -INF, 0.27283], atol=5e-7)
    assert order == [1, 2]
    assert np.argsort(-scores[0])[:2].tolist() == [1, 0]


def test_a_client_without_variance_comes_last() -> None:
    sigma = np.diag([1.0, 0.0, 1e-11])
    order, scores = cor().choose_cohort_in_order(sigma, P, np.ones(3), make_context(20, 3, 3))
    assert order[0] == 0
    assert np.isneginf(scores[0][1:]).all()
    assert sorted(order) == [0, 1, 2]


def test_negative_sums_rank_last() -> None:
    """No absolute value: a client against the others would raise the loss."""
    sigma = np.array([[1.0, -0.9], [-0.9, 1.0]])
    order, scores = cor().choose_cohort_in_order(sigma, np.array([0.1, 0.9]), np.ones(2), make_context(20, 1, 2))
    np.testing.assert_allclose(scores[0], [-0.71, 0.81])
    assert order.tolist() == [1]


def test_queries_follow_the_schedule() -> None:
    """W = 5, interval 4, 40 rounds: rounds 0 to 6; shadow rounds after 8, 12, .., 36: 7 + 2 * 8 polls."""
    steps = play_rounds(quick(warmup=5, interval=4), World(), 40)
    signals_by_round = [[probe.signal for probe in step.probes] for step in steps]
    assert signals_by_round[:7] == [["loss"]] * 7
    shadow_rounds = [t for t, signals in enumerate(signals_by_round) if "shadow_loss" in signals]
    assert shadow_rounds == [9, 13, 17, 21, 25, 29, 33, 37]
    assert all(len(probe.clients) == 12 for step in steps for probe in step.probes)
    assert sum(map(len, signals_by_round)) == 5 + 2 + 2 * 8
    for t in shadow_rounds:
        trainers = steps[t].probes[1].options["trainers"]
        assert len(set(trainers)) == 3
    assert len({steps[t].probes[1].options["trainers"] for t in shadow_rounds}) > 1


def test_the_first_shadow_round_is_after_the_warm_up_even_where_the_interval_ends_with_it() -> None:
    """W = 4, interval 4: round 4 ends the warm-up, whose loss changes are known, so the first one follows round 8."""
    assert [t for t in range(20) if quick(warmup=4, interval=4).is_shadow_round(t)] == [9, 13, 17]


def test_loss_changes_are_differences_of_consecutive_queries() -> None:
    """Round e's are F(w_{e+1}) - F(w_e) in the warm-up, shadow - F(w_t) afterwards, and none between."""
    world = World()
    steps = play_rounds(quick(warmup=2, interval=3, memory=100), world, 12)
    changes = steps[-1].after.loss_changes
    assert list(changes) == [0, 1, 2, 4, 7, 10]
    for e in (0, 1, 2):
        np.testing.assert_allclose(changes[e], world.values("loss", e + 1) - world.values("loss", e), rtol=1e-12)
    for t in (4, 7, 10):
        np.testing.assert_allclose(changes[t], world.values("shadow_loss", t) - world.values("loss", t), rtol=1e-12)


def test_old_loss_changes_are_forgotten() -> None:
    steps = play_rounds(quick(warmup=2, interval=3, memory=4), World(), 12)
    assert [list(steps[t].after.loss_changes) for t in (4, 7, 10)] == [[0, 1, 2, 4], [4, 7], [7, 10]]


def test_features_are_fitted_only_after_warm_up_and_shadow_rounds() -> None:
    steps = play_rounds(quick(warmup=2, interval=3), World(), 9)
    assert [step.after.X is None for step in steps[:4]] == [True, True, True, False]
    fit_rounds = [t for t in range(4, 9) if not np.array_equal(steps[t].after.X, steps[t - 1].after.X)]
    assert fit_rounds == [4, 7]


def test_the_mean_is_weighted_by_age() -> None:
    """gamma^2, gamma, 1 times the changes of rounds 0, 1, 2, over 1 + gamma + gamma^2: any factor cancels."""
    steps = play_rounds(quick(warmup=2, gamma=0.5), World(), 4)
    rows = np.stack(list(steps[3].after.loss_changes.values()))
    np.testing.assert_allclose(steps[3].after.mu, np.array([0.25, 0.5, 1]) @ rows / 1.75, rtol=1e-12)
    assert not play_rounds(quick(warmup=2, update_mean=False), World(), 4)[3].after.mu.any()


def test_each_selection_after_the_warm_up_discounts_the_client() -> None:
    """beta for each time that a client is selected after the warm-up, arrived or not; a shadow round forgives all."""
    state = State(np.zeros((1, 3)), 1.0, P, np.zeros(3), np.ones(3), {}, np.full(3, NAN), -1)
    selector = cor(warmup=3, beta=0.5)
    assert selector.observe(state, make_outcome(3, [0]))[1].alpha.tolist() == [1, 1, 1]
    state_after = selector.observe(state, make_outcome(4, [0, 1], failed=[2]))[1]
    assert selector.observe(state_after, make_outcome(5, [0]))[1].alpha.tolist() == [0.25, 0.5, 0.5]
    steps = play_rounds(quick(warmup=1, interval=3, beta=0.5), World(), 8)
    alpha = steps[7].chosen.alpha  # the shadow round after round 6
    assert steps[6].after.alpha.min() < 1
    assert alpha.tolist() == [1.0] * 12
    assert sorted(steps[7].after.alpha.tolist()) == [0.5] * 3 + [1.0] * 9


def test_correlated_clients_are_not_chosen_together() -> None:
    """Three groups of four clients with equal loss changes within a group: a cohort has one client of each group."""
    rng, K = np.random.default_rng(0), 12
    groups = 0.05 * np.sqrt(60) * np.linalg.qr(rng.standard_normal((60, 3)))[0]
    changes = dict(enumerate(np.repeat(groups, 4, axis=1) + 0.01 * rng.standard_normal((60, K))))
    state = State(None, 1.0, np.full(K, 1 / K), np.zeros(K), np.ones(K), changes, np.full(K, NAN), -1)
    selector = cor(warmup=1, dim=6, gamma=1.0, update_mean=False, first_steps=2000)
    selection, after = selector.select(state, make_context(2, 3, K), {})
    assert sorted(selection.clients // 4) == [0, 1, 2]
    sigma = not_none(after.X).T @ not_none(after.X)
    correlation = sigma / np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    same_group = np.repeat(np.arange(3), 4)[:, None] == np.repeat(np.arange(3), 4)
    assert correlation[same_group].min() > 0.9
    assert np.abs(correlation[~same_group]).max() < 0.8  # rounding decides which optimum the fit ends in


def test_the_squared_exponential_kernel_avoids_correlated_clients_too() -> None:
    """The same groups; its covariances can't be negative, so that others' are near 0, and a group's near f^2."""
    rng, K = np.random.default_rng(0), 12
    groups = 0.5 * np.sqrt(60) * np.linalg.qr(rng.standard_normal((60, 3)))[0]
    changes = dict(enumerate(np.repeat(groups, 4, axis=1) + 0.01 * rng.standard_normal((60, K))))
    state = State(None, 1.0, np.full(K, 1 / K), np.zeros(K), np.ones(K), changes, np.full(K, NAN), -1)
    selector = cor(warmup=1, dim=6, gamma=1.0, update_mean=False, kernel="se")
    selection, after = selector.select(state, make_context(2, 3, K), {})
    assert sorted(selection.clients // 4) == [0, 1, 2]
    sigma = gaussian.SquaredExponentialKernel(0.0, 1.0).covariance(not_none(after.X), after.f)
    same_group = np.repeat(np.arange(3), 4)[:, None] == np.repeat(np.arange(3), 4)
    assert after.f != 1.0
    assert sigma[same_group].min() > 0.9 * after.f**2 > 2 * sigma[~same_group].max()


def test_the_kernels_choose_by_their_covariance() -> None:
    """x = 0, 1, 3 and l = 2: exp(-1/4), exp(-9/4), exp(-1) apart. Equal p: the sums are 1.884, 2.147 and 1.473."""
    X, K = np.array([[0.0, 1.0, 3.0]]), 3
    state = State(X, 1.0, np.full(K, 1 / K), np.zeros(K), np.ones(K), {}, np.full(K, NAN), -1)
    ctx = make_context(30, 1, K)
    chosen = cor(kernel="se", length=2.0).select(state, ctx, {})[0]
    sums = [1 + 0.7788008 + 0.1053992, 1 + 0.7788008 + 0.3678794, 1 + 0.1053992 + 0.3678794]
    np.testing.assert_allclose(not_none(chosen.scores), np.array(sums) / 3, atol=1e-4)
    assert chosen.clients.tolist() == [1]
    assert cor().select(state, ctx, {})[0].clients.tolist() == [2], "linear: 4 / 3 for 1 and 2, but for the noise"


def changing_available(round: int) -> list[int]:
    return [k for k in range(12) if (k * 7 + round * 5) % 11 < 3 + round % 5]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [NAN, INF, -INF, 0.0, 1e300, -1.0])
@pytest.mark.parametrize(("frequency", "kernel"), [(1, "linear"), (2, "linear"), (1, "se"), (2, "se")])
def test_the_laws_hold_after_the_warm_up_too(value: float, frequency: int, kernel: str) -> None:
    """Cohorts are distinct, available and complete for any reports; an interrupted run resumes to the same bits."""

    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(values)) % frequency == 0, value, values)

    world = World(
        corrupt=corrupt,
        available=lambda t: [] if t == 2 else changing_available(t),
        find_failing=lambda t, cohort: cohort[::2],
    )
    steps = play_rounds(quick(kernel=kernel), world, 9)
    for step in steps:
        picked = step.selection.clients
        assert len(picked) == min(3, len(step.ctx.available)) == len(np.unique(picked))
        assert np.isin(picked, step.ctx.available).all()
        assert step.after.X is None or np.isfinite(step.after.X).all()
    resumed = play_rounds(quick(kernel=kernel), world, 4, save_and_restore(steps[4].after), start=5)
    assert list_cohorts(resumed) == list_cohorts(steps)[5:]


def test_a_round_without_queries_interrupts_loss_changes() -> None:
    world = World(available=lambda t: [] if t == 1 else range(12))
    assert list(play_rounds(quick(warmup=3), world, 5)[-1].after.loss_changes) == [2, 3]


def test_an_unavailable_client_has_no_loss_change() -> None:
    world = World(available=lambda t: range(11) if t == 1 else range(12))
    (dF,) = play_rounds(quick(), world, 2)[-1].after.loss_changes.values()
    assert np.flatnonzero(np.isnan(dF)).tolist() == [11]


def test_the_shadow_model_is_the_mean_of_its_trainers() -> None:
    """Against the engine's own lab: w_t + (10 D_0 + n_2 D_2) / (10 + n_2); without a finite update there is none."""
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, epochs=1, batch=10)
    lab = SignalMeasurer(trainer.server, FlatModel(make_network()), federation, trainer.train_whole_job)
    n, all_clients = federation.n_train, np.arange(federation.n_clients)
    deltas = {k: trainer.train_whole_job(4, k).delta.double() for k in (0, 2)}
    mean = sum(n[k] * delta for k, delta in deltas.items()) / (n[0] + n[2])
    w = trainer.server.w.clone()
    losses = find_computed("shadow_loss").compute(lab, 4, all_clients, {"trainers": (0, 2)})
    np.testing.assert_allclose(losses, lab.losses_after(mean, all_clients), rtol=1e-6)
    assert torch.equal(trainer.server.w, w), "w_t is as it was"
    before = lab.losses_after(0 * mean, all_clients)
    assert np.abs(losses - before).max() > 1e-6
    lab_without_updates = replace_trained(lab)
    assert np.isnan(
        find_computed("shadow_loss").compute(lab_without_updates, 4, all_clients, {"trainers": (0, 2)})
    ).all()


def replace_trained(lab: SignalMeasurer) -> SignalMeasurer:
    """The lab where training diverges."""
    nan_update = make_update(0, [NAN] * len(lab.server.w))
    return SignalMeasurer(lab.server, lab.worker, lab.federation, lambda round, k: nan_update)


def test_the_cost_of_a_shadow_round(tmp_path: Path) -> None:
    """4 of 12 clients, 2 epochs, W = 1, interval 2: a shadow round precedes round 3.

    All clients are queried before rounds 0, 1 and 2. Before round 3, w_t and the shadow model go to all clients, each
    answers two losses, and four clients train and send updates, at three passes per sample and epoch.
    """
    K, m, model = 12, 4, 4 * (64 * 10 + 10)
    changes = [f"selector.{name}" for name in ("warmup=1", "interval=2", "first_steps=5", "steps=5")]
    run = run_training(tmp_path, "selector=fedcor", "rounds=5", *changes)
    names = ("comm/down_bytes", "comm/up_bytes", "comm/probe_bytes", "comp/client_flops", "time/virtual_s")
    total = np.array([[report.metrics[name] for name in names] for report in run.reports])
    query_bytes = [K * model, m * model + 4 * K, (K - m) * model + 4 * K]
    shadow_bytes = [2 * K * model, 2 * m * model + 8 * K, (2 * K - m) * model + m * model + 8 * K]
    plain = [m * model, m * model, 0]
    expected = [query_bytes, query_bytes, query_bytes, shadow_bytes, plain]
    np.testing.assert_array_equal(np.diff(total, axis=0)[:, :3], expected)
    n, forward = run.info.n_train, 2 * 64 * 10
    passes = np.diff(total, axis=0)[:, 3] / forward - [3 * 2 * n[r.cohort].sum() for r in run.reports[1:]]
    np.testing.assert_allclose(passes[:3], n.sum())
    assert passes[4] == pytest.approx(0)
    smallest, largest = (3 * 2 * part.sum() + 2 * n.sum() for part in (np.sort(n)[:m], np.sort(n)[-m:]))
    assert smallest <= passes[3] <= largest
    assert np.diff(total[:, 4])[3] > np.diff(total[:, 4])[4], "it delays the round"


def test_memory_is_that_of_two_covariance_matrices() -> None:
    assert make_typed(FedCor, "selector", "fedcor").memory_bytes(10, 100) == 16 * 100


def test_a_loss_of_1e12_nats_or_more_is_ignored() -> None:
    answers = ProbeResult(np.arange(4), np.array([0.5, 1e12, -1e12, np.nextafter(1e12, 0)]))
    losses = fedcor.losses_by_client(answers, 5)
    assert losses[0] == 0.5
    assert np.isnan(losses).tolist() == [False, True, True, False, True]
