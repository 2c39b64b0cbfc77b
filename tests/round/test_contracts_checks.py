"""Each check of a component's result accepts a right result, and rejects wrong ones with the name of what is wrong.

`CASES` has an entry for each method that the loop checks; a new check without one fails the first test.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.agg.base import Direction
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.data.ragged import RaggedPositions
from fedcohort.dataset.base import Raw
from fedcohort.device.base import Timing, Workload
from fedcohort.errors import ComponentError
from fedcohort.maths.optimizers import uncompiled_optimizer
from fedcohort.partition.base import SamplePool
from fedcohort.rng import Draws
from fedcohort.round.contracts import CHECKS_BY_GROUP
from fedcohort.types import AggregationOverride, Probe, RoundContext, RoundOutcome, Selection

CTX = RoundContext(0, 2, 3, np.arange(3), {}, np.random.default_rng(0))
OUTCOME = RoundOutcome(0, Selection(np.arange(2)), np.arange(2), np.empty(0, np.int64), {}, {}, 1.0)
DRAWS = Draws(0, 2)
VECTOR, MATRIX = torch.zeros(4), torch.zeros(2, 3)
TWO, IDS, NAN = np.ones(2), np.arange(2), np.array([np.nan, 1.0])
WORK = Workload(TWO, TWO, 1, TWO, TWO)
ARRIVED = SimpleNamespace(mean=VECTOR, outcome=OUTCOME)
PLAIN = SimpleNamespace(timed=True, hooks=(), has_inputs=True)
DOWNLOADING = SimpleNamespace(hooks=(SimpleNamespace(downloads=("control",)),))
CLIENTS_DATA = SimpleNamespace(server_test=SimpleNamespace(x=MATRIX))
STATE = 5
EXAMPLE_TIMING: Any = Timing(TWO, TWO, TWO, TWO)
INTERVALS: Any = ReadySchedule(
    np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.array([0, 1]), np.array([1, 2]), np.full(2, 9.0)
)
ADVICE: Any = AggregationOverride()
CHOICE: Any = Selection(np.array([0, 2]))
THREE = np.ones(3)
SGD = uncompiled_optimizer(torch.optim.SGD)


@dataclass(frozen=True)
class Case:
    """Results of one method.

    Attributes:
        args: arguments of the check after the result.
        right: a result that is accepted.
        wrong: results that are rejected, by a part of the message.
        part: the component.
    """

    args: tuple[Any, ...]
    right: Any
    wrong: Mapping[str, Any]
    part: Any = field(default_factory=lambda: PLAIN)


def selections() -> dict[str, Any]:
    """Return a selection with each of its fields wrong in turn, by the field that the message names."""
    wrong = {
        "Selection.clients": np.array([2, 0]),
        "Selection.uncapped": 1,
        "Selection.plain": None,
        "Selection.zero_fill": "no",
        "Selection.scores": np.ones(2),
        "Selection.reward": np.ones(4),
        "Selection.score_terms must": [THREE],
        r"Selection.score_terms\['age'\]": {"age": np.ones(2)},
        "Selection.probability": np.full(3, 1.1),
        "Selection.units": THREE,
        "Selection.upload": np.ones(3, np.int64),
    }
    fields = {name: name.partition(".")[2].partition(" ")[0].partition("\\")[0] for name in wrong}
    selected = {name: (replace(CHOICE, **{fields[name]: value}), STATE) for name, value in wrong.items()}
    return {**selected, r"pair \(Selection, state\)": CHOICE, "the state must be a int": (CHOICE, "other")}


def probes() -> dict[str, Any]:
    probe: Any = Probe("loss", IDS)
    return {
        "a probe must be": ["loss"],
        "Probe.signal": [replace(probe, signal=3)],
        "Probe.clients": [replace(probe, clients=np.array([7]))],
        "Probe.options": [replace(probe, options=[])],
        "Probe.concurrent": [replace(probe, concurrent=1)],
    }


def schedules() -> dict[str, Any]:
    return {
        "must be a ReadySchedule": [],
        "ReadySchedule.start_s": replace(INTERVALS, start_s=np.array([-1.0, 2.0])),
        "ReadySchedule.end_s must be a numeric": replace(INTERVALS, end_s=np.ones(3)),
        "ReadySchedule.period_s must be a numeric": replace(INTERVALS, period_s=np.full(3, 9.0)),
        "ReadySchedule.period_s must be above 0": replace(INTERVALS, period_s=np.array([9.0, 0.0])),
        "ReadySchedule.first_interval": replace(INTERVALS, first_interval=np.array([0, 3])),
        "ReadySchedule.stop_interval": replace(INTERVALS, stop_interval=np.array([1, 5])),
        "ReadySchedule.end_s must be at least": replace(INTERVALS, end_s=np.array([1.0, 1.0])),
    }


INIT = Case((), {"count": 1}, {"can't be saved in a checkpoint": {1, 2}})
OBSERVE = Case((STATE,), 6, {"the state must be a int": "other"})
METRICS = Case((), {"loss": float("nan")}, {"a key of": {1: 2.0}, r"result\['loss'\]": {"loss": "low"}})
SECONDS = Case((), float("inf"), {"of at least 0": -1.0, "a number": True, "number of": float("nan")})
STEP = Case((STATE, VECTOR), (VECTOR, STATE), {"pair": VECTOR, "displacement must be": (torch.zeros(5), STATE)})
SPLIT = Case(
    (SamplePool(np.zeros(6, np.int64), 2), 2),
    RaggedPositions.from_client_rows([IDS, np.array([4])]),
    {"number of clients must be 2": [IDS], "samples of client 1": [IDS, np.array([6])], "Sequence": 3},
)
TIMING = Case(
    (IDS, WORK, DRAWS),
    EXAMPLE_TIMING,
    {
        "must be a Timing": TWO,
        **{
            f"Timing.{name}": replace(EXAMPLE_TIMING, **{name: -TWO})
            for name in ("down_s", "infer_s", "unit_s", "up_s")
        },
        "above 0 where `timed`": Timing(*(np.zeros(2) for _ in range(4))),
    },
)
CASES: Mapping[tuple[str, str], Case] = {
    **{(group, "init"): INIT for group in ("selector", "agg", "server", "samples", "deadline")},
    **{(group, "observe"): OBSERVE for group in ("samples", "deadline")},
    **{(group, "describe"): METRICS for group in ("samples", "deadline")},
    ("selector", "plan"): Case((STATE, CTX), (Probe("loss", IDS),), probes()),
    ("selector", "select"): Case((STATE, CTX), (CHOICE, STATE), selections()),
    ("selector", "observe"): Case(
        (STATE, OUTCOME),
        (AggregationOverride(np.ones(2, bool), TWO), STATE),
        {
            "AggregationOverride.keep": (AggregationOverride(keep=TWO), STATE),
            "AggregationOverride.weights": (AggregationOverride(weights=-TWO), STATE),
            "AggregationOverride.absolute": (replace(ADVICE, absolute=1), STATE),
            "pair": None,
        },
    ),
    ("selector", "trace"): Case(
        (STATE,), {"theta": (1.0, 2.0)}, {"pair": {"theta": 1.0}, "theta, deviation": {"theta": (1.0, "2")}}
    ),
    ("agg", "broadcast"): Case((STATE,), {"control": VECTOR}, {"hooks download": {}}, DOWNLOADING),
    ("agg", "weights"): Case((IDS, IDS), TWO, {"in \\[0, inf\\]": -TWO, "array \\[2\\]": THREE}),
    ("agg", "direction"): Case(
        (STATE, ARRIVED),
        (Direction(VECTOR, TWO), STATE),
        {
            "pair": Direction(VECTOR),
            "Direction.displacement": (Direction(torch.zeros(5)), STATE),
            "Direction.weights": (Direction(VECTOR, THREE), STATE),
        },
    ),
    ("server", "step"): STEP,
    ("codec", "bytes_up"): Case((None,), 4, {"an integer": 4.0, "at least 0": -1}),
    ("codec", "transmit"): Case((VECTOR,), VECTOR, {"a tensor \\[4\\]": torch.zeros(5), "floating": VECTOR.long()}),
    ("samples", "stores_losses"): Case((STATE, IDS), TWO > 0, {"a bool array": TWO}),
    ("samples", "choose"): Case((STATE, SimpleNamespace(n=2)), IDS, {"in \\[0, 1\\]": np.array([2]), "1": IDS[:0]}),
    ("samples", "report_losses"): METRICS,
    ("deadline", "cohort_size"): Case((2,), 3, {"at least 1": 0}),
    ("deadline", "announce"): SECONDS,
    ("deadline", "close"): SECONDS,
    ("device", "expect"): TIMING,
    ("device", "sample"): TIMING,
    ("availability", "ready"): Case((DRAWS,), TWO > 0, {"a bool array": TWO}),
    ("availability", "schedule"): Case((DRAWS,), INTERVALS, schedules()),
    ("client", "lr_at"): Case((0,), 0.1, {"above 0": 0.0, "finite": float("inf")}),
    ("client", "optimizer"): Case((VECTOR, 0.1), SGD([nn.Parameter(VECTOR)], lr=0.1), {"Optimizer": 0.1}),
    ("attack", "attacker_ids"): Case((2, None), IDS, {"in \\[0, 1\\]": np.array([2])}),
    ("attack", "falsify"): Case(("loss", TWO), NAN, {"array \\[2\\]": THREE}),
    ("attack", "send"): Case((VECTOR, None, None), VECTOR, {"a tensor \\[4\\]": torch.zeros(5)}),
    ("attack", "relabel"): Case((IDS, 2, None), IDS, {"in \\[0, 1\\]": IDS + 1}),
    ("partition", "split"): SPLIT,
    ("partition", "deal"): SPLIT,
    ("label_noise", "rates"): Case((DRAWS,), TWO, {"in \\[0, 1\\]": 2 * TWO}),
    ("label_noise", "flip"): Case((IDS, 0.5, 2, None), IDS, {"in \\[0, 1\\]": IDS + 1}),
    ("feature_noise", "levels"): Case((DRAWS,), 2 * TWO, {"in \\[0, inf\\]": -TWO}),
    ("feature_noise", "disturb"): Case((TWO,), TWO, {"a float array": IDS, "array \\[2\\]": THREE, "finite": NAN}),
    ("proxy", "inputs"): Case(
        (CLIENTS_DATA, 0), MATRIX, {"tensor \\[n, 3\\]": None, "float32 tensor": MATRIX.double(), "n, 3": MATRIX[:0]}
    ),
    ("signal_noise", "perturb"): Case((TWO, None), NAN, {"a float array": IDS, "array \\[2\\]": THREE}),
    ("augmentation", "change"): Case((MATRIX, None), MATRIX, {"a tensor": MATRIX[:1], "float32": MATRIX.double()}),
    ("dataset", "load"): Case((0,), Raw.__new__(Raw), {"must be a Raw": MATRIX}),
    ("model", "build"): Case((), nn.Linear(1, 1), {"must be a Module": MATRIX}),
}
EVERY_CASE = pytest.mark.parametrize(("group", "method"), list(CASES), ids=lambda name: name)


def test_every_check_has_a_case() -> None:
    assert {(group, method) for group, checks in CHECKS_BY_GROUP.items() for method in checks} == set(CASES)


@EVERY_CASE
def test_a_right_result_is_accepted(group: str, method: str) -> None:
    case = CASES[group, method]
    CHECKS_BY_GROUP[group][method](case.part, case.right, *case.args)


@EVERY_CASE
def test_each_wrong_result_is_rejected_with_what_is_wrong(group: str, method: str) -> None:
    case = CASES[group, method]
    for message, result in case.wrong.items():
        with pytest.raises(ComponentError, match=message):
            CHECKS_BY_GROUP[group][method](case.part, result, *case.args)


def test_a_client_may_never_be_ready_and_an_untimed_device_takes_no_time() -> None:
    assert CHECKS_BY_GROUP["availability"]["schedule"](PLAIN, None, DRAWS) is None
    zeros = Timing(*(np.zeros(2) for _ in range(4)))
    assert CHECKS_BY_GROUP["device"]["expect"](SimpleNamespace(timed=False), zeros, IDS, WORK, DRAWS) is zeros
    assert CHECKS_BY_GROUP["proxy"]["inputs"](SimpleNamespace(has_inputs=False), None, CLIENTS_DATA, 0) is None
