"""FedMGDA+'s closed forms. Updates are -g: what is descended along has the other sign."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import collect_updates, make_arrived, make_update
from config_options import make_component
from fedcohort.agg import fedmgda_plus
from fedcohort.round.arrivals import replace_update_weights
from run_harness import run_training, startup_notices
from tolerances import ApproxTolerance

TOLERANCE: ApproxTolerance = {"abs": 1e-9}


def mgda(
    rows: Sequence[Sequence[float]], n: Sequence[int] = (), round: int = 0, **options: Any
) -> tuple[list[float], list[float]]:
    """(displacement, lambda) for updates `rows`; lambda where eta_g = 1 and nothing is rescaled."""
    agg = make_component("agg", "fedmgda_plus", **options)
    sizes = n or [1] * len(rows)
    collected = collect_updates(agg, [make_update(k, row, n=sizes[k]) for k, row in enumerate(rows)])
    arrived = make_arrived(collected)
    direction, _ = agg.direction(None, replace(arrived, outcome=replace(arrived.outcome, round=round)))
    return direction.displacement.tolist(), (direction.weights * np.linalg.norm(rows, axis=1)).tolist()


def test_orthogonal_updates_share_the_weight() -> None:
    # |lambda|^2 is least at (1/2, 1/2)
    displacement, shares = mgda([[1, 0], [0, 1]], epsilon=1.0)
    assert shares == pytest.approx([0.5, 0.5], **TOLERANCE)
    assert displacement == pytest.approx([0.5, 0.5], **TOLERANCE)


def test_weights_stay_near_the_shares_of_samples() -> None:
    # lambda_0 = (.9, .1), epsilon = .1: from (.9, .1) towards (.5, .5), as far as (.8, .2)
    assert mgda([[1, 0], [0, 1]], n=[9, 1], epsilon=0.1)[1] == pytest.approx([0.8, 0.2], **TOLERANCE)
    assert mgda([[1, 0], [0, 1]], n=[9, 1], epsilon=0.1, weighting="uniform")[1] == pytest.approx(
        [0.5, 0.5], **TOLERANCE
    )


def test_updates_at_an_obtuse_angle_by_hand() -> None:
    # by symmetry (1/2, 1/2): d = (.2, .4)
    displacement, shares = mgda([[1, 0], [-0.6, 0.8]], epsilon=1.0)
    assert shares == pytest.approx([0.5, 0.5], **TOLERANCE)
    assert displacement == pytest.approx([0.2, 0.4], **TOLERANCE)


def test_the_client_between_two_others_gets_no_weight() -> None:
    # (.5, .5) is the point of the segment from e1 to e2 nearest to 0; (.6, .8) lies beyond it.
    updates = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    displacement, shares = mgda(updates, epsilon=1.0)
    assert shares == pytest.approx([0.5, 0, 0.5], **TOLERANCE)
    assert displacement == pytest.approx([0.5, 0.5], **TOLERANCE)
    # epsilon .1: the second as small as it may be, 1/3 - .1 = .2333333; what is left, .7666667, is split so that
    # a + .6 (.2333333) = c + .8 (.2333333): a - c = .0466667
    displacement, shares = mgda(updates, epsilon=0.1)
    assert shares == pytest.approx([0.4066667, 0.2333333, 0.36], abs=1e-7)
    assert displacement == pytest.approx([0.5466667, 0.5466667], abs=1e-7)


def test_opposite_updates_cancel_each_other() -> None:
    assert mgda([[1, 0], [-1, 0]], epsilon=1.0) == ([0.0, 0.0], [0.0, 0.0])
    assert mgda([[3, 0], [-1e-3, 0]], epsilon=1.0, rescale="mean_norm") == ([0.0, 0.0], [0.0, 0.0])
    # of unlike shares, within epsilon: |.8 - .2| is left
    assert mgda([[1, 0], [-1, 0]], n=[9, 1], epsilon=0.1)[0] == pytest.approx([0.6, 0], **TOLERANCE)


def test_the_lengths_of_updates_do_not_matter() -> None:
    # of (10, 0) and (0, 1) themselves the shortest mixture is (1/101, 100/101): (.00990, .99010)
    assert mgda([[10, 0], [0, 1]], epsilon=1.0)[1] == pytest.approx([0.5, 0.5], **TOLERANCE)


def test_with_epsilon_0_weights_are_shares_of_samples() -> None:
    displacement, shares = mgda([[2, 0], [0.6, 0.8], [0, 9]], n=[5, 3, 2], epsilon=0.0)
    assert shares == pytest.approx([0.5, 0.3, 0.2], **TOLERANCE)
    assert displacement == pytest.approx([0.5 + 0.18, 0.24 + 0.2], **TOLERANCE)


def test_the_length_of_the_step_by_hand() -> None:
    # d = (.5, .5); eta_g, decayed by round; the mean length of (10, 0), (0, 2) is 6
    rows = [[10.0, 0.0], [0.0, 2.0]]
    assert mgda(rows, eta_g=0.2)[0] == pytest.approx([0.1, 0.1], **TOLERANCE)
    assert mgda(rows, decay=0.9, round=2)[0] == pytest.approx([0.405, 0.405], **TOLERANCE)
    assert mgda(rows, rescale="mean_norm", eta_g=0.5)[0] == pytest.approx([1.5, 1.5], **TOLERANCE)


def test_equal_updates_rescaled_are_fedavg() -> None:
    displacement, _ = mgda([[3.0, -4.0]] * 3, n=[1, 2, 3], rescale="mean_norm")
    assert displacement == pytest.approx([3, -4], **TOLERANCE)
    assert mgda([[3.0, -4.0]] * 3, n=[1, 2, 3])[0] == pytest.approx([0.6, -0.8], **TOLERANCE)


def test_an_update_without_a_direction_is_left_out() -> None:
    displacement, _ = mgda([[0.0, 0.0], [1.0, 0.0], [0.0, 1e-13]], n=[100, 1, 1])
    assert displacement == pytest.approx([1, 0], **TOLERANCE)
    assert mgda([[0.0, 0.0]])[0] == [0.0, 0.0]


def test_a_mixture_as_long_as_the_bound_still_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    # lambda (3/4, 1/4) of e1 and -e1: |d| = 1/2, exactly; only what is below the bound is taken for nothing
    rows, options = [[1.0, 0.0], [-1.0, 0.0]], dict[str, Any](n=[3, 1], epsilon=0.0)
    monkeypatch.setattr(fedmgda_plus, "MIN_MIXTURE_LENGTH", 0.5)
    assert mgda(rows, **options)[0] == [0.5, 0.0]
    monkeypatch.setattr(fedmgda_plus, "MIN_MIXTURE_LENGTH", 0.5 + 1e-12)
    assert mgda(rows, **options)[0] == [0.0, 0.0]


def test_a_client_that_the_selector_excludes_gets_no_weight() -> None:
    # epsilon would let its weight grow from 0
    agg = make_component("agg", "fedmgda_plus", epsilon=1.0)
    collected = replace_update_weights(
        collect_updates(agg, [make_update(0, [1.0, 0.0]), make_update(1, [0.0, 1.0])]), np.array([1.0, 0.0])
    )
    direction, _ = agg.direction(None, make_arrived(collected))
    assert direction.displacement.tolist() == [1.0, 0.0]
    assert direction.weights.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_with_epsilon_1_no_clients_loss_increases(seed: int) -> None:
    """g_i . d >= |d|^2, with equality where lambda_i > 0."""
    rng = np.random.default_rng(seed)
    D = rng.normal(0.2, 1, (6, 20)) * rng.uniform(0.1, 9, (6, 1))
    d, shares = mgda(D.tolist(), epsilon=1.0)
    gain = D @ d / np.linalg.norm(D, axis=1) - np.dot(d, d)
    assert gain.min() > -1e-9
    np.testing.assert_allclose(gain[np.array(shares) > 1e-9], 0, atol=1e-9)


def test_a_run_moves_by_at_most_eta_g(tmp_path: Path) -> None:
    overrides = ("agg=fedmgda_plus", "agg.eta_g=0.05", "client.lr=0.5")
    after_one, after_two = (run_training(tmp_path, *overrides, f"rounds={rounds}").weights() for rounds in (1, 2))
    assert 0 < float(torch.linalg.vector_norm(after_two - after_one)) <= 0.05 + 1e-6


@pytest.mark.parametrize(("server", "expected"), [("sgd", 0), ("momentum", 1), ("adam", 1)])
def test_a_notice_names_options_that_break_the_guarantee(server: str, expected: int) -> None:
    messages = startup_notices("agg=fedmgda_plus", f"server={server}")
    assert len(messages) == expected
    assert all(
        f"lowers the loss of every client, but server={server} changes the step's direction" in line
        for line in messages
    )
