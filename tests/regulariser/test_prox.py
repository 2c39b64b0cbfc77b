"""FedProx."""

import pytest
import torch

from agg_harness import CLIENT_CONTEXT
from config_options import make_component
from fedcohort.hook import Correction


def correction(mu: float, w: list[float]) -> Correction:
    (hook,) = make_component("regulariser", "prox", mu=mu).hooks
    client_hook: Correction = hook.begin(torch.tensor(w, dtype=torch.float64), {}, {}, CLIENT_CONTEXT)
    return client_hook


def test_the_gradient_of_the_proximal_term() -> None:
    # mu/2 ||w - w_t||^2 at w = (1, 2), w_t = 0, mu = .1: gradient (.1, .2)
    g = torch.zeros(2, dtype=torch.float64)
    correction(0.1, [0.0, 0.0]).correct(g, torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert g.tolist() == pytest.approx([0.1, 0.2], abs=1e-12)


def test_two_proximal_steps_on_a_parabola_by_hand() -> None:
    # f = (w - 1)^2 / 2, w_0 = 0, lr .1, mu 1: 0.1, then 0.1 - .1 (-0.9 + 0.1) = 0.18; the unsquared norm gives 0.09
    pull, y, path = correction(1.0, [0.0]), torch.zeros(1, dtype=torch.float64), []
    for _ in range(2):
        g = y - 1
        pull.correct(g, y)
        y = y - 0.1 * g
        path.append(float(y))
    assert path == pytest.approx([0.1, 0.18], abs=1e-12)


def test_with_mu_0_there_is_no_hook() -> None:
    # so that mu = 0 is FedAvg bit for bit
    assert make_component("regulariser", "prox", mu=0).hooks == ()


def test_the_proximal_hook_uploads_and_stores_nothing() -> None:
    upload = correction(1.0, [0.0]).finish(torch.zeros(1), 3, 0.1)
    assert (dict(upload.uploads), dict(upload.stored)) == ({}, {})
