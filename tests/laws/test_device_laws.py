"""Every device model is deterministic, keyed by client, proportional to work and bytes, with the stated mean."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from config_options import list_options, load_options, make_component
from failure_hints import failure_hint
from fedcohort.device.base import Timing, Workload
from fedcohort.rng import Draws
from fedcohort.types import Ids
from global_rng_guard import forbid_global_rng

K = 40
PHASES = ("down_s", "infer_s", "unit_s", "up_s")


@pytest.fixture(params=list_options("device"))
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    choice = request.param
    return make_component(
        "device", choice, **(write_table(choice, tmp_path) if "path" in load_options("device", choice) else {})
    )


def write_table(choice: str, folder: Path) -> dict[str, Any]:
    """Write the table of a user with every column, K rows and client names in the column `client`."""
    columns = [
        option for option, name in load_options("device", choice).items() if name == option or option.endswith("_cv")
    ]
    rng = np.random.default_rng(0)
    values = {name: rng.uniform(0.05, 0.5, K) for name in columns}
    pq.write_table(pa.table({**values, "client": np.arange(K)}), folder / "devices.parquet")
    return {"path": str(folder / "devices.parquet"), **{name: name for name in columns}}


def work(clients: Ids, scale: float = 1.0) -> Workload:
    n = scale * (10.0 + clients)
    return Workload(n / 5, n / 15, 5, np.full(len(clients), 4e6), np.full(len(clients), 4e6))


def equal_timings(a: Timing, b: Timing) -> bool:
    return all(np.array_equal(getattr(a, phase), getattr(b, phase)) for phase in PHASES)


@failure_hint("Draw from the Draws that the method receives.")
def test_device_times_are_deterministic_without_global_generators(device: Any) -> None:
    clients = np.arange(K)
    with forbid_global_rng():
        first = (
            device.sample(clients, work(clients), Draws(0, K, 3)),
            device.expect(clients, work(clients), Draws(0, K)),
        )
    with forbid_global_rng():
        repeat = (
            device.sample(clients, work(clients), Draws(0, K, 3)),
            device.expect(clients, work(clients), Draws(0, K)),
        )
    assert equal_timings(first[0], repeat[0])
    assert equal_timings(first[1], repeat[1])


@pytest.mark.parametrize("ids", [[7], [3, 7, 20], [0, 7, 8, 39], list(range(K))])
@failure_hint("Draw for each client from its own generator.")
def test_a_latency_does_not_depend_on_the_other_clients(device: Any, ids: list[int]) -> None:
    all_clients, subset = np.arange(K), np.array(ids)
    for method in (device.sample, device.expect):
        all_timings, subset_timings = (
            method(all_clients, work(all_clients), Draws(0, K, 3)),
            method(subset, work(subset), Draws(0, K, 3)),
        )
        for phase in PHASES:
            np.testing.assert_array_equal(getattr(all_timings, phase)[subset], getattr(subset_timings, phase))


@failure_hint("Return one non-negative number for each client asked.")
def test_device_times_have_one_valid_value_per_client(device: Any) -> None:
    clients = np.array([2, 9, 11])
    for timing in (
        device.sample(clients, work(clients), Draws(0, K, 0)),
        device.expect(clients, work(clients), Draws(0, K)),
    ):
        for phase in PHASES:
            seconds = getattr(timing, phase)
            assert seconds.shape == (3,)
            assert seconds.dtype == np.float64
            assert (seconds >= 0).all()
            assert np.isfinite(seconds).all()


@failure_hint("Let computing time be proportional to the samples.")
def test_twice_the_samples_take_twice_the_time(device: Any) -> None:
    clients = np.arange(K)
    single, double = (device.sample(clients, work(clients, scale), Draws(0, K, 3)) for scale in (1.0, 2.0))
    np.testing.assert_allclose(double.unit_s, 2 * single.unit_s)
    np.testing.assert_allclose(double.infer_s, 2 * single.infer_s)
    np.testing.assert_allclose(double.down_s, single.down_s)


@failure_hint("Let a unit of work take the same time, however many are asked for.")
def test_twice_the_epochs_take_twice_the_time(device: Any) -> None:
    """The seconds per unit of work do not depend on the number of units of any client."""
    clients = np.arange(K)
    workload = work(clients)
    for method in (device.sample, device.expect):
        single, double = (method(clients, replace(workload, units=units), Draws(0, K, 3)) for units in (5, 10))
        assert equal_timings(single, double)
        training_s = single.finish_s(10) - single.finish_s(0)
        np.testing.assert_allclose(training_s, 2 * (single.finish_s(5) - single.finish_s(0)))


def test_all_sample_times_scale_equally_with_the_epochs(device: Any) -> None:
    """E epochs in a sample time multiply the training time by E, or leave it if sample times are not seconds."""
    clients = np.arange(K)
    for method in (device.sample, device.expect):
        one_epoch, five_epochs = (
            method(clients, replace(work(clients), epochs=epochs), Draws(0, K, 3)) for epochs in (1, 5)
        )
        ratio = 5 if np.any(five_epochs.unit_s != one_epoch.unit_s) else 1
        np.testing.assert_allclose(five_epochs.unit_s, ratio * one_epoch.unit_s)
        np.testing.assert_allclose(five_epochs.infer_s, ratio * one_epoch.infer_s)
        np.testing.assert_array_equal(five_epochs.down_s, one_epoch.down_s)
        np.testing.assert_array_equal(five_epochs.up_s, one_epoch.up_s)


def make_workload(direction: str, size: float) -> Workload:
    workload, changed = work(np.arange(K)), np.full(K, size)
    return replace(workload, bytes_down=changed) if direction == "down" else replace(workload, bytes_up=changed)


@pytest.mark.parametrize("direction", ["down", "up"])
@failure_hint("Let transfer time grow with bytes.")
def test_more_bytes_never_arrive_earlier(device: Any, direction: str) -> None:
    clients = np.arange(K)
    sizes = [0.0, 1.0, 4e6, 8e6, 1e9]
    for method in (device.sample, device.expect):
        timings = [method(clients, make_workload(direction, size), Draws(0, K, 3)) for size in sizes]
        seconds = np.stack([getattr(timing, f"{direction}_s") for timing in timings])
        assert (seconds[0] == 0).all()
        assert (np.diff(seconds, axis=0) >= 0).all()
        np.testing.assert_allclose(seconds[3], 2 * seconds[2])
        for phase in set(PHASES) - {f"{direction}_s"}:
            assert all(np.array_equal(getattr(timing, phase), getattr(timings[0], phase)) for timing in timings)


@failure_hint("Set `timed` to whether any time is above 0.")
def test_timed_is_true_exactly_if_something_takes_time(device: Any) -> None:
    clients = np.arange(K)
    finish = device.sample(clients, work(clients), Draws(0, K, 3)).finish_s(5)
    assert device.timed == bool((finish > 0).all())
    next_round = device.sample(clients, work(clients), Draws(0, K, 4)).finish_s(5)
    assert device.timed == bool((finish != next_round).any())


@failure_hint("Return from `expect` the mean of what `sample` draws.")
def test_expected_is_the_mean_over_rounds(device: Any) -> None:
    clients = np.arange(K)
    rounds = np.stack([device.sample(clients, work(clients), Draws(0, K, t)).finish_s(5) for t in range(600)])
    expected = device.expect(clients, work(clients), Draws(0, K)).finish_s(5)
    tolerance = 5 * rounds.std(0) / np.sqrt(600)
    assert (np.abs(rounds.mean(0) - expected) <= tolerance).all()
