"""Reduced variants of the papers' experiments list their changes and run two rounds on generated data."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from case_loop import for_all
from config_options import CONFIGS, load_yaml, make_component
from engine_harness import flatten_parameters, make_task, make_trainer
from fedcohort.data.targets import PerPositionTargets
from fedcohort.dataset.base import Raw
from fedcohort.model.word_lstm import WordLstm
from fedcohort.rng import seeded_torch
from fedcohort.startup import components, load
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.build import build_network
from fedcohort.startup.split import build_federation
from feddiverse_tables import write_spawrious, write_waterbirds
from image_tables import encode_image, random_images, write_image_table
from reddit_tables import write_comments as save_comments
from run_harness import compose_overrides, run_training
from shakespeare_tables import write_roles

SMALL = sorted(path.stem for path in (CONFIGS / "experiment").glob("*_cpu.yaml"))
REDUCED_RUN = (
    "rounds=2",
    "cohort=2",
    "client.epochs=1",
    "callback=none",
    "logger=none",
    "checkpoint.every_s=0",
    "eval.every=1",
)


@for_all("choice", SMALL)
def test_a_reduced_experiment_lists_its_reductions_and_keeps_the_methods(choice: str) -> None:
    """A reduced experiment extends the paper's experiment and keeps its federation and methods."""
    large = choice.removesuffix("_cpu")
    reduced_file, full_file = (CONFIGS / "experiment" / f"{name}.yaml" for name in (choice, large))
    assert f"# {large} reduced for a laptop: " in reduced_file.read_text()
    assert f"experiment={choice} is smaller" in re.sub(r"\n# ", " ", full_file.read_text())
    first, *other_defaults = load_yaml(reduced_file).defaults
    assert first == large
    assert [list(entry) for entry in other_defaults] in ([], [["override /model"]])
    changed_options = set(load_yaml(reduced_file)) - {"defaults"}
    assert changed_options <= {
        "clients",
        "cohort",
        "rounds",
        "split",
        "client",
        "eval",
        "dataset",
        "model",
        "samples",
        "deadline",
    }


def objects(folder: Path, n_classes: int) -> str:
    """Write ten classes with twelve training and two test images of 32 x 32 pixels each."""
    for part, n in (("train", 120), ("test", 20)):
        images = [encode_image(image) for image in random_images(n, (3, 32, 32))]
        label = "fine_label" if n_classes == 100 else "label"
        columns: dict[str, Any] = {"img": images, label: (np.arange(n) % 10).tolist()}
        write_image_table(folder, part, **columns)
    return str(folder)


def writers(folder: Path) -> str:
    ids = np.repeat(np.arange(12), 12)
    images = [encode_image(image) for image in random_images(len(ids), (1, 28, 28))]
    write_image_table(folder, "train", image=images, writer_id=[f"f{k:04}" for k in ids], character=(ids % 62).tolist())
    return str(folder)


def faces(folder: Path) -> str:
    ids = np.repeat(np.arange(12), 8)
    images = [encode_image(image) for image in random_images(len(ids), (3, 22, 18))]
    write_image_table(folder, "train", image=images, celeb_id=ids, Smiling=np.arange(len(ids)) % 2 == 0)
    return str(folder)


def roles(folder: Path) -> str:
    write_roles(folder, dict.fromkeys(range(6), 6), dict.fromkeys(range(6), 5))
    return str(folder)


def figures(folder: Path) -> str:
    for part, n in (("train", 480), ("test", 80)):
        write_image_table(
            folder,
            part,
            image=[encode_image(image) for image in random_images(n, (1, 28, 28))],
            label=(np.arange(n) % 10).tolist(),
        )
    return str(folder)


