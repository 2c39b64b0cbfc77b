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

N, M, C = 2000, 500, 10
FLASH = DominantClass(0.3, 0.8)


def rows(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)[:, None]


def make_raw(n: int = N, m: int = M, **changes: Any) -> Raw:
    raw = Raw("made", rows(n), np.arange(n) % C, rows(m), np.arange(m) % C, C)
    return replace(raw, **changes)


def make_natural_raw(n: int = N, owners: int = 20, **changes: Any) -> Raw:
    return make_raw(
        n, **{"train_owner": np.arange(n) // C % owners, "test_owner": np.arange(M) // C % owners, **changes}
    )


def make_federation(
    data: Raw | None = None,
    partition: Any = FLASH,
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


def ids(x: torch.Tensor) -> list[int]:
    return x[:, 0].to(torch.int64).tolist()


def sizes(shard: Shard) -> np.ndarray:
    return np.diff(shard.offsets)
