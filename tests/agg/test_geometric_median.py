"""RFA: iterates by hand, the limit, and the reduction to FedAvg."""

from collections.abc import Sequence

import pytest

from agg_harness import ROWS_WITH_ONE_FAR, aggregate_once, collect_updates, make_arrived, make_update
from config_options import make_component
from tolerances import ApproxTolerance

CLOSE: ApproxTolerance = {"abs": 1e-8}


def rfa(rows: Sequence[Sequence[float]], n: Sequence[int] = (1, 1, 1, 1, 1), **options: float | str) -> list[float]:
    updates = [make_update(k, row, n=n[k]) for k, row in enumerate(rows)]
    displacement: list[float] = aggregate_once(make_component("agg", "geometric_median", **options), updates).tolist()
    return displacement


def test_the_weiszfeld_iterations_converge_to_the_geometric_median() -> None:
    """Reference numbers of an independent implementation; the median of the five updates is near (2, 0)."""
    assert rfa(ROWS_WITH_ONE_FAR, iterations=1) == pytest.approx([7.77905271, 2.94207403], **CLOSE)
    assert rfa(ROWS_WITH_ONE_FAR) == pytest.approx([2.22738885, 0.19639681], **CLOSE)
    assert rfa(ROWS_WITH_ONE_FAR, iterations=100) == pytest.approx([2.00023606, 0.00029511], **CLOSE)


def test_one_weiszfeld_iteration_by_hand() -> None:
    """From the mean 3 of 0, 0 and 9: distances 3, 3 and 6, so that z = (9 / 6) / (1/3 + 1/3 + 1/6) = 9 / 5."""
    line = [[0.0], [0.0], [9.0]]
    assert rfa(line, iterations=1) == pytest.approx([9 / 5])
    assert rfa(line) == pytest.approx([0.27272727], **CLOSE)
    assert rfa(line, iterations=50)[0] < 1e-4


def test_the_geometric_median_follows_half_of_the_samples() -> None:
    """The last update has half of the weight by samples, and the iterates stay between it and the others."""
    assert rfa(ROWS_WITH_ONE_FAR, (1, 1, 1, 1, 4)) == pytest.approx([51.01209784, 25.00472746], **CLOSE)
    uniform = rfa(ROWS_WITH_ONE_FAR, (1, 1, 1, 1, 4), weighting="uniform")
    assert uniform == pytest.approx(rfa(ROWS_WITH_ONE_FAR))


def test_without_iterations_the_geometric_median_equals_fedavg() -> None:
    updates = [make_update(k, row, n=1 + k) for k, row in enumerate(ROWS_WITH_ONE_FAR)]
    assert rfa(ROWS_WITH_ONE_FAR, (1, 2, 3, 4, 5), iterations=0) == pytest.approx(
        aggregate_once(make_component("agg", "fedavg"), updates).tolist()
    )


def test_an_update_at_the_median_has_a_bounded_weight() -> None:
    """From the start 0 the betas are 1/3 of (1 / nu, 1 / 9, 1 / 9), and -9 and 9 cancel; their shares are logged."""
    agg = make_component("agg", "geometric_median", iterations=1, nu=1.0)
    collected = collect_updates(agg, [make_update(k, [value]) for k, value in enumerate((0.0, 9, -9))])
    step = agg.direction(None, make_arrived(collected))[0]
    assert step.displacement.tolist() == pytest.approx([0])
    assert step.weights.tolist() == pytest.approx([9 / 11, 1 / 11, 1 / 11])
