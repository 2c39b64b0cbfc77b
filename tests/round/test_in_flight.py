"""Late jobs start from the model that was sent with them, arrive exactly once, and leave nothing behind."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from asynchronous_engine import list_race_options, models, race  # noqa: F401  a fixture
from config_options import list_options
from engine_harness import make_network
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from fedcohort.round.components import ServerState
from fedcohort.round.in_flight import Broadcast, JobsInFlight, SentModels
from fedcohort.round.job_schedule import JobScheduler
from fedcohort.round.uniform import UniformReference
from fedcohort.selector.round_robin import RoundRobin
from job_tables import make_jobs
from round_harness import run_small, run_without_files
from run_harness import run_training, same_bits


def test_a_free_place_is_filled_at_once_with_a_client_that_has_not_answered(models: list[float]) -> None:  # noqa: F811
    """Clients 0 and 1 start; client 2 replaces client 0 at 1 s, and ends at 3 s, as client 1 does, which is first.

    Step 1: 8 + (-4 - 2) / 2 = 5 at 3 s. Client 2's -(8 + 4)/2 = -6 arrives in the same second and waits for client 0.
    Client 0 starts at 3 s with w = 5 and arrives at 4 s with -2.5. Client 1 still waits: 5 + (-6 2^-.5 - 2.5) / 2.
    """
    run = race(3, "agg=fedbuff", "deadline.buffer=2", "rounds=2")
    assert run.reports[1].cohort.tolist() == [0, 1, 2]
    assert [report.arrived.tolist() for report in run.reports[1:]] == [[0, 1], [0, 2]]
    np.testing.assert_allclose(models, [5, 5 + (-6 / 2**0.5 - 2.5) / 2], rtol=1e-6)
    assert [report.metrics["time/virtual_s"] for report in run.reports[1:]] == [3, 4]


@pytest.mark.usefixtures("models")
def test_a_client_that_never_returns_is_lost_at_the_end_of_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client 2 replaces client 0 at 1 s, as in the test above; it is charged for its work, and selected again."""
    failed_ids, observe, make_jobs = list[list[int]](), RoundRobin.observe, JobScheduler.make_jobs

    def note(self: Any, state: Any, outcome: Any) -> Any:
        failed_ids.append(outcome.failed.tolist())
        return observe(self, state, outcome)

    def lose_client(self: Any, *args: Any) -> Any:
        jobs, *outputs = make_jobs(self, *args)
        return replace(jobs, duration_s=np.where(jobs.client == 2, np.inf, jobs.duration_s)), *outputs

    monkeypatch.setattr(RoundRobin, "observe", note)
    monkeypatch.setattr(JobScheduler, "make_jobs", lose_client)
    run = race(3, "agg=fedbuff", "deadline.buffer=2", "rounds=3")
    assert [report.cohort.tolist() for report in run.reports[1:]] == [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    assert [report.arrived.tolist() for report in run.reports[1:]] == [[0, 1]] * 3
    assert [report.metrics["round/in_flight"] for report in run.reports[1:]] == [0] * 3
    assert failed_ids == [[2]] * 3
    assert run.last.metrics["comm/up_bytes"] / run.last.metrics["comm/down_bytes"] == pytest.approx(6 / 9)
    n_samples = 3 * int(run.info.n_train.sum())
    assert run.last.metrics["comp/client_flops"] == 3 * 2 * 640 * n_samples


def test_sent_models_are_in_files_above_the_limit(models: list[float], tmp_path: Path, monkeypatch: Any) -> None:  # noqa: F811
    """The models are those of `race` with all broadcasts in memory, and the run folder keeps no file of them."""
    folders, real = list[Path](), Broadcast.move_to_files

    def note(self: Broadcast, folder: Path) -> Broadcast:
        folders.append(folder)
        return real(self, folder)

    monkeypatch.setattr(Broadcast, "move_to_files", note)
    options = ("agg=fedbuff", "rounds=8")
    run_with_files = run_training(tmp_path / "files", *list_race_options(2, *options, "client_store.limit_gb=0"))
    assert (len(folders), set(folders)) == (8, {run_with_files.folder})
    in_memory = run_training(tmp_path / "memory", *list_race_options(2, *options))
    assert len(folders) == 8
    assert models[:8] == models[8:]
    assert same_bits(run_with_files, in_memory)
    assert sorted(p.name for p in run_with_files.folder.iterdir()) == sorted(p.name for p in in_memory.folder.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_broadcast_in_files_has_its_tensors_in_no_memory(tmp_path: Path) -> None:
    broadcast = Broadcast(torch.arange(6.0), torch.empty(0), torch.tensor([3]), {"c": torch.ones(2)})
    in_files = broadcast.move_to_files(tmp_path)
    assert list(tmp_path.iterdir()) == []
    mapped_addresses = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        if str(tmp_path) in line:
            mapped_addresses.append(range(*(int(address, 16) for address in line.split()[0].split("-"))))
    tensors = (in_files.w, in_files.vectors["c"], in_files.counters, broadcast.w)
    is_mapped = [any(tensor.data_ptr() in addresses for addresses in mapped_addresses) for tensor in tensors]
    assert is_mapped == [True, True, False, False]
    broadcast.w.zero_()
    assert (in_files.w.tolist(), in_files.counters.tolist(), in_files.vectors["c"].tolist()) == (
        [0, 1, 2, 3, 4, 5],
        [3],
        [1, 1],
    )


def test_old_updates_are_dropped_and_counted(models: list[float]) -> None:  # noqa: F811
    """With max_staleness=2 client 1 never counts: it arrives after three steps of client 0."""
    run = race(2, "agg=fedavg", "deadline.max_staleness=2", "rounds=5")
    np.testing.assert_allclose(models, [4, 2, 1, 0.5, 0.25])
    assert [report.metrics["round/dropped_stale"] for report in run.reports[1:]] == [0, 0, 0, 1, 0]


@pytest.mark.usefixtures("models")
def test_selectors_learn_of_updates_that_are_lost_while_the_server_only_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds last .5 s. Clients 0 and 1 start in the first and end, too old to count, at 1 s and 3 s.

    Client 0 starts again at 1 s and at 2 s.
    """
    failed_ids, observe = dict[int, list[int]](), RoundRobin.observe

    def note(self: Any, state: Any, outcome: Any) -> Any:
        failed_ids[outcome.round] = outcome.failed.tolist()
        return observe(self, state, outcome)

    monkeypatch.setattr(RoundRobin, "observe", note)
    run = run_without_files(
        *("clients=2", "cohort=2", "client.epochs=1", "partition=iid", "selector=round_robin", "rounds=6"),
        *("device=instant", "device._target_=asynchronous_engine.ThreeSpeeds", "deadline=fixed", "deadline.k=0.25"),
        *("deadline.late_updates=carry", "deadline.max_staleness=0"),
    )
    assert run.cohorts == [[0, 1], [], [0], [], [0], []]
    assert [report.metrics["round/dropped_stale"] for report in run.reports[1:]] == [0, 1, 0, 1, 0, 2]
    assert failed_ids == {0: [], 1: [0], 2: [], 3: [0], 4: [], 5: [0, 1]}


SMALLER = (
    *("device=shifted_exponential", "split.limit=240", "checkpoint.every=1000"),
    *("eval.every=3", "eval.clients_every=0"),
)


@failure_hint("Credit updates by `outcome.clients`, and start a job from the model that was sent with it.")
def test_waiting_for_all_in_flight_is_the_synchronous_round() -> None:
    """buffer = concurrency = cohort and refill=step, for every third selector, with aggregators in turns."""
    aggregators, n_equal = list_options("agg"), 0
    for i, selector in enumerate(list_options("selector")[::3]):
        options = (f"selector={selector}", f"agg={aggregators[i % len(aggregators)]}", *SMALLER)
        buffered = ("deadline=buffered", "deadline.concurrency=4", "deadline.refill=step")
        try:
            asynchronous, _ = run_small(*options, *buffered)
        except IncompatibleConfig:
            continue
        synchronous, _ = run_small(*options, "deadline=wait_for_all")
        if max(len(report.cohort) for report in synchronous[1:]) > 4:  # FLASH's first round, selector=full
            continue
        fingerprints, expected = ([report.fingerprint for report in run] for run in (asynchronous, synchronous))
        assert fingerprints == expected, options
        n_equal += 1
    assert n_equal > 4


def test_all_dispatched_jobs_are_charged_once() -> None:
    """Downloads and FLOPs when a job is sent, uploads when it arrives; each is 650 parameters of 4 bytes."""
    run = run_without_files("deadline=buffered", "deadline.buffer=3", "device=shifted_exponential", "rounds=12")
    n_sent, n_arrived, flops = 0, 0, 0.0
    for report in run.reports[1:]:
        n_sent, n_arrived = n_sent + len(report.cohort), n_arrived + len(report.arrived)
        flops += 3 * 2 * 640 * 2 * float(run.info.n_train[report.cohort].sum())
        assert report.metrics["comm/down_bytes"] == 2600 * n_sent
        assert report.metrics["comm/up_bytes"] == 2600 * n_arrived
        assert report.metrics["comm/in_flight"] == 2600 * (n_sent - n_arrived)
        assert report.metrics["comp/client_flops"] == pytest.approx(flops)
    assert n_sent > n_arrived == 36


def test_models_of_updates_that_are_too_old_are_not_kept() -> None:
    """After round 5 the next one is 6; with max_staleness=2 it uses models of rounds 4 to 6."""
    in_flight = JobsInFlight(make_jobs(broadcast=[2, 4, 5]))
    broadcasts = {round: Broadcast(*(3 * (torch.zeros(1),)), {}) for round in (1, 2, 4, 5)}
    assert list(in_flight.keep_broadcasts(broadcasts).broadcasts) == [2, 4, 5]
    assert list(in_flight.keep_broadcasts(broadcasts, max_staleness=2).broadcasts) == [4, 5]
    assert list(in_flight.keep_broadcasts(broadcasts, max_staleness=0).broadcasts) == []


def test_jobs_in_flight_of_a_checkpoint_without_zero_fill_have_none() -> None:
    uniform = UniformReference.without_rounds(3)
    states: Any = [None, None, None, None, None, np.zeros(3, np.int64), np.zeros(3, np.int64), uniform]
    jobs = make_jobs(start_s=[1.0, 2.0], zero_fill=[True, True])
    packed_state = replace(ServerState(*states), in_flight=JobsInFlight(jobs)).to_plain_data()
    assert ServerState.from_plain_data(packed_state, ServerState(*states)).in_flight.jobs.zero_fill.all()
    del packed_state["in_flight"]["record"]["jobs"]["record"]["zero_fill"]
    restored_jobs = ServerState.from_plain_data(packed_state, ServerState(*states)).in_flight.jobs
    assert restored_jobs.zero_fill.tolist() == [False, False]
    assert restored_jobs.start_s.tolist() == [1, 2]


@torch.no_grad()
def test_a_sent_model_is_put_back_after_an_error() -> None:
    server = FlatModel(make_network())
    broadcast = Broadcast.copy_model(server, {"c": torch.ones(2)})
    server.w.zero_()
    sent_models = SentModels(server, 5, {}, {3: broadcast})

    def train_and_fail() -> None:
        with sent_models.load_model(3) as vectors:
            assert torch.equal(server.w, broadcast.w)
            assert vectors["c"].tolist() == [1, 1]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train_and_fail()
    assert not server.w.any()
