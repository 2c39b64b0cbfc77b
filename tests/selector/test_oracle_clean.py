"""The clean oracle: the clients in its pool, and each client's probability."""

from pathlib import Path

import numpy as np
import pytest

from config_options import make_component
from fedcohort.selector.base import Stateless
from fedcohort.selector.oracle_clean import OracleClean
from fedcohort.tracking import record
from optional_values import not_none
from run_harness import run_training
from selector_harness import make_context, to_list

RATE = {"noise_rate": np.array([0.4, 0.0, 0.2, 0.1, 0.3])}


def select_clients(share: float, rates: dict[str, np.ndarray] = RATE, seed: int = 0, **ctx: object) -> list[int]:
    ctx_of_round = make_context(signals=rates, seed=seed, **ctx)  # type: ignore[arg-type]
    return to_list(OracleClean(share).select(Stateless(), ctx_of_round, {})[0].clients)


def test_only_the_cleanest_clients_are_selected() -> None:
    """share=0 is a pool of m; 0.6 of five clients is a pool of the three cleanest, 1, 3 and 2."""
    assert select_clients(0.0) == [1, 3]
    assert select_clients(0.0, available=[0, 2, 4]) == [2, 4]
    selections = [tuple(select_clients(0.6, seed=seed)) for seed in range(40)]
    assert set(selections) == {(1, 2), (1, 3), (2, 3)}
    assert len({tuple(select_clients(1.0, seed=seed)) for seed in range(200)}) == 10  # all pairs


@pytest.mark.parametrize(
    ("share", "rates", "exact"),
    [
        (0.6, RATE["noise_rate"], [0, 2 / 3, 2 / 3, 2 / 3, 0]),  # m = 2 of a pool of 3
        (1.0, RATE["noise_rate"], [0.4] * 5),
        (0.6, np.array([0.2, 0.0, 0.2, 0.2, 0.5]), [4 / 9, 2 / 3, 4 / 9, 4 / 9, 0]),  # three share two places: 2/3 2/3
        (0.2, np.zeros(5), [0.4] * 5),  # without noise it is uniform
    ],
)
def test_selection_probabilities_by_hand(share: float, rates: np.ndarray, exact: list[float]) -> None:
    """Its probabilities are these, and so are the frequencies, within four standard deviations."""
    ctx = make_context(signals={"noise_rate": rates})
    selection = OracleClean(share).select(Stateless(), ctx, {})[0]
    assert selection.probability is not None
    np.testing.assert_allclose(not_none(selection.probability), exact, rtol=1e-12)
    np.testing.assert_allclose(not_none(selection.scores), 1 - rates)
    picks = [OracleClean(share).select(Stateless(), ctx, {})[0].clients for _ in range(1000)]
    shares, p = np.bincount(np.concatenate(picks), minlength=5) / 1000, np.array(exact)
    assert (np.abs(shares - p) <= 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_rounding_does_not_widen_the_pool() -> None:
    """.3 * 10 is 3.0000000000000004 in floats (.1 + .2): the pool is of three."""
    ctx = make_context(cohort=1, n_clients=10, signals={"noise_rate": np.arange(10) / 10})
    selection = make_component("selector", "oracle_clean", share=0.1 + 0.2).select(Stateless(), ctx, {})[0]
    assert np.flatnonzero(selection.probability).tolist() == [0, 1, 2]


def test_a_run_names_its_oracle_signals(tmp_path: Path) -> None:
    info = run_training(tmp_path, "selector=oracle_clean", "rounds=1").info
    assert info is not None
    assert record.list_tags(info, "running")["yardstick"] == "noise_rate"
