"""Data to partition: the input of row i is i, so that tests can follow each row to its client."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fedcohort.data.federation import Federation, Shard
from fedcohort.dataset.base import Raw
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.dominant_class import DominantClass
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation

N_TRAIN, N_TEST, N_CLASSES = 2000, 500, 10
FLASH_PARTITION = DominantClass(0.3, 0.8)


def make_inputs(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)[:, None]


def make_raw(n: int = N_TRAIN, m: int = N_TEST, **changes: Any) -> Raw:
    raw = Raw("made", make_inputs(n), np.arange(n) % N_CLASSES, make_inputs(m), np.arange(m) % N_CLASSES, N_CLASSES)
    return replace(raw, **changes)


def make_natural_raw(n: int = N_TRAIN, owners: int = 20, **changes: Any) -> Raw:
    return make_raw(
        n,
        **{
            "train_owner": np.arange(n) // N_CLASSES % owners,
            "test_owner": np.arange(N_TEST) // N_CLASSES % owners,
            **changes,
        },
    )


def make_federation(
    data: Raw | None = None,
    partition: Any = FLASH_PARTITION,
    noise: Any = None,
    seed: int = 0,
    clients: int | None = 20,
    server_val: float = 0.05,
    client_val: float = 0.1,
) -> Federation:
    return build_federation(
        make_raw() if data is None else data,
        SplitOptions(
            partition,
            NoNoise() if noise is None else noise,
            seed=seed,
            clients=clients,
            server_val=server_val,
            client_val=client_val,
        ),
    )


def row_ids(x: torch.Tensor) -> list[int]:
    return x[:, 0].to(torch.int64).tolist()


def client_sizes(shard: Shard) -> np.ndarray:
    return np.diff(shard.offsets)
