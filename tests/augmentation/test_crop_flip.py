"""Crops and mirrored images: where each pixel comes from, who draws what, and that nothing else has a say in it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from config_options import make_component
from engine_harness import SEED, make_task
from fedcohort.augmentation.crop_flip import CropFlip, crop_and_flip
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Raw
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from fedcohort.rng import new_generator, seeded_torch
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from fedcohort.training.engines import choose_engine
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod
from round_harness import run_without_files
from run_harness import run_training, same_bits, startup_notices

PLAIN = ("heterogeneity=iid", "rounds=2", "split.limit=300")
CROPS = (*PLAIN, "augmentation=crop_flip", "augmentation.padding=2")
SCALE = PixelScale((0.5,), (0.25,))


def test_a_crop_and_a_mirrored_crop_by_hand() -> None:
    """[1 2 3; 4 5 6] moved by one row and one column; mirrored it is [3 2 1; 6 5 4] first, and moved back by one."""
    x = torch.tensor([[1.0, 2, 3], [4, 5, 6]]).expand(2, 1, 2, 3)
    augmented = crop_and_flip(x, np.array([1, 0]), np.array([1, 1]), np.array([False, True]))
    assert augmented[0, 0].tolist() == [[5, 6, 0], [0, 0, 0]]
    assert augmented[1, 0].tolist() == [[0, 3, 2], [0, 6, 5]]
    assert crop_and_flip(x, np.array([-5, 0]), np.array([0, -9]), np.array([True, False])).abs().sum() == 0


def test_channels_move_together_and_samples_do_not() -> None:
    x = torch.randn(100, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    down, right = np.random.default_rng(0).integers(-2, 3, (2, 100))
    mirrored = np.arange(100) % 2 == 0
    augmented = crop_and_flip(x, down, right, mirrored)
    for i in range(100):
        image = x[i].flip(2) if mirrored[i] else x[i]
        padded = nn.functional.pad(image, (2, 2, 2, 2))
        shift = -right[i] if mirrored[i] else right[i]
        assert torch.equal(augmented[i], padded[:, 2 + down[i] : 7 + down[i], 2 + shift : 7 + shift])


def test_moves_are_uniform_and_every_other_image_is_mirrored() -> None:
    """One bright pixel in the middle of 9: with padding 4 it is anywhere; 16,200 images, 200 for each of 81 places.

    The chi-square of 80 degrees of freedom has deviation 12.6.
    """
    x = torch.zeros(16200, 1, 9, 9)
    x[:, 0, 4, 4] = 1
    augmented = CropFlip(4, 0.5).change(x, np.random.default_rng(0))
    counts = augmented.sum((0, 1)).double()
    assert float(((counts - 200) ** 2 / 200).sum()) < 80 + 4 * 12.6
    images = torch.zeros(4000, 1, 1, 2)
    images[..., 0] = 1
    flipped = CropFlip(0, 0.25).change(images, np.random.default_rng(0))[:, 0, 0, 1].mean()
    assert float(flipped) == pytest.approx(0.25, abs=0.03)


def trainer_of(pixels: str = "float32", augmentation: Any = None, **client: Any) -> Any:
    rng = np.random.default_rng(0)
    bytes_ = rng.integers(0, 256, (60, 1, 6, 6)).astype(np.uint8)
    x = bytes_ if pixels == "uint8" else SCALE.convert(bytes_)
    scale, y = SCALE if pixels == "uint8" else None, rng.integers(0, 3, 60)
    raw = Raw("toy", x, y, x[:10], y[:10], 3, scale=scale)
    federation = build_federation(
        raw,
        SplitOptions(
            make_component("partition", "iid"),
            make_component("label_noise", "none"),
            seed=0,
            clients=3,
            server_val=0.1,
            client_val=0.1,
        ),
    )
    with seeded_torch(SEED, "weights"):
        networks = [nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 3)) for _ in range(2)]
    for network in networks:
        SCALE.attach_to_network(network)
    server, worker = (FlatModel(network) for network in networks)
    worker.copy_from(server)
    parts = (
        make_component("objective", "ce"),
        make_component("client", "sgd", **{"batch": 4, **client}),
        make_component("codec", "none"),
    )
    method = LocalTrainingMethod(*parts, (), augmentation=augmentation or CropFlip(2, 0.5))
    return LocalTrainer(server, worker, federation, method, SEED)


def test_local_training_sees_each_pass_changed() -> None:
    """Two epochs by hand: the draws of (seed, round, client), pass after pass, on the samples in the pass's order."""
    trainer, inputs_of_passes = trainer_of(), []
    trainer.chain = None  # steps of the chain cannot be observed

    def watch(step: Any) -> Any:
        def note_step(x: torch.Tensor, y: torch.Tensor, z: None) -> torch.Tensor:
            inputs_of_passes.append(x.clone())
            output: torch.Tensor = step(x, y, z)
            return output

        return note_step

    trainer.wrap_step = watch
    trainer.train(make_task(1, units=2, round=4), {})
    x, _ = trainer.federation.train.client_samples(1)
    draws, expected = new_generator(SEED, "augmentation", 4, 1), []
    for order, _ in trainer.draw_sample_passes(make_task(1, units=2, round=4)):
        down, right = draws.integers(-2, 3, (2, len(x)))
        expected.append(crop_and_flip(x[order], down, right, draws.random(len(x)) < 0.5))
    assert torch.equal(torch.cat(inputs_of_passes), torch.cat(expected))


