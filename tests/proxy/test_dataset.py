"""Another dataset's inputs, and which are refused."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from engine_toy import federation_of
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.errors import DataError, OptionError
from fedcohort.proxy.dataset import OtherDataset


@dataclass(frozen=True)
class Given(Dataset):
    """A dataset of these training inputs."""

    x: np.ndarray

    def load(self, seed: int) -> Raw:
        y = np.zeros(len(self.x), dtype=np.int64)
        return Raw("given", self.x, y, self.x[:1], y[:1], 2)


def other(n: int = 8) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, 5)).astype(np.float32)


def test_its_training_inputs() -> None:
    x = OtherDataset(Given(other()), None).inputs(federation_of(), 0)
    assert torch.equal(x, torch.from_numpy(other()))
    some = OtherDataset(Given(other()), 3).inputs(federation_of(), 0)
    assert len(some) == 3
    assert all((other() == row.numpy()).all(1).any() for row in some)


def test_bytes_beside_numbers_are_refused() -> None:
    line = (
        r"source=given\): the inputs are uint8, those of the run's dataset=toy are float32; say dataset.pixels=float32"
    )
    with pytest.raises(DataError, match=line):
        OtherDataset(Given(np.zeros((8, 5), np.uint8)), None).inputs(federation_of(), 0)


def test_another_shape() -> None:
    line = r"source=given\): a sample has the shape \[2, 4\], one of the run's dataset=toy has \[5\]"
    with pytest.raises(DataError, match=line):
        OtherDataset(Given(np.zeros((3, 2, 4), np.float32)), None).inputs(federation_of(), 0)


def test_the_test_set() -> None:
    federation = federation_of()
    leaked = np.concatenate([other(), federation.server_test.x[:2].numpy()])
    with pytest.raises(DataError, match=r"^proxy=dataset .*source=given\): 2 inputs are in the run's test set"):
        OtherDataset(Given(leaked), 1).inputs(federation, 0)


def test_what_is_the_clients_own() -> None:
    federation = federation_of()
    tested = {row.tobytes() for row in federation.server_test.x.numpy()}
    own = np.stack([row for row in federation.train.x.numpy() if row.tobytes() not in tested][:4])
    with pytest.raises(DataError, match=r"source=given\): the inputs are the clients' own: .* proxy=client_heldout"):
        OtherDataset(Given(np.concatenate([other(4), own])), None).inputs(federation, 0)
    assert len(OtherDataset(Given(np.concatenate([other(5), own])), None).inputs(federation, 0)) == 9


def test_no_dataset() -> None:
    with pytest.raises(OptionError, match=r"^source must be a dataset that makes no clients"):
        OtherDataset(None, None)  # type: ignore[arg-type]
