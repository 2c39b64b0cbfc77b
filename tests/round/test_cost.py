"""What a round's work comes to, by hand, on a model and a federation of known sizes."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data.federation import Federation, Rows, Shard
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.device.base import Timing, Workload
from fedcohort.flat import Block, Layout
from fedcohort.ledger import Charge
from fedcohort.rng import Draws
from fedcohort.round.clock import Clock
from fedcohort.round.cost import CostModel, forward_flops
from fedcohort.round.parts import Parts, Populations
from fedcohort.round.rates import Rates
from fedcohort.round.workload import AskedWork
from fedcohort.signal.base import find
from fedcohort.types import Ids, Probe, ProbeResult
from known import known
from yaml_words import make

N, V, CLASSES = np.array([10, 20, 40]), np.array([2, 4, 6]), 3
P, B, COUNTERS = 18, 2, 1  # numbers of a 5 x 3 linear model, of its float buffers and of its integer ones
LAYOUT = Layout(
    (Block("w", (3, 5), 0), Block("b", (3,), 15)), (Block("mean", (B,), 0),), (Block("seen", (COUNTERS,), 0),)
)
FIXED, VECTOR = 4 * B + 8 * COUNTERS, 4 * P  # bytes: 4 a float, 8 an integer
MODEL = FIXED + VECTOR
DRAWS = Draws(0, 3, 0)


def ids(*clients: int) -> Ids:
    return np.array(clients, np.int64)


def shard(sizes: Ids) -> Shard:
    y = torch.arange(int(sizes.sum())) % CLASSES
    return Shard(torch.ones(len(y), 5), y, y, np.concatenate([[0], np.cumsum(sizes)]))


def held() -> Federation:
    rows = Rows(torch.ones(4, 5), torch.zeros(4, dtype=torch.int64))
    parts = (shard(N), shard(V), shard(V), rows, rows)
    return Federation("toy", CLASSES, *parts, np.zeros((3, CLASSES), np.int64), np.zeros(3))


@dataclass(frozen=True)
class Link:
    """A device whose seconds are the bytes and sample-times themselves; `slow` times as many in a round."""

    slow: float = 1.0
    timed: ClassVar[bool] = True

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        return Timing(work.bytes_down, work.infer_load, work.load, work.bytes_up)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        plain = self.expect(clients, work, draws)
        return Timing(*(self.slow * part for part in (plain.down, plain.infer, plain.unit, plain.up)))


@dataclass(frozen=True)
class Asks:
    """As much of a selector as a bill reads."""

    needs: frozenset[str] = frozenset()


def cost_model(
    needs: tuple[str, ...] = (),
    agg: Any = "fedavg",
    device: Any = None,
    made: Any = None,
    merge_last: bool = False,
    **client: Any,
) -> CostModel:
    chosen = {name: make(name, word) for name, word in WORDS.items()} | (made or {})
    chosen["client"] = make("client", "sgd", **{"epochs": 2, "batch": 8, **client})
    chosen["agg"] = make("agg", agg) if isinstance(agg, str) else agg
    parts = Parts(selector=Asks(frozenset(needs)), **{**chosen, "device": device or Link()})  # type: ignore[arg-type]
    return CostModel(parts, held(), LAYOUT, flops=30.0, merge_last=merge_last)


WORDS = {
    "server": "sgd", "objective": "ce", "regulariser": "none", "samples": "all", "deadline": "wait_for_all",
    "codec": "none", "availability": "always", "attack": "none", "proxy": "none", "augmentation": "none",
}  # fmt: skip


@pytest.mark.parametrize("training", [True, False])
def test_a_forward_pass_multiplies_and_adds(training: bool) -> None:
    """5 inputs to 4, to 3: 2 (5 * 4 + 4 * 3) FLOPs of one sample. The network is left as it was."""
    norm = nn.BatchNorm1d(4)
    network = nn.Sequential(nn.Linear(5, 4), norm, nn.Linear(4, 3)).train(training)
    assert forward_flops(network, held()) == 2 * (5 * 4 + 4 * 3)
    assert network.training == training
    assert int(known(norm.num_batches_tracked)) == 0


def test_a_plain_round_reads_for_the_selector_alone() -> None:
    """SCAFFOLD's vectors, and a fair aggregator's loss, are of rounds that are not plain."""
    scaffold = cost_model(("loss_post",), "scaffold")
    assert scaffold.rates(plain=False).beside_bytes == FIXED + VECTOR + 4
    assert scaffold.rates(plain=True) == Rates(3.0, {}, 1.0, MODEL, FIXED + 4)
    fair = cost_model((), make("agg", "fedmaba", loss="loss_post"))
    assert (fair.rates(plain=False).passes_after, fair.rates(plain=True).passes_after) == (1.0, 0.0)
    assert fair.rates(plain=False).beside_bytes == fair.rates(plain=True).beside_bytes + 4
    assert set(cost_model((), "fedmaba").rates(plain=False).probed) == {"loss"}
    assert not cost_model((), "fedmaba").rates(plain=True).probed
    assert cost_model(("loss_post",), "scaffold").bare == Rates(3.0, {}, 0.0, MODEL, FIXED)


def test_samples_that_train() -> None:
    found = cost_model()
    assert found.count_used(ids(0, 2), [None, ids(3, 4, 5)]).tolist() == [10, 3]
    assert found.count_seen(N, 2).tolist() == [20, 40, 80]
    assert found.count_seen(N, np.array([0, 1, 3])).tolist() == [0, 20, 120]
    steps = cost_model(steps=5, batch=16)
    assert steps.units == 5
    assert steps.count_seen(N, 5).tolist() == [5 * 10, 16 + 4 + 16 + 4 + 16, 16 + 16 + 8 + 16 + 16]
    assert steps.count_seen(N, np.array([0, 2, 3])).tolist() == [0, 16 + 4, 16 + 16 + 8]
    assert cost_model(steps=5, batch=None).count_seen(N, 5).tolist() == [50, 100, 200]
    assert cost_model(steps=5, batch=None).count_seen(10_000 * N, 1).tolist() == (10_000 * N).tolist()


@pytest.mark.parametrize(
    ("samples", "deadline", "options", "numbers"),
    [
        ("all", "wait_for_all", {}, 0),
        ("all", "fixed", {}, 0),  # who is late is left out, and needn't know when
        ("all", "fixed", {"partial_work": True}, 1),
        ("all", "fedbalancer", {"partial_work": False}, 0),
        ("all", "fedbalancer", {"partial_work": True}, 1),
        ("fedbalancer", "fixed", {}, 2),  # the threshold, and the deadline that samples are to fit before
        ("fedbalancer", "fedbalancer", {"partial_work": True}, 2),  # the deadline once, whoever needs it
    ],
)
def test_clients_are_told_a_deadline_where_they_use_it(
    samples: str, deadline: str, options: dict[str, Any], numbers: int
) -> None:
    found = cost_model(made={"samples": make("samples", samples), "deadline": make("deadline", deadline, **options)})
    assert found.usual.down_bytes == found.plain.down_bytes == MODEL + 4 * numbers


@pytest.mark.parametrize(
    ("word", "options", "samples"),
    [
        ("loss", {}, [10, 40]),
        ("val_loss", {}, [2, 6]),
        ("grad_norm", {}, [3 * 10, 3 * 40]),
        ("batch_loss", {"batch": 16}, [10, 16]),
        ("shadow_loss", {"trainers": (1, 2)}, [10, 40]),
    ],
)
def test_samples_that_a_question_takes(word: str, options: dict[str, Any], samples: list[float]) -> None:
    assert cost_model().samples_in(find(word), ids(0, 2), options) == pytest.approx(samples)  # type: ignore[arg-type]


def test_passes_of_a_job_that_do_not_train() -> None:
    """Before it for the aggregator, after it for who reads loss_post."""
    found = cost_model(("loss_post",), "fedmaba")
    assert found.count_inferred(ids(0, 2), found.usual).tolist() == [10 + 10, 40 + 40]
    assert found.count_inferred(ids(0, 2), found.plain).tolist() == [10, 40]
    assert found.count_inferred(ids(0, 2), found.bare).tolist() == [0, 0]


def test_a_whole_job_is_as_many_sample_times_as_samples() -> None:
    """An epoch of E = 2 is n / 2, with FedBiO's 9 passes a sample for 3 three times as much.

    A forward pass over n is a third of an epoch. A step counts the samples in it.
    """
    work = cost_model().work(N, 6.0 * N, cost_model().usual, 7.0)
    assert (work.load.tolist(), work.infer_load.tolist(), work.units) == ([5, 10, 20], [10, 20, 40], 2)
    assert (work.bytes_down.tolist(), work.bytes_up.tolist()) == ([MODEL] * 3, [7.0] * 3)
    heavy = cost_model((), "fedbio")
    assert heavy.work(N, 0.0 * N, heavy.usual, 0.0).load.tolist() == [15, 30, 60]
    steps = cost_model(steps=5, batch=16).work(N, 6.0 * N, cost_model().usual, N)
    assert (steps.load.tolist(), steps.infer_load.tolist(), steps.units) == ([10, 56 / 5, 72 / 5], [20, 40, 80], 5)
    assert steps.bytes_up.tolist() == N.tolist()
    for asked, trained in ((work, [20, 40, 80]), (steps, [50, 56, 72])):  # samples that train: E n, or 5 batches
        assert (asked.epochs * asked.units * asked.load).tolist() == trained


def test_a_step_is_the_mean_of_the_job_that_a_client_is_asked_for() -> None:
    """Batches of 16 and 4 in turn of 20 samples; an epoch is an epoch, however many of them are asked."""
    rates, jobs = cost_model().usual, np.array([1, 2, 3])
    steps = cost_model(steps=5, batch=16).work(np.array([20, 20, 20]), np.zeros(3), rates, 0.0, units=jobs)
    assert (jobs * steps.load).tolist() == [16, 20, 36]
    assert cost_model().work(N, np.zeros(3), rates, 0.0, units=jobs).load.tolist() == [5, 10, 20]


def test_what_is_expected_of_everybody() -> None:
    """Travel of the model and of the whole answer, and two epochs of n / 2; scores and passes of probes take none."""
    found = cost_model(("steps", "loss_post", "loss"), "scaffold").device_facts(DRAWS)
    up = VECTOR + FIXED + VECTOR + 2 * 4
    assert found["expected_s"].tolist() == (MODEL + VECTOR + N + up).tolist()
    assert found["expected_unit_s"].tolist() == (N / 2).tolist()
    assert found["expected_up_s"].tolist() == [up] * 3
    assert found["pass_units"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("batch", "passes"), [(16, [1, 2, 3]), (10, [1, 2, 4]), (None, [1, 1, 1])])
def test_steps_of_a_pass(batch: int | None, passes: list[int]) -> None:
    assert cost_model(steps=5, batch=batch).device_facts(DRAWS)["pass_units"].tolist() == passes


def test_a_last_batch_of_one_is_merged_for_batch_norm() -> None:
    """In batches of 9, 10 samples are one of 10, and 19 are one of 9 and one of 10."""
    model = cost_model(steps=3, batch=9, merge_last=True)
    assert model.count_seen(np.array([10, 19, 40]), 3).tolist() == [30, 9 + 10 + 9, 27]
    assert model.device_facts(DRAWS)["pass_units"].tolist() == [1, 3, 5]


def test_a_client_without_samples_takes_no_pass() -> None:
    model = cost_model(steps=5, batch=None)
    model.federation = replace(model.federation, train=shard(np.array([10, 0, 40])))
    assert model.device_facts(DRAWS)["pass_units"].tolist() == [1, 0, 1]


def phase(model: CostModel, *probes: Probe) -> float:
    """Return the seconds that the probes take, where everybody is always there."""
    clock = Clock(make("availability", "always"), DRAWS, 0.0)
    return model.probe_s(model.count_asked(probes, DRAWS), DRAWS, 0.0, clock)


def test_a_phase_lasts_until_the_slowest_is_done() -> None:
    """Client 1 runs 20 and 4 samples forward, a sixth of a sample-time each for E = 2; the model alone travels."""
    found = cost_model((), "scaffold", Link(slow=10.0))
    loss, val = Probe("loss", ids(0, 1)), Probe("val_loss", ids(1, 2))
    assert phase(found, loss, val) == pytest.approx(10 * (MODEL + 24 / 6))
    assert phase(found, val) == pytest.approx(10 * (MODEL + 6 / 6))
    assert phase(found) == phase(found, Probe("greedy_gain", ids(0, 1))) == 0.0


CODECS = [  # bytes of an update, buffers apart: half of 15 and of 3 numbers, and a seed
    ("none", {}, VECTOR),
    ("subsample", {"rho": 0.5}, 4 * (8 + 2) + 8),
]


@pytest.mark.parametrize(("codec", "options", "sent"), CODECS)
def test_a_model_that_is_thrown_away_is_waited_for(codec: str, options: dict[str, Any], sent: int) -> None:
    """Client 0 trains two epochs (3 passes a sample) and sends its update; then all have the model and try it."""
    found = cost_model((), "scaffold", Link(slow=10.0), {"codec": make("codec", codec, **options)})
    loss, shadow = Probe("loss", ids(0, 1, 2)), Probe("shadow_loss", ids(0, 1, 2), {"trainers": (0,)})
    assert found.count_asked([loss, shadow], DRAWS).total.tolist() == [10 + 60 + 10, 20 + 20, 40 + 40]
    assert phase(found, loss, shadow) == pytest.approx(10 * (MODEL + 70 / 6 + sent) + 10 * (MODEL + 40 / 6))


def test_what_clients_tell_of_themselves_once() -> None:
    """n_k and C counts, 4 bytes a number, of K = 3 clients; reports come later, and the true noise from nobody."""
    found = cost_model(("n_train", "label_counts", "noise_rate", "steps", "loss"))
    assert found.registration(Populations.over(held(), 2)) == Charge(up_bytes=4 * 3 + 4 * 3 * CLASSES)


def closing(units: list[int]) -> DeadlineOutcome:
    done = np.array(units, np.int64)
    return DeadlineOutcome(done, done > 0, np.ones(len(done)), 1.0, {}, done)


ASKED = AskedWork(ids(0, 2), ids(2, 3), [None, None], np.array([100.0, 1000.0]))


def answered(*probes: Probe) -> dict[str, ProbeResult]:
    return {probe.signal: ProbeResult(probe.clients, np.zeros(len(probe.clients))) for probe in probes}


def test_a_round_by_hand() -> None:
    """Client 2 is late: it did all 3 epochs that it was asked for, and its 1000 bytes never came. 30 FLOPs a pass."""
    found = cost_model().round([], {}, ASKED, [None, None], closing([1, 0]), plain=False, draws=DRAWS)
    passes = 3 * (1 * 10 + 3 * 40)
    assert found == Charge(down_bytes=2 * MODEL, up_bytes=100.0, client_flops=30.0 * passes)
    few = cost_model().round([], {}, ASKED, [ids(0), ids(0, 1)], closing([2, 3]), plain=False, draws=DRAWS)
    assert few == Charge(down_bytes=2 * MODEL, up_bytes=1100.0, client_flops=30.0 * 3 * (2 * 1 + 3 * 2))


def test_probes_cost_the_model_of_those_who_do_not_train() -> None:
    """Asked are 0, 1 and 1, 2, of whom 1 does not train: one model more, 4 answers; 10 + 20 + 4 + 6 samples."""
    probes = (Probe("loss", ids(0, 1)), Probe("val_loss", ids(1, 2)))
    found = cost_model().round(
        probes, answered(*probes), ASKED, [None, None], closing([2, 3]), plain=False, draws=DRAWS
    )
    plain = cost_model().round([], {}, ASKED, [None, None], closing([2, 3]), plain=False, draws=DRAWS)
    more = Charge(MODEL + 0.0, 4 * 4.0, MODEL + 4 * 4.0, 30.0 * (10 + 20 + 4 + 6))
    assert found == plain + more


def test_an_aggregators_questions_are_of_those_who_train() -> None:
    """FedMABA's loss: 4 bytes and a pass over T_k of clients 0 and 2, none in a plain round."""
    fair = cost_model((), "fedmaba")
    asks, plain = (
        fair.round([], {}, ASKED, [None, None], closing([2, 3]), plain=p, draws=DRAWS) for p in (False, True)
    )
    assert asks == plain + Charge(up_bytes=8.0, probe_bytes=8.0, client_flops=30.0 * (10 + 40))


