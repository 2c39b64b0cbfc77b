"""What a round is charged, by hand, on a model and a federation of known sizes."""

from typing import Any

import numpy as np
import pytest

from config_options import make_component
from cost_harness import CLASSES, CODECS, DRAWS, MODEL_BYTES, ids, make_cost_model, make_federation
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.ledger import Charge
from fedcohort.round.jobs import Jobs
from fedcohort.round.populations import Populations
from fedcohort.types import Ids, Probe, ProbeResult


def test_static_signals_are_charged_once() -> None:
    """Static signals n_k and C label counts of K = 3 clients cost 4 bytes a number; the noise rate is not sent."""
    model = make_cost_model(("n_train", "label_counts", "noise_rate", "steps", "loss"))
    assert model.charge_registration(Populations.from_federation(make_federation(), 2)) == Charge(
        up_bytes=4 * 3 + 4 * 3 * CLASSES
    )


def make_deadline_outcome(units: list[int]) -> DeadlineOutcome:
    units_done = np.array(units, np.int64)
    return DeadlineOutcome(units_done, units_done > 0, np.ones(len(units_done)), 1.0, {}, units_done)


def make_jobs(*rows: Ids | None) -> Jobs:
    """Clients 0 and 2 are asked for 2 and 3 units, and for answers of 100 and 1000 bytes."""
    units, none = ids(2, 3), np.zeros(2)
    up = np.array([100.0, 1000.0])
    return Jobs(
        ids(0, 2), ids(0, 0), none > 0, units, units, none, [None, None], none > 0, up, rows=rows or (None, None)
    )


JOBS = make_jobs()


def answer_probes(*probes: Probe) -> dict[str, ProbeResult]:
    return {probe.signal: ProbeResult(probe.clients, np.zeros(len(probe.clients))) for probe in probes}


def test_the_charges_of_a_round_by_hand() -> None:
    """Client 2 is late: it did all 3 epochs that it was asked for, and its 1000 bytes never came. 30 FLOPs a pass."""
    charge = make_cost_model().charge_round([], {}, JOBS, make_deadline_outcome([1, 0]), is_fedavg=False, draws=DRAWS)
    passes = 3 * (1 * 10 + 3 * 40)
    assert charge == Charge(down_bytes=2 * MODEL_BYTES, up_bytes=100.0, client_flops=30.0 * passes)
    few = make_cost_model().charge_round(
        [], {}, make_jobs(ids(0), ids(0, 1)), make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS
    )
    assert few == Charge(down_bytes=2 * MODEL_BYTES, up_bytes=1100.0, client_flops=30.0 * 3 * (2 * 1 + 3 * 2))


def test_probes_charge_the_download_of_clients_that_do_not_train() -> None:
    """Asked are 0, 1 and 1, 2, of whom 1 does not train: one model more, 4 answers; 10 + 20 + 4 + 6 samples."""
    probes = (Probe("loss", ids(0, 1)), Probe("val_loss", ids(1, 2)))
    charge = make_cost_model().charge_round(
        probes, answer_probes(*probes), JOBS, make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS
    )
    plain = make_cost_model().charge_round([], {}, JOBS, make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS)
    probe_charge = Charge(MODEL_BYTES + 0.0, 4 * 4.0, MODEL_BYTES + 4 * 4.0, 30.0 * (10 + 20 + 4 + 6))
    assert charge == plain + probe_charge


def test_an_aggregators_queries_go_to_the_training_clients() -> None:
    """FedMABA's loss: 4 bytes and a pass over T_k of clients 0 and 2, none in a plain round."""
    fair = make_cost_model((), "fedmaba")
    with_query, plain = (
        fair.charge_round([], {}, JOBS, make_deadline_outcome([2, 3]), is_fedavg=p, draws=DRAWS) for p in (False, True)
    )
    assert with_query == plain + Charge(up_bytes=8.0, probe_bytes=8.0, client_flops=30.0 * (10 + 40))


@pytest.mark.parametrize(
    ("probe", "repeat"),
    [
        (Probe("loss", ids(0, 1)), (2,)),  # pow-d has asked 0 and 1
        (Probe("loss", ids(0, 1), concurrent=True), (2,)),  # rpow-d queries them while they train
        (Probe("loss", ids(0, 1), {"temperature": 2.0}), (0, 2)),  # another query
        (Probe("val_loss", ids(0, 1)), (0, 2)),  # of other samples
    ],
)
def test_a_client_answers_a_query_once(probe: Probe, repeat: tuple[int, ...]) -> None:
    """FedMABA asks 0 and 2 for their loss of w_t: a pass over 10 and 40 samples, and 4 bytes of each."""
    fair, base = make_cost_model((), "fedmaba"), make_cost_model()
    charge, base_cost = (
        model.charge_round(
            [probe], answer_probes(probe), JOBS, make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS
        )
        for model in (fair, base)
    )
    passes = sum({0: 10, 2: 40}[k] for k in repeat)
    answers = 4.0 * len(repeat)
    assert charge == base_cost + Charge(up_bytes=answers, probe_bytes=answers, client_flops=30.0 * passes)
    inferred = fair.count_forward_passes(ids(0, 2), fair.usual_job_costs, [probe])
    assert inferred.tolist() == [10 * (0 in repeat), 40 * (2 in repeat)]


@pytest.mark.parametrize(("codec", "options", "model_bytes"), CODECS)
def test_a_model_trained_for_a_query_is_charged_both_ways(
    codec: str, options: dict[str, Any], model_bytes: int
) -> None:
    """FedCor's warm-up: clients 1 and 2 train two epochs for it and send it, and 0, 1 and 2 get what comes of it."""
    probe = Probe("shadow_loss", ids(0, 1, 2), {"trainers": (1, 2)})
    model = make_cost_model(components={"codec": make_component("codec", codec, **options)})
    charge = model.charge_round(
        [probe], answer_probes(probe), JOBS, make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS
    )
    plain = make_cost_model().charge_round([], {}, JOBS, make_deadline_outcome([2, 3]), is_fedavg=False, draws=DRAWS)
    down_bytes, up_bytes = MODEL_BYTES + 3 * MODEL_BYTES, 3 * 4 + 2 * model_bytes  # client 1 gets w_t, too
    passes = 10 + 20 + 40 + 3 * 2 * (20 + 40)
    assert charge == plain + Charge(float(down_bytes), float(up_bytes), float(down_bytes + up_bytes), 30.0 * passes)


def test_a_model_trained_for_a_query_uses_the_training_samples() -> None:
    """samples=random takes 1, 2 and 4 of 10, 20 and 40, for a shadow round as for any other."""
    probe = Probe("shadow_loss", ids(0, 1, 2), {"trainers": (1, 2)})
    model = make_cost_model(components={"samples": make_component("samples", "random", fraction=0.1)}).sum_query_work(
        [probe], DRAWS
    )
    assert model.training_passes.tolist() == [0, 3 * 2 * 2, 3 * 2 * 4]


def test_weighted_samples_take_more_passes_except_in_a_plain_round() -> None:
    second_order = make_cost_model((), "fedbio")
    costs = [
        second_order.charge_round([], {}, JOBS, make_deadline_outcome([2, 3]), is_fedavg=p, draws=DRAWS).client_flops
        for p in (False, True)
    ]
    assert costs == [30.0 * 9 * (20 + 120), 30.0 * 3 * (20 + 120)]
