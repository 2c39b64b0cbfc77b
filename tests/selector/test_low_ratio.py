"""The low half: ratios by hand, and whom they let in."""

from pathlib import Path

import numpy as np

from fedcohort.selector.low_ratio import LowRatio, State
from fedcohort.types import Population, ProbeResult
from optional_values import not_none
from run_harness import run_training
from selector_harness import ids, make_context, make_outcome, to_list


def observe_losses(state: State, part: LowRatio, losses: list[float], round: int) -> State:
    round_outcome = make_outcome(round, [0], probes={"loss": ProbeResult(ids(0, 1, 2, 3, 4), np.array(losses))})
    return part.observe(state, round_outcome)[1]


def test_the_first_round_is_uniform_and_every_round_queries_all_clients() -> None:
    part = LowRatio(0.4)
    state = part.init(Population(5, 2, 2, {}))
    assert part.select(state, make_context(), {})[0].uncapped
    (probe,) = part.plan(state, make_context(round=3, available=[0, 3]))
    assert (probe.signal, to_list(probe.clients), probe.concurrent) == ("loss", [0, 3], True)


def test_clients_with_the_largest_loss_decrease_are_candidates() -> None:
    """First losses 2, 2, 4, 1 and 1, then 1, 2, 1, .9 and NaN: ratios .5, 1, .25, .9 and none."""
    part = LowRatio(0.4)
    state = observe_losses(part.init(Population(5, 2, 2, {})), part, [2.0, 2.0, 4.0, 1.0, 1.0], 0)
    state = observe_losses(state, part, [1.0, 2.0, 1.0, 0.9, np.nan], 1)
    selection, _ = part.select(state, make_context(round=2), {})
    np.testing.assert_allclose(not_none(selection.scores), [-0.5, -1.0, -0.25, -0.9, np.nan])
    assert to_list(selection.clients) == [0, 2]
    few = make_context(round=2, available=[1, 3, 4])
    assert to_list(part.select(state, few, {})[0].clients) == [1, 3]


def test_a_run_avoids_clients_with_label_noise(tmp_path: Path) -> None:
    overrides = ("rounds=12", "clients=20", "cohort=5", "model=mlp", "client.epochs=5", "eval.clients_every=0")
    noise = ("heterogeneity=noise15", "label_noise.a=30", "label_noise.concentration=1")
    run = run_training(tmp_path, "selector=low_ratio", *overrides, *noise)
    rates = run.info.noise_rate
    later_rates = np.concatenate([rates[cohort] for cohort in run.cohorts[4:]])
    assert later_rates.mean() < 0.8 * rates.mean()