def test_bytes_and_numbers_give_the_same_bits() -> None:
    deltas = [trainer_of(pixels).train(make_task(0), {}).delta for pixels in ("float32", "uint8")]
    assert torch.equal(*deltas)


def test_a_clients_draws_do_not_depend_on_the_cohort() -> None:
    trainer = trainer_of()
    single = trainer.train(make_task(2), {}).delta
    engine, _ = choose_engine("auto", trainer, 2)
    together = {
        update.client: update.delta for update in engine.train_clients([make_task(0), make_task(1), make_task(2)], {})
    }
    assert torch.equal(together[2], single)
    task = make_task(2, units=trainer.client.epochs, lr=trainer.client.lr_at(4))
    assert torch.equal(trainer.train_whole_job(4, 2).delta, trainer.train(task, {}).delta)
    assert not torch.equal(trainer.train(make_task(2, round=5), {}).delta, single)


def test_without_padding_and_flips_images_are_unchanged() -> None:
    plain, idle = (
        trainer_of(augmentation=augmentation)
        for augmentation in (make_component("augmentation", "none"), CropFlip(0, 0.0))
    )
    assert torch.equal(plain.train(make_task(0), {}).delta, idle.train(make_task(0), {}).delta)
    messages = startup_notices(*CROPS, "augmentation.padding=0", "augmentation.flip=0")
    assert "augmentation=crop_flip has no effect with augmentation.padding=0 and augmentation.flip=0" in messages


def test_slices_and_chunks_and_the_engine_that_is_asked_for_change_nothing(tmp_path: Path) -> None:
    """The dual engine of a linear model reads samples once a round, so that augmentation excludes it."""
    default = run_training(tmp_path / "a", *CROPS)
    assert (
        default.info.tags["engine"]
        == "sequential: the augmentation changes samples in every pass, one client at a time"
    )
    sliced = run_without_files(*CROPS, "engine=vectorised", "engine.slices=3", "engine.chunk=2")
    assert same_bits(default, sliced)
    ranks = run_training(tmp_path / "c", *CROPS, "trainer.devices=2")
    torch.testing.assert_close(ranks.weights(), default.weights(), rtol=0, atol=1e-6)
    assert not torch.equal(run_without_files(*PLAIN).weights(), default.weights())


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    overrides = (*CROPS, "split.limit=120", "model=cnn", "model.dense=16", "client.epochs=1")
    uninterrupted = run_training(tmp_path / "a", *overrides)
    run_training(tmp_path / "b", *overrides, "rounds=1")
    assert same_bits(run_training(tmp_path / "b", *overrides, "resume=true"), uninterrupted)


def test_inputs_that_are_no_images_are_rejected_by_name(tmp_path: Path) -> None:
    message = r"^augmentation=crop_flip needs image inputs .*, which dataset=synthetic does not have: choose .*=none$"
    with pytest.raises(IncompatibleConfig, match=message):
        run_training(tmp_path, "dataset=synthetic", "client.lr=0.01", "augmentation=crop_flip")
    assert not list(tmp_path.iterdir())
