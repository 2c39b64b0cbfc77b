"""FedSGD: FedAvg whose clients take one step with the gradient of all their samples."""

from pathlib import Path

import pytest
import torch

from agg_harness import aggregate_once, make_update
from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.errors import FedcohortError
from round_harness import run_without_files
from run_harness import compose_overrides, run_training


def test_a_step_on_two_parabolas_by_hand() -> None:
    # f_i = (w - a_i)^2 / 2, a = (0, 2), n = (1, 3), w = 0, lr .1: g = (0, -2), D = (0, .2): w = .15
    updates = [make_update(0, [0.0], n=1), make_update(1, [0.2], n=3)]
    assert aggregate_once(make_component("agg", "fedavg"), updates).tolist() == pytest.approx([0.15], abs=1e-12)


def test_an_update_is_the_exact_gradient() -> None:
    options = compose_overrides("agg=fedsgd").config["client"]
    assert (options["steps"], options["batch"]) == (1, None)
    federation, network = make_federation(dtype=torch.float64), make_network(torch.float64)
    trainer = make_trainer(federation, network, steps=1, batch=None)
    update = trainer.train(make_task(1, units=1), {})
    x, y = federation.train.client_samples(1)
    loss = torch.nn.functional.cross_entropy(network(x), y)
    g = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(network.parameters()))])
    torch.testing.assert_close(update.delta, -0.1 * g, atol=1e-12, rtol=0)
    assert (update.steps, update.n_used) == (1, len(y))


def test_clients_train_one_epoch_of_one_batch() -> None:
    run = run_without_files("agg=fedsgd")
    epoch = run_without_files("agg=fedavg", "client.epochs=1", "client.batch=null")
    torch.testing.assert_close(run.weights(), epoch.weights(), atol=1e-7, rtol=0)
    assert run.cohorts == epoch.cohorts
    assert run.last.metrics["comp/client_flops"] == epoch.last.metrics["comp/client_flops"]


def test_a_proximal_term_would_change_nothing() -> None:
    # its gradient at w_t is 0
    overrides = ("agg=fedavg", "client.steps=1", "client.batch=null")
    with_term = run_without_files(*overrides, "regulariser=prox", "regulariser.mu=100")
    torch.testing.assert_close(with_term.weights(), run_without_files("agg=fedsgd").weights(), atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("first_options", "second_options"),
    [
        # at w_t the pseudo-labels are what is predicted: p - z = 0
        (("objective=flash_robust", "objective.alpha=9"), ("objective=flash_robust", "objective.alpha=0")),
        # a step is done or not
        (("deadline=fixed", "deadline.partial_work=true"), ("deadline=fixed",)),
    ],
)
def test_some_client_options_have_no_effect_on_one_step(
    first_options: tuple[str, ...], second_options: tuple[str, ...]
) -> None:
    a, b = (
        run_without_files("agg=fedsgd", *first_options),
        run_without_files("agg=fedsgd", *second_options),
    )
    torch.testing.assert_close(a.weights(), b.weights(), atol=1e-6, rtol=0)
    assert a.cohorts == b.cohorts


def test_weight_decay_is_part_of_the_loss() -> None:
    # w_1 = w_0 - lr (g + .5 w_0) for all clients
    decayed = run_without_files("agg=fedsgd", "client.weight_decay=0.5", "rounds=1").weights()
    plain = run_without_files("agg=fedsgd", "rounds=1").weights()
    start = run_without_files("agg=fedsgd", "rounds=1", "client.lr=1e-12").weights()
    torch.testing.assert_close(plain - decayed, 0.1 * 0.5 * start, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "override",
    [
        "client=adam",
        "client.momentum=0.9",
        "client.clip=1",
        "client.steps=2",
        "client.steps=null",
        "client.batch=10",
        "regulariser=prox",
    ],
)
def test_options_that_contradict_fedsgd_are_rejected(override: str, tmp_path: Path) -> None:
    with pytest.raises(FedcohortError, match=r"agg=fedsgd stands for (client|regulariser).*, but .* was requested"):
        run_training(tmp_path, "agg=fedsgd", override)
    assert not list(tmp_path.iterdir())


def test_the_error_shows_the_overrides_as_typed(tmp_path: Path) -> None:
    with pytest.raises(FedcohortError, match=r"stands for client\.batch=null, but client\.batch=10 was requested"):
        run_training(tmp_path, "agg=fedsgd", "client.batch=10")
