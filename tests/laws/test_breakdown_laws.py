"""Breakdown points: the number of false updates that a robust aggregator tolerates; a false majority decides.

An aggregator that tolerates false updates has a row in `BREAKDOWN_POINTS`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from agg_harness import aggregate_once, make_update
from config_options import CONFIGS, make_component
from failure_hints import failure_hint

OUTLIER = 1e6
HONEST_RADIUS = 1.0
BREAKDOWN_POINTS: dict[str, tuple[dict[str, Any], Callable[[int], int]]] = {  # options, and the number among n updates
    "median": ({}, lambda n: (n - 1) // 2),
    "trimmed_mean": ({"beta": 0.3}, lambda n: int(0.3 * n + 1e-9)),
    "krum": ({}, lambda n: max(0, (n - 3) // 2)),
    "multi_krum": ({}, lambda n: max(0, (n - 3) // 2)),
    "geometric_median": ({"iterations": 300, "weighting": "uniform"}, lambda n: (n - 1) // 2),
    "norm_clipping": ({"weighting": "uniform"}, lambda n: (n - 1) // 2),
}
each_choice = pytest.mark.parametrize(
    "choice", [c for c in BREAKDOWN_POINTS if (CONFIGS / "agg" / f"{c}.yaml").exists()]
)


def false_updates(rng: np.random.Generator, number: int) -> Iterator[np.ndarray]:
    """Yield false updates [number, 3]: all equal, all different, or half on either side."""
    signs = rng.choice([-1.0, 1.0], (number, 3))
    yield np.broadcast_to(OUTLIER * rng.choice([-1.0, 1.0], 3), (number, 3))
    yield OUTLIER * signs
    yield OUTLIER * (np.arange(number)[:, None] % 2 * 2 - 1) * np.ones(3)


def aggregate(choice: str, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    order = rng.permutation(len(rows))
    updates = [make_update(k, row.tolist(), n=1 + k) for k, row in enumerate(rows[order])]
    return aggregate_once(make_component("agg", choice, **BREAKDOWN_POINTS[choice][0]), updates, len(rows)).numpy()


@each_choice
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 10, 11])
@failure_hint("Compare an update with the others before it enters a mean, and derive the number that may be false.")
def test_tolerated_false_updates_leave_the_result_among_the_honest(choice: str, n: int) -> None:
    """The box of the honest updates, or for the geometric median and norm clipping a ball of a fixed radius.

    While e of the weight is false, the geometric median is at most 2 (1 - e) / (1 - 2 e) honest radii from 0. A clipped
    update is no longer than the median, which is at most the length of the longest honest update.
    """
    n_false, rng = BREAKDOWN_POINTS[choice][1](n), np.random.default_rng(n)
    honest = rng.uniform(-HONEST_RADIUS, HONEST_RADIUS, (n - n_false, 3))
    honest_norm = np.linalg.norm(honest, axis=1).max()
    for false in false_updates(rng, n_false):
        result = aggregate(choice, np.concatenate([honest, false]), rng)
        if choice in ("geometric_median", "norm_clipping"):
            share = n_false / n
            assert np.linalg.norm(result) <= 2 * (1 - share) / (1 - 2 * share) * honest_norm + 1e-6
        else:
            assert (result >= honest.min(0) - 1e-6).all()
            assert (result <= honest.max(0) + 1e-6).all()


@each_choice
@pytest.mark.parametrize("n", [5, 10])
def test_a_majority_of_false_updates_at_one_place_wins(choice: str, n: int) -> None:
    rng = np.random.default_rng(n)
    n_false = n // 2 + 1
    false = np.full((n_false, 3), OUTLIER)
    result = aggregate(choice, np.concatenate([rng.uniform(-1, 1, (n - n_false, 3)), false]), rng)
    assert np.linalg.norm(result) > OUTLIER / 10
