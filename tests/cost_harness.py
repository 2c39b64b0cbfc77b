"""A model and a federation of known sizes, whose costs can be computed by hand."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from config_options import make_component
from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.device.base import Timing, Workload
from fedcohort.flat import Layout, TensorBlock
from fedcohort.rng import Draws
from fedcohort.round.components import Components
from fedcohort.round.cost import CostModel
from fedcohort.types import Ids

N_TRAIN, N_VAL, CLASSES = np.array([10, 20, 40]), np.array([2, 4, 6]), 3
N_PARAMS, N_FLOAT_BUFFERS, N_COUNTERS = (
    18,
    2,
    1,
)  # sizes of a 5 x 3 linear model, its float buffers and its integer buffers
LAYOUT = Layout(
    (TensorBlock("w", (3, 5), 0), TensorBlock("b", (3,), 15)),
    (TensorBlock("mean", (N_FLOAT_BUFFERS,), 0),),
    (TensorBlock("seen", (N_COUNTERS,), 0),),
)
BUFFER_BYTES, VECTOR_BYTES = 4 * N_FLOAT_BUFFERS + 8 * N_COUNTERS, 4 * N_PARAMS  # bytes: 4 per float, 8 per integer
MODEL_BYTES = BUFFER_BYTES + VECTOR_BYTES
DRAWS = Draws(0, 3, 0)
CODECS = [  # bytes of an update, buffers apart: half of 15 and of 3 numbers, and a seed
    ("none", {}, VECTOR_BYTES),
    ("subsample", {"rho": 0.5}, 4 * (8 + 2) + 8),
]


def ids(*clients: int) -> Ids:
    return np.array(clients, np.int64)


def make_shard(sizes: Ids) -> Shard:
    y = torch.arange(int(sizes.sum())) % CLASSES
    return Shard(torch.ones(len(y), 5), y, y, np.concatenate([[0], np.cumsum(sizes)]))


def make_federation() -> Federation:
    rows = ServerSamples(torch.ones(4, 5), torch.zeros(4, dtype=torch.int64))
    parts = (make_shard(N_TRAIN), make_shard(N_VAL), make_shard(N_VAL), rows, rows)
    return Federation("toy", CLASSES, *parts, np.zeros((3, CLASSES), np.int64), np.zeros(3))


@dataclass(frozen=True)
class LinearDevice:
    """Device whose expected seconds equal bytes and sample times; in a round they are multiplied by `slow`."""

    slow: float = 1.0
    timed: ClassVar[bool] = True

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        return Timing(work.bytes_down, work.infer_load, work.unit_load, work.bytes_up)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        plain = self.expect(clients, work, draws)
        return Timing(*(self.slow * part for part in (plain.down_s, plain.infer_s, plain.unit_s, plain.up_s)))


@dataclass(frozen=True)
class FakeSelector:
    """Stand-in for a selector, with the only attribute that the cost model reads."""

    needs: frozenset[str] = frozenset()


def make_cost_model(
    needs: tuple[str, ...] = (),
    agg: Any = "fedavg",
    device: Any = None,
    components: Any = None,
    merge_last_batch: bool = False,
    **client: Any,
) -> CostModel:
    chosen = {name: make_component(name, choice) for name, choice in OPTIONS.items()} | (components or {})
    chosen["client"] = make_component("client", "sgd", **{"epochs": 2, "batch": 8, **client})
    chosen["agg"] = make_component("agg", agg) if isinstance(agg, str) else agg
    parts = Components(selector=FakeSelector(frozenset(needs)), **{**chosen, "device": device or LinearDevice()})  # type: ignore[arg-type]
    return CostModel(parts, make_federation(), LAYOUT, pass_flops=30.0, merge_last_batch=merge_last_batch)


OPTIONS = {
    "server": "sgd", "objective": "ce", "regulariser": "none", "samples": "all", "deadline": "wait_for_all",
    "codec": "none", "availability": "always", "attack": "none", "proxy": "none", "augmentation": "none",
    "signal_noise": "none",
}  # fmt: skip
