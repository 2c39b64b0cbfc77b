"""A run that cannot fit into memory is rejected with the numbers, before it trains."""

from pathlib import Path

import pytest
from torch import nn

from fedcohort.errors import OptionError
from fedcohort.host import memory
from fedcohort.model.mlp import Mlp
from fedcohort.startup import build
from run_harness import run_training


def test_a_network_is_measured_without_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 x 10^6 + 10^6 weights and biases, then 10^6 x 10 + 10: 75,000,010 of 24 bytes."""
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 1e9)
    with pytest.raises(OptionError, match=r"model=mlp with 75,000,010 parameters for 10 classes needs at least 1.8 GB"):
        build.check_network_memory(Mlp([1_000_000]), "mlp", (64,), 10)


class Lazy(Mlp):
    """A model whose parameters have no shape before the first forward pass."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> nn.Module:
        return nn.LazyLinear(n_classes)


def test_a_network_without_shapes_is_checked_later() -> None:
    build.check_network_memory(Lazy([4]), "lazy", (64,), 10)


@pytest.mark.parametrize(
    ("overrides", "refusal"),
    [
        (
            "selector=fedcor",
            r"^2304 this run \(of which the selector's matrices of 12 clients and 650 parameters: 0.0 GB\): reduce",
        ),
        (
            "selector=clustered selector.criterion=similarity",
            r"^147904 this run \(of which the selector's matrices of 12 clients and 650 parameters: 0.0 GB\): reduce",
        ),
        (
            "agg=fedmgda_plus",
            r"^20800 this run \(of which the updates of 4 clients: 0.0 GB\): reduce cohort, or choose a",
        ),
        (
            "agg=scaffold",
            r"^31200 this run \(of which the stored vectors of 12 clients: 0.0 GB\): set client_store.limit_gb=0",
        ),
        ("agg=scaffold client_store.limit_gb=0", "^0 this run"),
        ("agg=scaffold rounds=2", "^0 this run"),
    ],
)
def test_the_required_memory_of_a_round_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: str, refusal: str
) -> None:
    """16 x 12^2 bytes of FedCor's matrices; 8 x 650 x 4 bytes of the updates of a logistic regression on digits.

    Clustered sampling needs both, and 16 x 12 x 650 bytes of stored updates.

    SCAFFOLD's clients keep 4 x 650 bytes each, once all 12 can have been selected, and in files above the limit.
    """

    def reject(needed: float, purpose: str, remedy: str) -> None:
        if purpose.startswith("this run"):
            raise OptionError(f"{needed:.0f} {purpose}: {remedy}")

    monkeypatch.setattr(memory, "require_memory", reject)
    monkeypatch.setattr(build, "MODEL_BYTES_PER_PARAM", 0)
    monkeypatch.setattr(build, "BYTES_PER_LOGIT", 0)
    with pytest.raises(OptionError, match=refusal):
        run_training(tmp_path, *overrides.split())
