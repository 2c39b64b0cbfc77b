"""Another dataset's inputs, and which are refused."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from config_options import make_component
from engine_harness import make_federation
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.errors import DataError, OptionError
from fedcohort.feature_noise.blur import Blur
from fedcohort.feature_noise.gaussian import Gaussian
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.iid import Iid
from fedcohort.proxy.dataset import OtherDataset
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from image_tables import random_images, write_image_table
from optional_values import not_none


@dataclass(frozen=True)
class FixedDataset(Dataset):
    """A dataset of these training inputs."""

    x: np.ndarray

    def load(self, seed: int) -> Raw:
        y = np.zeros(len(self.x), dtype=np.int64)
        return Raw("given", self.x, y, self.x[:1], y[:1], 2)


def make_inputs(n: int = 8) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, 5)).astype(np.float32)


def test_the_proxy_is_the_datasets_training_inputs() -> None:
    x = OtherDataset(FixedDataset(make_inputs()), None).inputs(make_federation(), 0)
    assert torch.equal(x, torch.from_numpy(make_inputs()))
    inputs = OtherDataset(FixedDataset(make_inputs()), 3).inputs(make_federation(), 0)
    assert len(inputs) == 3
    assert all((make_inputs() == row.numpy()).all(1).any() for row in inputs)


def test_byte_inputs_are_rejected_if_the_run_uses_floats() -> None:
    line = r"source=given\): the inputs are uint8, but those of dataset=toy are float32; set dataset.pixels=float32"
    with pytest.raises(DataError, match=line):
        OtherDataset(FixedDataset(np.arange(40, dtype=np.uint8).reshape(8, 5)), None).inputs(make_federation(), 0)


def test_another_shape_is_rejected() -> None:
    line = r"source=given\): samples have the shape \[2, 4\], but those of dataset=toy have \[5\]"
    with pytest.raises(DataError, match=line):
        OtherDataset(FixedDataset(np.arange(24, dtype=np.float32).reshape(3, 2, 4)), None).inputs(make_federation(), 0)


def test_inputs_from_the_test_set_are_rejected() -> None:
    federation = make_federation()
    inputs = np.concatenate([make_inputs(), federation.server_test.x[:2].numpy()])
    with pytest.raises(DataError, match=r"^proxy=dataset .*source=given\): 2 inputs are also in the run's test set"):
        OtherDataset(FixedDataset(inputs), 1).inputs(federation, 0)


def test_the_clients_own_samples_are_rejected() -> None:
    federation = make_federation()
    tested = {row.tobytes() for row in federation.server_test.x.numpy()}
    client_rows = np.stack([row for row in federation.train.x.numpy() if row.tobytes() not in tested][:4])
    with pytest.raises(
        DataError, match=r"source=given\): the inputs are samples of the clients: .* proxy=client_heldout"
    ):
        OtherDataset(FixedDataset(np.concatenate([make_inputs(4), client_rows])), None).inputs(federation, 0)
    assert (
        len(OtherDataset(FixedDataset(np.concatenate([make_inputs(5), client_rows])), None).inputs(federation, 0)) == 9
    )


@pytest.mark.parametrize("disturbance", [Gaussian(0.3, "uniform", 1.0), Blur(1.0, "bimodal", 0.5)])
def test_the_clients_own_samples_are_rejected_despite_feature_noise(disturbance: Gaussian | Blur) -> None:
    """Digits on digits, whose clients see them with noise, all or half of them."""
    digits = make_component("dataset", "digits")
    run = build_federation(
        digits.load(0),
        SplitOptions(Iid(), NoNoise(), seed=0, clients=8, server_val=0.1, client_val=0.1, feature_noise=disturbance),
    )
    assert run.feature_noise is not None
    for run_on_device in (run, run.to("cpu")):
        with pytest.raises(DataError, match=r"source=digits\): the inputs are samples of the clients"):
            OtherDataset(digits, None).inputs(run_on_device, 0)
    mirrored = digits.load(0).train_x[:, :, ::-1].copy()
    assert len(OtherDataset(FixedDataset(mirrored), None).inputs(run, 0)) == len(mirrored)


def test_pixels_are_normalised_as_their_own_dataset_does(tmp_path: Path) -> None:
    """MNIST as proxy of a run on Fashion-MNIST: the network sees the same inputs as bytes and as numbers."""
    for choice in ("mnist", "fashion_mnist"):
        (tmp_path / choice).mkdir()
        for part, n in (("train", 60), ("test", 20)):
            write_image_table(
                tmp_path / choice, part, image=list(random_images(n, (784,), n + len(choice))), label=np.arange(n) % 10
            )
    outputs = []
    for pixels in ("float32", "uint8"):
        run, public = (
            make_component("dataset", choice, path=str(tmp_path / choice), pixels=pixels)
            for choice in ("fashion_mnist", "mnist")
        )
        federation = build_federation(
            run.load(0), SplitOptions(Iid(), NoNoise(), seed=0, clients=4, server_val=0.1, client_val=0.1)
        )
        network = torch.nn.Identity()
        if federation.scale is not None:
            federation.scale.attach_to_network(network)
        outputs.append(network(OtherDataset(public, 30).inputs(federation, 0)))
        bytes_of = not_none(make_component("dataset", "mnist", path=str(tmp_path / "mnist"), pixels="uint8").load(0))
    assert torch.equal(outputs[0], outputs[1])
    rows = {row.tobytes() for row in PixelScale((0.1307,), (0.3081,)).convert(bytes_of.train_x)}
    assert all(row.numpy().tobytes() in rows for row in outputs[1])


def test_bytes_of_the_runs_own_scale_stay_bytes(tmp_path: Path) -> None:
    for name, seed in (("run", 1), ("public", 2)):
        (tmp_path / name).mkdir()
        for part in ("train", "test"):
            write_image_table(
                tmp_path / name, part, image=list(random_images(60, (784,), seed + len(part))), label=np.arange(60) % 10
            )
    run, public = (
        make_component("dataset", "mnist", path=str(tmp_path / name), pixels="uint8") for name in ("run", "public")
    )
    federation = build_federation(
        run.load(0), SplitOptions(Iid(), NoNoise(), seed=0, clients=4, server_val=0.1, client_val=0.1)
    )
    x = OtherDataset(public, None).inputs(federation, 0)
    np.testing.assert_array_equal(x.numpy(), public.load(0).train_x)


def test_a_missing_dataset_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"^source must be a dataset without generated clients"):
        OtherDataset(None, None)  # type: ignore[arg-type]