@pytest.mark.parametrize(("codec", "options", "sent"), CODECS)
def test_a_model_that_is_thrown_away_travels_both_ways(codec: str, options: dict[str, Any], sent: int) -> None:
    """FedCor's warm-up: clients 1 and 2 train two epochs for it and send it, and 0, 1 and 2 get what comes of it."""
    probe = Probe("shadow_loss", ids(0, 1, 2), {"trainers": (1, 2)})
    model = cost_model(made={"codec": make("codec", codec, **options)})
    found = model.round([probe], answered(probe), ASKED, [None, None], closing([2, 3]), plain=False, draws=DRAWS)
    plain = cost_model().round([], {}, ASKED, [None, None], closing([2, 3]), plain=False, draws=DRAWS)
    extra, answers = MODEL + 3 * MODEL, 3 * 4 + 2 * sent  # client 1 gets w_t, too
    passes = 10 + 20 + 40 + 3 * 2 * (20 + 40)
    assert found == plain + Charge(float(extra), float(answers), float(extra + answers), 30.0 * passes)


def test_a_model_that_is_thrown_away_is_of_the_samples_that_train() -> None:
    """samples=random takes 1, 2 and 4 of 10, 20 and 40, for a shadow round as for any other."""
    probe = Probe("shadow_loss", ids(0, 1, 2), {"trainers": (1, 2)})
    found = cost_model(made={"samples": make("samples", "random", fraction=0.1)}).count_asked([probe], DRAWS)
    assert found.trained.tolist() == [0, 3 * 2 * 2, 3 * 2 * 4]


def test_weighed_samples_take_more_passes_but_for_a_plain_round() -> None:
    heavy = cost_model((), "fedbio")
    costs = [
        heavy.round([], {}, ASKED, [None, None], closing([2, 3]), plain=p, draws=DRAWS).client_flops
        for p in (False, True)
    ]
    assert costs == [30.0 * 9 * (20 + 120), 30.0 * 3 * (20 + 120)]
