"""PropFair's transform of a mini-batch's mean loss."""

from pathlib import Path
from typing import Any

import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.objective.propfair import PropFair
from optional_values import not_none
from round_harness import run_without_files
from run_harness import run_training, same_bits, startup_notices


def phi(loss: float, **changes: object) -> tuple[float, float]:
    """Value and slope."""
    mean = torch.tensor(loss, dtype=torch.float64, requires_grad=True)
    value = make_component("objective", "propfair", **changes).transform_mean(mean)
    (slope,) = torch.autograd.grad(value, mean)
    return float(value.detach()), float(slope)


@pytest.mark.parametrize(
    ("loss", "value", "slope"),
    [(0, 0.0, 0.2), (1, 0.2231435513, 0.25), (3, 0.9162907319, 0.5), (4.8, 3.2188758249, 5), (6, 9.2188758249, 5)],
)
def test_the_propfair_transform_by_hand(loss: float, value: float, slope: float) -> None:
    # M = 5, epsilon = .2: log 5 - log(5 - l), slope 1 / (5 - l) up to 4.8; beyond log 25 + 5 (l - 4.8).
    assert phi(loss) == pytest.approx((value, slope), abs=1e-9)


def test_client_gradients_equal_server_side_weighting() -> None:
    # At F = (1, 3) the slopes are 1/4 and 1/2: shares 1/3 and 2/3 of the gradient, p_k / max(M - F_k, epsilon) scaled.
    slopes = [phi(1)[1], phi(3)[1]]
    assert [s / sum(slopes) for s in slopes] == pytest.approx([1 / 3, 2 / 3], abs=1e-12)


def test_with_the_ce_tail_the_slope_above_the_threshold_is_constant() -> None:
    assert phi(6, tail="ce") == pytest.approx((6 / 5, 0.2))
    assert phi(3, tail="ce") == phi(3)


def test_each_client_has_its_own_transform() -> None:
    objective = make_component("objective", "propfair")
    means = torch.tensor([0.0, 3.0, 6.0], dtype=torch.float64)
    assert objective.transform_mean(means).tolist() == [float(objective.transform_mean(mean)) for mean in means]


@pytest.mark.parametrize("choice", ["ce", "gce"])
def test_per_sample_losses_are_those_of_the_base_objective(choice: str) -> None:
    base = make_component("objective", choice)
    propfair = PropFair(base, 5.0, 0.2, "huber")
    logits, y = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 2, 1, 1])
    for propfair_loss, base_loss in zip(
        propfair.per_sample(logits, y, None), base.per_sample(logits, y, None), strict=True
    ):
        assert torch.equal(propfair_loss, base_loss)
    assert propfair.uses_reference is False


def test_flashs_loss_needs_a_larger_m() -> None:
    # Its reverse cross-entropy alone reaches -A beta = 16.
    base = make_component("objective", "flash_robust")
    with pytest.raises(
        OptionError, match=r"^M must be above 16, the largest value of the bounded terms of objective.base"
    ):
        PropFair(base, 5.0, 0.2, "huber")
    assert PropFair(base, 20.0, 0.2, "huber").uses_reference is True


@pytest.mark.parametrize("base", [None, make_component("objective", "propfair")])
def test_nesting_propfair_is_rejected(base: Any) -> None:
    with pytest.raises(OptionError, match=r"^base must be an objective other than propfair"):
        PropFair(base, 5.0, 0.2, "huber")


def test_too_small_values_of_m_are_rejected() -> None:
    with pytest.raises(OptionError, match=r"^M must be at least epsilon = 0.2, got 0.1$"):
        PropFair(make_component("objective", "ce"), 0.1, 0.2, "huber")


def test_an_epsilon_whose_inverse_is_infinite_in_single_precision_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"^epsilon must be a number in \[1e-30, inf\), got 1e-40$"):
        make_component("objective", "propfair", epsilon=1e-40)
    loss = torch.tensor(1.0, requires_grad=True)
    make_component("objective", "propfair", M=5.0, epsilon=1e-30).transform_mean(loss).backward()
    assert float(not_none(loss.grad)) == pytest.approx(0.25)


def test_options_that_leave_the_plain_mean_give_a_notice() -> None:
    (line,) = make_component("objective", "propfair", M=0.5, epsilon=0.5).notices("propfair")
    assert line == (
        "objective.M = objective.epsilon = 0.5 switches PropFair off: clients minimise objective.base with 2 times the "
        "learning rate. Choose objective.epsilon below objective.M"
    )
    assert not make_component("objective", "propfair", M=0.51, epsilon=0.5).notices("propfair")
    assert line in startup_notices("objective=propfair", "objective.M=0.5", "objective.epsilon=0.5")


def test_m_equal_to_epsilon_is_cross_entropy_with_another_rate() -> None:
    # phi(l) = l / epsilon for every l > 0: client.lr=0.02 with epsilon=.2 is client.lr=0.1.
    overrides = ("objective=propfair", "objective.M=0.2", "client.lr=0.02", "rounds=2")
    fair, plain = run_without_files(*overrides), run_without_files("client.lr=0.1", "rounds=2")
    torch.testing.assert_close(fair.weights(), plain.weights(), atol=2e-6, rtol=0)


def test_the_alias_is_a_composition(tmp_path: Path) -> None:
    alias = run_without_files("agg=propfair", "objective@objective.base=gce", "rounds=2")
    composition = run_without_files("agg=fedavg", "objective=propfair", "objective@objective.base=gce", "rounds=2")
    assert same_bits(alias, composition)
    assert alias.info.choices["objective.base"] == "gce"
    assert not torch.equal(alias.weights(), run_without_files("agg=propfair", "rounds=2").weights())
    with pytest.raises(IncompatibleConfig, match="agg=propfair stands for objective=propfair, but objective=ce"):
        run_training(tmp_path, "agg=propfair", "objective=ce")


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("objective.base.q=2", r"^objective\.base\.q must be a number in \(0, 1\], got 2$"),
        ("+objective.base.r=2", r"^objective\.base: has no option 'r'; its only option is q$"),
        ("objective.M=0.5", r"^objective\.M must be above 1\.42857, the largest value"),
    ],
)
def test_an_error_in_the_base_objective_names_its_path(tmp_path: Path, override: str, line: str) -> None:
    with pytest.raises(OptionError, match=line):
        run_training(tmp_path, "objective=propfair", "objective@objective.base=gce", override)
