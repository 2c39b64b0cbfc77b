"""Steps of asynchronous rounds equal those that were computed by hand, and by other programs."""

from collections.abc import Sequence

import numpy as np
import pytest

from asynchronous_engine import models, race  # noqa: F401  a fixture


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("agg=fedbuff", "deadline.staleness=constant"), [4, 2, 1, -1, -1.5, -0.75, -0.375, 2.125]),
        (("agg=fedbuff",), [4, 2, 1, 0, -0.35355339, -0.1767767, -0.08838835, 0.91161165]),
        (("agg=fedavg",), [4, 2, 1, -1, -1.5, -0.75, -0.375, 2.125]),
        (("agg=fedasync",), [5.6, 3.92, 2.744, 3.7208, 2.72428856, 1.90700199, 1.33490139, 2.09255097]),
    ],
)
def test_the_staleness_of_two_asynchronous_clients_by_hand(
    options: Sequence[str],
    expected: Sequence[float],
    models: list[float],  # noqa: F811
) -> None:
    """Client 0 arrives at 1, 2, 3, 3+1, 5, 6 and client 1 at 3 and 6, after client 0, with models of 3 steps before.

    w = 8, 8 - 4, 4 - 2, 2 - 1, then client 1's -(8 - 4)/2 = -2, weighed by 1 or (1 + 3)^-.5, and so on. FedAvg divides
    by the weight of the only arrival. FedAsync moves .6 (1 + s)^-.5 of the way to the client's model.
    On this schedule FLSim 7311f2d gives the second list (FedAvgWithLRFedBuffAggregator, lr=1, buffer_size=1, polynomial
    weights, avg_staleness=0) and the fourth (FedAvgWithLRAsyncAggregator, lr=.6, fed_async_aggregation, these weights).
    The formula of FLGo-Async 425cee6 (algorithm/fedasync.py, flag=poly) gives the fourth, too; it averages the models
    of clients that arrive together, where agg=fedasync mixes them in one after the other. FLSim's classes were
    executed; of FLGo the formulas were evaluated, not the program.
    """
    run = race(2, *options, "rounds=8")
    np.testing.assert_allclose(models, expected, rtol=1e-6)
    assert [report.arrived.tolist() for report in run.reports[1:]] == [[0], [0], [0], [1], [0], [0], [0], [1]]
    assert [report.metrics["staleness/max"] for report in run.reports[1:]] == [0, 0, 0, 3, 1, 0, 0, 3]
    assert [report.metrics["time/virtual_s"] for report in run.reports[1:]] == [1, 2, 3, 3, 4, 5, 6, 6]


def test_the_server_waits_for_an_update_of_the_bound(models: list[float]) -> None:  # noqa: F811
    """With the bound 2, the third step lasts until client 1 arrives at 3, with the model of two steps before.

    w = 8, 8 - 4, 4 - 2, then 2 + (-1 - 2)/2 = .5 from both. They start again: .5 - .25, .25 - .125, and the mean of
    -.125/2 and -(.5 - 4)/2 = 1.75.
    """
    run = race(2, "agg=fedbuff", "deadline.staleness=constant", "deadline.wait_for_stale=2", "rounds=6")
    np.testing.assert_allclose(models, [4, 2, 0.5, 0.25, 0.125, 0.96875], rtol=1e-6)
    assert [report.arrived.tolist() for report in run.reports[1:]] == [[0], [0], [0, 1], [0], [0], [0, 1]]
    assert [report.metrics["staleness/max"] for report in run.reports[1:]] == [0, 0, 2, 0, 0, 2]
    assert [report.metrics["time/virtual_s"] for report in run.reports[1:]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("agg=fedbuff",), [3.0, 1.5428932, -0.080267, 0.374159, -0.4122982, 0.3317405, -0.3854167, 0.3594003]),
        (
            ("agg=fedbuff", f"server.lr={2**0.5}"),
            [0.9289322, -0.3994949, -1.4904852, 0.1363547, -0.5392327, 0.6173262, -0.4661234, 0.5443446],
        ),
        (
            ("agg=fedbuff", "deadline.staleness=constant"),
            [3.0, 1.25, -0.8125, 0.078125, -0.7382812, 0.4267578, -0.4953613, 0.5217896],
        ),
    ],
)
def test_fedbuff_agrees_with_flsim_and_flgo(
    options: Sequence[str],
    expected: Sequence[float],
    models: list[float],  # noqa: F811
) -> None:
    """Three clients work, and steps have two arrivals; the numbers are those of other programs on this schedule.

    1. FLSim 7311f2d: FedAvgWithLRFedBuffAggregator, lr=1/2, buffer_size=2, PolynomialStalenessWeight exponent=.5,
       avg_staleness=0. It adds the updates without division, so that its lr divides by the buffer. The formula of
       FLGo-Async 36ae6f1, algorithm/fedbuff.py, eta=1, gives the same.
    2. FLSim with its default avg_staleness=1, which multiplies all weights by 2^.5.
    3. The formula of easyFL a8a7f05: flgo/algorithm/fedbuff.py with K=2, which has no weights of staleness.
    """
    run = race(3, *options, "deadline.buffer=2", "deadline.concurrency=3", "rounds=8")
    np.testing.assert_allclose(models, expected, rtol=1e-6, atol=1e-7)
    assert [report.arrived.tolist() for report in run.reports[1:]] == [[0, 2], [0, 1]] * 4
    assert [report.metrics["staleness/mean"] for report in run.reports[1:]] == [0] + 7 * [0.5]
