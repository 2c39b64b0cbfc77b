"""The cost of a job in addition to its training, on a model of known size."""

from typing import Any

import pytest

from config_options import make_component
from fedcohort.flat import Layout, TensorBlock
from fedcohort.round.rates import JobCosts
from fedcohort.signal.base import find_signal

P, B = 18, 2  # numbers of a 5 x 3 linear model, and of its float buffers
LAYOUT = Layout(
    (TensorBlock("w", (3, 5), 0), TensorBlock("b", (3,), 15)),
    (TensorBlock("mean", (B,), 0),),
    (TensorBlock("seen", (1,), 0),),
)
FIXED, VECTOR = 4 * B + 8 * 1, 4 * P  # bytes: 4 a float, 8 an integer


@pytest.mark.parametrize(
    ("agg", "options", "down", "up", "passes"),
    [
        ("fedavg", {}, 0, 0, 3),
        ("scaffold", {}, 1, 1, 3),
        ("fedbio", {"variant": "first_order"}, 0, 0, 3 + 6),
        ("fedbio", {"variant": "second_order"}, 1, 1, 3 + 12),
    ],
)
def test_the_vectors_and_passes_of_hooks_are_charged(agg: str, options: Any, down: int, up: int, passes: float) -> None:
    rates = JobCosts.from_signals((), (), make_component("agg", agg, **options).hooks, LAYOUT)
    assert (rates.down_bytes, rates.extra_bytes) == (FIXED + VECTOR * (1 + down), FIXED + VECTOR * up)
    assert (rates.training_passes, rates.report_passes, rates.queried_signals) == (passes, 0, {})


def test_a_reported_signal_has_its_declared_cost() -> None:
    """Two numbers of 4 bytes are sent with an update; loss_post takes a forward pass after training.

    A probe of the aggregator is charged separately, and static signals are charged at registration.
    """
    rates = JobCosts.from_signals({"loss_post", "steps", "n_train", "loss"}, {"loss", "steps", "n_train"}, (), LAYOUT)
    assert rates.extra_bytes == FIXED + 2 * 4
    assert rates.report_passes == 1.0
    assert rates.queried_signals == {"loss": find_signal("loss")}
