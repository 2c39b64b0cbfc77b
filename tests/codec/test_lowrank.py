"""Low-rank updates."""

import pytest
import torch

from codec_harness import begin_round, draw_normal, make_generator_factory, make_layout
from config_options import make_component
from engine_harness import make_federation, make_network, make_task
from fedcohort.codec.lowrank import least_squares
from fedcohort.codec.wire import draw_seed
from fedcohort.flat import FlatModel
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod


def test_least_squares_by_hand() -> None:
    # A = (1, 1)': A+ = (1, 1) / 2, so that B is the mean of the rows, and A B has it in both
    H = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    A = torch.ones(2, 1, dtype=torch.float64)
    B = least_squares(A, H)
    torch.testing.assert_close(B, torch.tensor([[2.0, 3.0]], dtype=torch.float64))
    torch.testing.assert_close(A @ B, torch.tensor([[2.0, 3.0], [2.0, 3.0]], dtype=torch.float64))


def test_a_square_invertible_factor_loses_nothing() -> None:
    A, H = draw_normal(9, 1, torch.float64).view(3, 3), draw_normal(12, 2, torch.float64).view(3, 4)
    torch.testing.assert_close(A @ least_squares(A, H), H)


def test_the_papers_example_has_the_stated_bytes() -> None:
    # d1 = 784, d2 = 256, k = 16: 16 * 256 floats are 16,384 bytes, 49 times fewer than 784 * 256 floats
    layout, codec = make_layout((784, 256)), make_component("codec", "lowrank", k=16)
    assert make_component("codec", "none").bytes_up(layout) == 802_816 == 49 * 16_384
    assert codec.bytes_up(layout) == 16_384 + 8
    # dense: too small, a vector, no more rows than k; a convolution's rows are its outputs
    assert codec.bytes_up(make_layout((31, 33), (2000,), (16, 100))) == 4 * (31 * 33 + 2000 + 1600)
    assert codec.bytes_up(make_layout((40, 3, 3, 3))) == 4 * 16 * 27 + 8


def test_a_network_of_small_layers_is_sent_whole() -> None:
    assert make_component("codec", "lowrank", k=16).shrinks(make_layout((784, 256)))
    assert not make_component("codec", "lowrank", k=16).shrinks(make_layout((16, 100), (10,)))
    assert make_component("codec", "none").shrinks(make_layout((16, 100)))  # "none" need not shrink updates


def test_matrices_with_no_more_rows_than_the_rank_are_sent_unchanged() -> None:
    layout, delta = make_layout((16, 100)), draw_normal(1600)
    assert torch.equal(
        make_component("codec", "lowrank", k=16).transmit(delta, layout, make_generator_factory()), delta
    )


@pytest.mark.parametrize("dist", ["normal", "uniform01"])
def test_the_decoded_update_is_the_projection(dist: str) -> None:
    # P = A (A'A)^-1 A' is symmetric and P P = P: sent again it stays, and what is lost is orthogonal to it
    layout, delta = make_layout((64, 32)), draw_normal(64 * 32)
    codec = make_component("codec", "lowrank", k=8, dist=dist, mode="posthoc")
    projected = codec.transmit(delta, layout, make_generator_factory())
    torch.testing.assert_close(
        codec.transmit(projected, layout, make_generator_factory()), projected, atol=1e-5, rtol=0
    )
    assert float(projected @ (delta - projected)) == pytest.approx(0, abs=1e-2)
    assert torch.linalg.matrix_rank(projected.view(64, 32), rtol=1e-4) == 8


def test_a_projection_keeps_k_of_d1_of_the_square() -> None:
    # E ||P h||^2 = h' E P h = k / d1 ||h||^2, E P = (k / d1) I where no direction is special; 40 draws, 32 columns each
    layout, delta = make_layout((64, 32)), draw_normal(64 * 32)
    codec = make_component("codec", "lowrank", k=16)
    shares = [
        codec.transmit(delta, layout, make_generator_factory(k)).square().sum() / delta.square().sum()
        for k in range(40)
    ]
    assert float(torch.stack(shares).mean()) == pytest.approx(16 / 64, rel=0.03)


def test_the_entries_of_the_factor_have_the_right_distribution() -> None:
    layout = make_layout((200, 200))
    A = make_component("codec", "lowrank", k=50).draw_projection_matrices(
        layout, draw_seed(make_generator_factory()())
    )[layout.parameters[0]]
    assert float(A.var()) == pytest.approx(1 / 50, rel=0.05)  # 10,000 entries: sd sqrt(2 / 10,000) = 1.4 %
    A = make_component("codec", "lowrank", k=50, dist="uniform01").draw_projection_matrices(
        layout, draw_seed(make_generator_factory()())
    )[layout.parameters[0]]
    assert 0 <= float(A.min()) < 0.01 < 0.99 < float(A.max()) < 1


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_corrected_gradients_train_the_low_rank_factor(momentum: float) -> None:
    # f(y) = ||y - T||^4 / 4 on y = w + A B, B by autograd and torch.optim.SGD, against y by g <- A A'g
    layout, w, target = make_layout((6, 4), (3,)), draw_normal(27, 1, torch.float64), draw_normal(27, 2, torch.float64)
    codec = make_component("codec", "lowrank", k=2, min_size=1)
    correction = begin_round(codec, w, layout)
    A = codec.draw_projection_matrices(layout, draw_seed(make_generator_factory()()))[layout.parameters[0]]
    B, other_weights = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True), w[24:].clone().requires_grad_()
    y = w.clone().requires_grad_()
    factors = torch.optim.SGD([B, other_weights], lr=0.002, momentum=momentum)
    flat = torch.optim.SGD([y], lr=0.002, momentum=momentum)
    for _ in range(20):
        factors.zero_grad()
        decoded = torch.cat([w[:24] + (A @ B).flatten(), other_weights])
        ((decoded - target).square().sum() ** 2 / 4).backward()
        factors.step()
        (g,) = torch.autograd.grad((y - target).square().sum() ** 2 / 4, y)
        y.grad = g
        correction.correct(y.grad, y.detach())
        flat.step()
    trained = torch.cat([w[:24] + (A @ B).flatten(), other_weights]).detach()
    torch.testing.assert_close(y.detach(), trained, atol=1e-12, rtol=0)
    assert float((trained - w).abs().max()) > 0.1


@pytest.mark.parametrize("client", [{}, {"momentum": 0.9}, {"clip": 0.1}], ids=str)
def test_after_train_time_training_nothing_is_lost(client: dict[str, float]) -> None:
    network, codec = make_network(), make_component("codec", "lowrank", k=2, min_size=1)
    server, worker = FlatModel(network), FlatModel(make_network())
    parts = (make_component("objective", "ce"), make_component("client", "sgd", **client), codec)
    trainer = LocalTrainer(server, worker, make_federation(), LocalTrainingMethod(*parts, codec.hooks), 3)
    received = trainer.train(make_task(1), {}).delta
    delta = worker.w - server.w
    assert float(delta.norm()) > 0.01
    torch.testing.assert_close(received, delta, atol=1e-6, rtol=0)
    other_projection = make_component("codec", "lowrank", k=2, min_size=1).transmit(
        delta, server.layout, make_generator_factory(9)
    )
    assert float((other_projection - delta).norm()) > 0.1 * float(delta.norm()), "another A would lose something"


def test_finished_updates_need_no_hook() -> None:
    assert make_component("codec", "lowrank", mode="posthoc").hooks == ()
    assert make_component("codec", "lowrank", mode="posthoc").requirements == frozenset()