DATA: dict[str, tuple[Callable[[Path], str], tuple[str, ...]]] = {
    "flash_cifar10_cpu": (lambda folder: objects(folder, 10), ("clients=10",)),
    "flash_femnist_cpu": (writers, ("clients=10", "dataset.users=1")),
    "feddiverse_waterbirds_cpu": (write_waterbirds, ("dataset.size=16",)),
    "feddiverse_spawrious_cpu": (lambda folder: write_spawrious(folder, 100), ("dataset.size=16",)),
    "feddiverse_cmnist_cpu": (figures, ("clients=6",)),
    "fedmaba_cifar10_cpu": (lambda folder: objects(folder, 10), ("clients=6",)),
    "fedmaba_cifar100_cpu": (lambda folder: objects(folder, 100), ("clients=6",)),
    "fedbalancer_femnist_cpu": (writers, ("dataset.users=1.0",)),
    "fedbalancer_celeba_cpu": (faces, ("dataset.users=1.0",)),
    "fedbalancer_reddit_cpu": (lambda folder: str(save_comments(folder, 6)), ("dataset.users=1.0",)),
    "fedbalancer_shakespeare_cpu": (roles, ("dataset.users=1.0", "dataset.least=0")),
}


@pytest.fixture(scope="module")
def path_of_data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that writes the data of an experiment once, and returns the option with their path."""
    return cache(lambda choice: f"dataset.path={DATA[choice][0](tmp_path_factory.mktemp(choice))}")


@pytest.mark.parametrize("choice", SMALL)
def test_the_papers_model_fits_the_papers_data(choice: str, path_of_data: Callable[[str], str]) -> None:
    overrides = DATA[choice][1]
    few = (*overrides, "dataset.size=32") if "dataset.size=16" in overrides else overrides
    composition = compose_overrides(f"experiment={choice.removesuffix('_cpu')}", path_of_data(choice), *few)
    parts = {group: components.make_component(composition, group) for group in (*load.DATA_GROUPS, "model")}
    federation = load.load_federation(composition, parts)
    network = build_network(composition, parts["model"], federation)
    places = federation.server_test.y.shape[1:]
    assert network(federation.server_test.x[:2]).shape == (2, *places, federation.n_classes)


def test_every_reduced_experiment_is_tested() -> None:
    assert sorted(DATA) == SMALL


@pytest.mark.parametrize("choice", SMALL)
def test_reduced_experiments_run_two_rounds_on_generated_data(
    choice: str, path_of_data: Callable[[str], str], tmp_path: Path
) -> None:
    overrides = (*DATA[choice][1], *REDUCED_RUN)
    run = run_training(tmp_path, f"experiment={choice}", path_of_data(choice), *overrides, small=False)
    assert len(run.reports) == 3
    assert np.isfinite(run.last.metrics["test/loss"])
    assert (len(run.last.cohort), run.info.choices["experiment"]) == (2, choice)
    if choice.startswith("feddiverse"):
        assert "test/acc_worst_group" in run.last.metrics


@pytest.mark.parametrize(("scale", "clipped"), [(1.0, False), (40.0, True)])
def test_a_step_on_reddit_uses_the_released_codes_loss(scale: float, clipped: bool) -> None:
    """Train on ten sequences of ten words: lr 2, clipping at 5, losses summed over time and averaged over samples."""
    client = compose_overrides("experiment=fedbalancer_reddit").config["client"]
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 12, (80, 10)), rng.integers(0, 12, (80, 10))
    raw = Raw("toy", x, y, x[:20], y[:20], 12, targets=PerPositionTargets(()))
    components = (make_component("partition", "iid"), make_component("label_noise", "none"))
    federation = build_federation(raw, SplitOptions(*components, seed=0, clients=2, server_val=0.1, client_val=0))
    with seeded_torch(0, "weights"):
        network = WordLstm(embedding=8, hidden=8, layers=1).build((10,), 12).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    trainer = make_trainer(federation, network, **{name: client[name] for name in ("lr", "batch", "clip")})
    task = make_task(0, units=1, lr=client["lr"], rows=np.arange(client["batch"]))
    inputs, labels = (part[:10] for part in federation.train.client_samples(0))
    start = flatten_parameters(network)
    loss = F.cross_entropy(network(inputs).flatten(0, 1), labels.flatten(), reduction="sum") / 10
    torch.autograd.backward(loss)
    assert (float(nn.utils.clip_grad_norm_(network.parameters(), 5)) > 5) == clipped
    torch.optim.SGD(network.parameters(), lr=2).step()
    torch.testing.assert_close(trainer.train(task, {}).delta, flatten_parameters(network) - start, atol=1e-9, rtol=1e-6)
