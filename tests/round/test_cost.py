"""What a round's work comes to, by hand, on a model and a federation of known sizes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from config_options import make_component
from cost_harness import (
    BUFFER_BYTES,
    CODECS,
    DRAWS,
    MODEL_BYTES,
    N_TRAIN,
    VECTOR_BYTES,
    LinearDevice,
    ids,
    make_cost_model,
    make_shard,
)
from fedcohort.errors import IncompatibleConfig
from fedcohort.round.clock import VirtualClock
from fedcohort.round.cost import CostModel
from fedcohort.round.query_time import compute_query_times
from fedcohort.round.rates import JobCosts
from fedcohort.signal.base import find_signal
from fedcohort.types import Probe
from round.test_clock import Listed


def test_a_plain_round_only_reads_signals_for_the_selector() -> None:
    """SCAFFOLD's vectors, and a fair aggregator's loss, are of rounds that are not plain."""
    scaffold = make_cost_model(("loss_post",), "scaffold")
    assert scaffold.select_job_costs(is_fedavg=False).extra_bytes == BUFFER_BYTES + VECTOR_BYTES + 4
    assert scaffold.select_job_costs(is_fedavg=True) == JobCosts(3.0, {}, 1.0, MODEL_BYTES, BUFFER_BYTES + 4)
    fair = make_cost_model((), make_component("agg", "fedmaba", loss="loss_post"))
    assert (
        fair.select_job_costs(is_fedavg=False).report_passes,
        fair.select_job_costs(is_fedavg=True).report_passes,
    ) == (
        1.0,
        0.0,
    )
    assert fair.select_job_costs(is_fedavg=False).extra_bytes == fair.select_job_costs(is_fedavg=True).extra_bytes + 4
    assert set(make_cost_model((), "fedmaba").select_job_costs(is_fedavg=False).queried_signals) == {"loss"}
    assert not make_cost_model((), "fedmaba").select_job_costs(is_fedavg=True).queried_signals
    assert make_cost_model(("loss_post",), "scaffold").query_costs == JobCosts(3.0, {}, 0.0, MODEL_BYTES, BUFFER_BYTES)


def test_the_training_samples_are_counted() -> None:
    costs = make_cost_model()
    assert costs.count_samples(ids(0, 2), [None, ids(3, 4, 5)]).tolist() == [10, 3]
    assert costs.count_sample_uses(N_TRAIN, 2).tolist() == [20, 40, 80]
    assert costs.count_sample_uses(N_TRAIN, np.array([0, 1, 3])).tolist() == [0, 20, 120]
    steps = make_cost_model(steps=5, batch=16)
    assert steps.work_units == 5
    assert steps.count_sample_uses(N_TRAIN, 5).tolist() == [5 * 10, 16 + 4 + 16 + 4 + 16, 16 + 16 + 8 + 16 + 16]
    assert steps.count_sample_uses(N_TRAIN, np.array([0, 2, 3])).tolist() == [0, 16 + 4, 16 + 16 + 8]
    assert make_cost_model(steps=5, batch=None).count_sample_uses(N_TRAIN, 5).tolist() == [50, 100, 200]
    assert (
        make_cost_model(steps=5, batch=None).count_sample_uses(10_000 * N_TRAIN, 1).tolist()
        == (10_000 * N_TRAIN).tolist()
    )


@for_all(
    "samples, deadline, options, numbers",
    [
        ("all", "wait_for_all", {}, 0),
        ("all", "fixed", {}, 0),  # who is late is left out, and needn't know when
        ("all", "fixed", {"partial_work": True}, 1),
        ("all", "fedbalancer", {"partial_work": False}, 0),
        ("all", "fedbalancer", {"partial_work": True}, 1),
        ("fedbalancer", "fixed", {}, 2),  # the threshold, and the deadline that samples are to fit before
        ("fedbalancer", "fedbalancer", {"partial_work": True}, 2),  # the deadline is charged once for both components
    ],
)
def test_clients_receive_a_deadline_if_they_use_it(
    samples: str, deadline: str, options: dict[str, Any], numbers: int
) -> None:
    costs = make_cost_model(
        components={
            "samples": make_component("samples", samples),
            "deadline": make_component("deadline", deadline, **options),
        }
    )
    assert costs.usual_job_costs.down_bytes == costs.plain_job_costs.down_bytes == MODEL_BYTES + 4 * numbers


@pytest.mark.parametrize(
    ("signal", "options", "samples"),
    [
        ("loss", {}, [10, 40]),
        ("val_loss", {}, [2, 6]),
        ("grad_norm", {}, [3 * 10, 3 * 40]),
        ("batch_loss", {"batch": 16}, [10, 16]),
        ("shadow_loss", {"trainers": (1, 2)}, [10, 40]),
    ],
)
def test_the_samples_of_a_query_are_counted(signal: str, options: dict[str, Any], samples: list[float]) -> None:
    assert make_cost_model().count_query_passes(find_signal(signal), ids(0, 2), options) == pytest.approx(samples)  # type: ignore[arg-type]


def test_passes_without_training_are_counted() -> None:
    """Before it for the aggregator, after it for who reads loss_post."""
    costs = make_cost_model(("loss_post",), "fedmaba")
    assert costs.count_forward_passes(ids(0, 2), costs.usual_job_costs).tolist() == [10 + 10, 40 + 40]
    assert costs.count_forward_passes(ids(0, 2), costs.plain_job_costs).tolist() == [10, 40]
    assert costs.count_forward_passes(ids(0, 2), costs.query_costs).tolist() == [0, 0]


def test_a_full_job_takes_one_sample_time_per_sample() -> None:
    """An epoch of E = 2 is n / 2, with FedBiO's 9 passes a sample for 3 three times as much.

    A forward pass over n is a third of an epoch. A step counts the samples in it.
    """
    work = make_cost_model().make_workload(N_TRAIN, 6.0 * N_TRAIN, make_cost_model().usual_job_costs, 7.0)
    assert (work.unit_load.tolist(), work.infer_load.tolist(), work.units) == ([5, 10, 20], [10, 20, 40], 2)
    assert (work.bytes_down.tolist(), work.bytes_up.tolist()) == ([MODEL_BYTES] * 3, [7.0] * 3)
    second_order = make_cost_model((), "fedbio")
    assert second_order.make_workload(N_TRAIN, 0.0 * N_TRAIN, second_order.usual_job_costs, 0.0).unit_load.tolist() == [
        15,
        30,
        60,
    ]
    steps = make_cost_model(steps=5, batch=16).make_workload(
        N_TRAIN, 6.0 * N_TRAIN, make_cost_model().usual_job_costs, N_TRAIN
    )
    assert (steps.unit_load.tolist(), steps.infer_load.tolist(), steps.units) == ([10, 56 / 5, 72 / 5], [20, 40, 80], 5)
    assert steps.bytes_up.tolist() == N_TRAIN.tolist()
    for requested, trained in ((work, [20, 40, 80]), (steps, [50, 56, 72])):  # samples that train: E n, or 5 batches
        assert (requested.epochs * requested.units * requested.unit_load).tolist() == trained


def test_the_time_of_a_step_is_the_mean_over_the_job() -> None:
    """Batches of 16 and 4 in turn of 20 samples; an epoch is an epoch, however many of them are asked."""
    rates, jobs = make_cost_model().usual_job_costs, np.array([1, 2, 3])
    steps = make_cost_model(steps=5, batch=16).make_workload(
        np.array([20, 20, 20]), np.zeros(3), rates, 0.0, work_units=jobs
    )
    assert (jobs * steps.unit_load).tolist() == [16, 20, 36]
    assert make_cost_model().make_workload(N_TRAIN, np.zeros(3), rates, 0.0, work_units=jobs).unit_load.tolist() == [
        5,
        10,
        20,
    ]


def test_the_expected_work_of_all_clients() -> None:
    """Travel of the model and of the whole answer, and two epochs of n / 2; scores and passes of probes take none."""
    device_facts = make_cost_model(("steps", "loss_post", "loss"), "scaffold").expect_job_times(DRAWS)
    up = VECTOR_BYTES + BUFFER_BYTES + VECTOR_BYTES + 2 * 4
    assert device_facts["expected_s"].tolist() == (MODEL_BYTES + VECTOR_BYTES + N_TRAIN + up).tolist()
    assert device_facts["expected_unit_s"].tolist() == (N_TRAIN / 2).tolist()
    assert device_facts["expected_up_s"].tolist() == [up] * 3
    assert device_facts["expected_down_s"].tolist() == [MODEL_BYTES + VECTOR_BYTES] * 3
    assert device_facts["pass_units"].tolist() == [1, 1, 1]


def test_jobs_without_a_duration_are_rejected() -> None:
    """1e9 sample-times of 1e9 seconds each for a sample; devices that take no time have no jobs to check."""
    slow = make_component("device", "shifted_exponential", unit_s=1e9, alpha=1e9)
    with pytest.raises(IncompatibleConfig, match="the whole job of client 0, with 10 samples, is expected to take 1e"):
        make_cost_model(device=slow).expect_job_times(DRAWS)
    assert make_cost_model(device=make_component("device", "instant")).expect_job_times(DRAWS)[
        "expected_s"
    ].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("batch", "passes"), [(16, [1, 2, 3]), (10, [1, 2, 4]), (None, [1, 1, 1])])
def test_the_number_of_steps_of_a_pass_by_hand(batch: int | None, passes: list[int]) -> None:
    assert make_cost_model(steps=5, batch=batch).expect_job_times(DRAWS)["pass_units"].tolist() == passes


def test_a_last_batch_of_one_is_merged_for_batch_norm() -> None:
    """In batches of 9, 10 samples are one of 10, and 19 are one of 9 and one of 10."""
    model = make_cost_model(steps=3, batch=9, merge_last_batch=True)
    assert model.count_sample_uses(np.array([10, 19, 40]), 3).tolist() == [30, 9 + 10 + 9, 27]
    assert model.expect_job_times(DRAWS)["pass_units"].tolist() == [1, 3, 5]


def test_a_client_without_samples_takes_no_pass() -> None:
    model = make_cost_model(steps=5, batch=None)
    model.federation = replace(model.federation, train=make_shard(np.array([10, 0, 40])))
    assert model.expect_job_times(DRAWS)["pass_units"].tolist() == [1, 0, 1]


def phase(model: CostModel, *probes: Probe) -> float:
    """Return the seconds that the probes take if all clients are always ready."""
    clock = VirtualClock(make_component("availability", "always"), DRAWS, 0.0)
    seconds, left_clients = compute_query_times(model, model.sum_query_work(probes, DRAWS), DRAWS, 0.0, clock)
    assert not left_clients.any()
    return seconds


def test_a_phase_lasts_until_the_slowest_is_done() -> None:
    """Client 1 runs 20 and 4 samples forward, a sixth of a sample-time each for E = 2; the model alone travels."""
    costs = make_cost_model((), "scaffold", LinearDevice(slow=10.0))
    loss, val = Probe("loss", ids(0, 1)), Probe("val_loss", ids(1, 2))
    assert phase(costs, loss, val) == pytest.approx(10 * (MODEL_BYTES + 24 / 6))
    assert phase(costs, val) == pytest.approx(10 * (MODEL_BYTES + 6 / 6))
    assert phase(costs) == phase(costs, Probe("greedy_gain", ids(0, 1))) == 0.0


def test_a_client_that_leaves_early_is_not_waited_for() -> None:
    """Client 1 is done after MODEL + 24 / 6 seconds from its start, and is there for one less or one more."""
    costs, query_s = make_cost_model((), "fedavg", LinearDevice()), MODEL_BYTES + 24 / 6
    query_work = costs.sum_query_work((Probe("loss", ids(0, 1)), Probe("val_loss", ids(1, 2))), DRAWS)
    for stay_s, has_left in ((query_s - 1, True), (query_s + 1, False)):
        hours = (((0.0, 9 * query_s),), ((100.0, 100.0 + stay_s),), ((0.0, 9 * query_s),))
        seconds, left_clients = compute_query_times(
            costs, query_work, DRAWS, 100.0, VirtualClock(Listed(hours, 10 * query_s), DRAWS, 0.0)
        )
        assert seconds == pytest.approx(query_s)
        assert left_clients.tolist() == [False, has_left, False]


def test_a_client_that_leaves_in_the_second_phase_is_lost() -> None:
    """All train nothing but client 0; then each tries the model of its update, for which client 2 doesn't stay."""
    costs = make_cost_model((), "fedavg", LinearDevice())
    query_work = costs.sum_query_work((Probe("shadow_loss", ids(0, 1, 2), {"trainers": (0,)}),), DRAWS)
    full_s, no_clients = compute_query_times(
        costs, query_work, DRAWS, 0.0, VirtualClock(make_component("availability", "always"), DRAWS, 0.0)
    )
    hours = (((0.0, 2 * full_s),), ((0.0, 2 * full_s),), ((0.0, full_s - 1),))
    seconds, left_clients = compute_query_times(
        costs, query_work, DRAWS, 0.0, VirtualClock(Listed(hours, 2 * full_s), DRAWS, 0.0)
    )
    assert seconds == full_s
    assert left_clients.tolist() == [False, False, True]
    assert not no_clients.any()


@pytest.mark.parametrize(("codec", "options", "model_bytes"), CODECS)
def test_a_model_trained_for_a_query_is_waited_for(codec: str, options: dict[str, Any], model_bytes: int) -> None:
    """Client 0 trains two epochs (3 passes a sample) and sends its update; then all have the model and try it."""
    costs = make_cost_model(
        (), "scaffold", LinearDevice(slow=10.0), {"codec": make_component("codec", codec, **options)}
    )
    loss, shadow_loss = Probe("loss", ids(0, 1, 2)), Probe("shadow_loss", ids(0, 1, 2), {"trainers": (0,)})
    assert costs.sum_query_work([loss, shadow_loss], DRAWS).total_passes.tolist() == [10 + 60 + 10, 20 + 20, 40 + 40]
    assert phase(costs, loss, shadow_loss) == pytest.approx(
        10 * (MODEL_BYTES + 70 / 6 + model_bytes) + 10 * (MODEL_BYTES + 40 / 6)
    )
