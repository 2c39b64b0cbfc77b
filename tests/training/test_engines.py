"""Which engine trains, and why: every rule of the table, on a machine without a GPU too."""

from types import SimpleNamespace
from typing import Any, cast

from torch import nn

from case_loop import for_all
from fedcohort.training.chain import DenseChainNetwork
from fedcohort.training.debug import DebugEngine
from fedcohort.training.dual import GramMatrixEngine
from fedcohort.training.engines import MAX_SMALL_PARAMETERS, choose_engine
from fedcohort.training.vectorised import VectorisedEngine

SEQUENTIAL_TRAINER = SimpleNamespace  # the trainer itself, one client at a time


def trainer(
    layers: int | None = None,
    device: str = "cpu",
    n_params: int = 100,
    norm: bool = False,
    dropout: bool = False,
    recurrence: bool = False,
    weighs: bool = False,
    changed: bool = False,
    plain: bool = True,
    convolves: bool = False,
) -> Any:
    """layers: of the chain of Linear and ReLU that the network ends in, None where there is none."""
    layout = SimpleNamespace(n_params=n_params, parameters=())
    w = SimpleNamespace(device=SimpleNamespace(type=device))
    worker = SimpleNamespace(has_batch_norm=norm, has_dropout=dropout, has_recurrence=recurrence, w=w, layout=layout)
    layer, convolution = SimpleNamespace(weight=None), nn.Sequential() if convolves else None
    chain = None if layers is None else DenseChainNetwork(convolution, [], cast(Any, [layer] * layers))
    client, objective = SimpleNamespace(plain=plain), SimpleNamespace(plain=False)
    augmentation = SimpleNamespace() if changed else None
    options = {"client": client, "objective": objective, "augmentation": augmentation}
    return SEQUENTIAL_TRAINER(worker=worker, chain=chain, weighs_samples=weighs, hooks=(), **options)


SEQUENTIAL = "sequential: autograd on flat views, one client at a time"
SIDE_BY_SIDE = "sequential: the vectorised engine does not support "
WEIGHTING_REASON = "sequential: the aggregator weighs samples step by step, one client at a time through autograd"
FRONT_REASON = "sequential: hand-written gradients of the dense layers, autograd before them"
DUAL = "vectorised: a linear model in its dual, many clients at a time"
CHANGED = "sequential: the augmentation changes samples in every pass, one client at a time"
GPU = "vectorised: a small model on a GPU, 7 clients at a time"


@for_all(
    "kind, options, engine, reason",
    [
        ("auto", {}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("sequential", {}, SEQUENTIAL_TRAINER, f"{SEQUENTIAL}, as requested"),
        ("auto", {"layers": 2}, SEQUENTIAL_TRAINER, "sequential: hand-written gradients, one client at a time"),
        ("auto", {"layers": 1, "convolves": True}, SEQUENTIAL_TRAINER, f"{FRONT_REASON}, one client at a time"),
        ("debug", {}, DebugEngine, "debug, as requested"),
        ("vectorised", {}, VectorisedEngine, "vectorised, as requested: 7 clients at a time"),
        ("vectorised", {"recurrence": True}, SEQUENTIAL_TRAINER, f"{SIDE_BY_SIDE}recurrent layers"),
        ("auto", {"recurrence": True, "device": "cuda"}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("auto", {"layers": 1}, GramMatrixEngine, DUAL),
        ("vectorised", {"layers": 1}, GramMatrixEngine, DUAL),
        (
            "sequential",
            {"layers": 1},
            SEQUENTIAL_TRAINER,
            "sequential: hand-written gradients, one client at a time, as requested",
        ),
        (
            "auto",
            {"layers": 1, "plain": False},
            SEQUENTIAL_TRAINER,
            "sequential: hand-written gradients, one client at a time",
        ),
        ("auto", {"weighs": True}, SEQUENTIAL_TRAINER, WEIGHTING_REASON),
        ("vectorised", {"weighs": True}, SEQUENTIAL_TRAINER, WEIGHTING_REASON),
        ("vectorised", {"changed": True}, SEQUENTIAL_TRAINER, CHANGED),
        ("auto", {"changed": True, "layers": 1}, SEQUENTIAL_TRAINER, CHANGED),
        ("auto", {"changed": True, "device": "cuda"}, SEQUENTIAL_TRAINER, CHANGED),
        ("debug", {"changed": True}, DebugEngine, "debug, as requested"),
        ("vectorised", {"norm": True}, SEQUENTIAL_TRAINER, f"{SIDE_BY_SIDE}batch norm"),
        ("vectorised", {"dropout": True}, SEQUENTIAL_TRAINER, f"{SIDE_BY_SIDE}dropout"),
        ("auto", {"norm": True}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("auto", {"device": "cuda"}, VectorisedEngine, GPU),
        ("auto", {"device": "cuda", "n_params": MAX_SMALL_PARAMETERS}, VectorisedEngine, GPU),
        ("auto", {"device": "cuda", "n_params": MAX_SMALL_PARAMETERS + 1}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("auto", {"device": "cuda", "norm": True}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("auto", {"device": "cuda", "dropout": True}, SEQUENTIAL_TRAINER, SEQUENTIAL),
        ("sequential", {"device": "cuda"}, SEQUENTIAL_TRAINER, f"{SEQUENTIAL}, as requested"),
    ],
)
def test_each_trainer_gets_its_engine_with_a_reason(
    kind: str, options: dict[str, Any], engine: type, reason: str
) -> None:
    chosen, given_reason = choose_engine(kind, trainer(**options), 7)
    assert type(chosen) is engine
    assert given_reason == reason
