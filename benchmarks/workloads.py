"""Workloads of `make bench`: data, cohorts and initial weights, the same for fedcohort and the plain loop.

W1: 100 clients x 600 samples of 1x28x28, MLP 784-200-200-10, cohort 10, batch 32.
W2: W1 with the CNN of FedAvg.
W3: 3,550 clients of lognormal sizes (mean 43), logistic regression 784-62, cohort 355, batch 10.
W4: 1,000 clients x 50 samples of 3x32x32, a CNN of 3x3 convolutions and 12,544 features, cohort 50, batch 10.
W5: 50 clients x 100 sequences of 80 characters of 80 kinds, LEAF's character LSTM, cohort 10, batch 10.
W6: 100 clients x 100 samples of 3x32x32, ResNet-8 with group norm, cohort 10, batch 10.

Each round trains one local epoch of SGD over the samples in stored order, averages by sample counts, and evaluates on
10,000 server samples (W4: 1,000, W5: 200, W6: 500). All random numbers come from NumPy with fixed seeds, so that other
implementations can use the same workload.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.model.char_lstm import CharLstm
from fedcohort.model.cnn import Cnn
from fedcohort.model.logreg import LogReg
from fedcohort.model.mlp import Mlp
from fedcohort.model.resnet8_gn import ResNet8

SIZES, CLASSES, SAMPLES, WEIGHTS, COHORTS = 7, 11, 3, 5, 1000  # seeds
NOISE, DISTANCE = (
    np.float32(0.3),
    np.float32(0.03),
)  # standard deviations: samples around their class, class centres around 0
SAMPLES_AT_ONCE = 10_000  # samples that are generated at a time
FACTOR, SPREAD = 7, 4  # of generated text: the next character is FACTOR times this one, plus less than SPREAD
SUMMARY_KEYS = (
    "sec_per_round_min",
    "sec_per_round_median",
    "cpu_s_per_round_min",
    "cpu_s_per_round_mean",
    "first_round",
)


def small_cnn(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """Return a network of two unpadded 3x3 convolutions, one pooling and two dense layers, for 3x32x32 images."""
    convolutions = (nn.Conv2d(shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, n_classes))


@dataclass(frozen=True)
class Workload:
    """A federated training task.

    Attributes:
        shape: shape of one sample.
        n_classes: number of classes.
        sizes: samples of each client; int64 [clients].
        cohort: clients per round.
        batch: samples per step.
        lr: learning rate of the clients.
        n_eval: samples of the server's evaluation.
        rounds: default number of rounds.
        build: returns the network for a shape and a number of classes.
        text: whether samples are sequences of `n_classes` different characters instead of real numbers.
    """

    shape: tuple[int, ...]
    n_classes: int
    sizes: np.ndarray
    cohort: int
    batch: int
    lr: float
    n_eval: int
    rounds: int
    build: Callable[[tuple[int, ...], int], nn.Module]
    text: bool = False

    def network(self) -> nn.Module:
        """Return the network with its initial weights.

        Weights and biases are uniform within 1 / sqrt(inputs of the layer) of 0, drawn layer by layer from one
        generator. The scales of norm layers stay 1.
        """
        network = self.build(self.shape, self.n_classes)
        draws, bound = np.random.RandomState(WEIGHTS), 1.0
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if parameter.dim() == 1 and name.endswith("weight"):
                    continue
                if parameter.dim() > 1:
                    bound = 1 / np.sqrt(parameter[0].numel())
                values = draws.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(torch.from_numpy(values))
        return network

    def data(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return inputs and labels of all clients, concatenated, and inputs and labels of the server."""
        if self.text:
            draws = np.random.Generator(np.random.PCG64(SAMPLES))
            return (*self._sequences(int(self.sizes.sum()), draws), *self._sequences(self.n_eval, draws))
        inputs = int(np.prod(self.shape))
        normals = np.random.RandomState(CLASSES).standard_normal((self.n_classes, inputs))
        centres = normals.astype(np.float32) * DISTANCE
        draws = np.random.Generator(np.random.PCG64(SAMPLES))
        tensors: list[Tensor] = []
        for n in (int(self.sizes.sum()), self.n_eval):
            x = draws.standard_normal((n, inputs), dtype=np.float32)
            x *= NOISE
            y = draws.integers(0, self.n_classes, n)
            for start in range(0, n, SAMPLES_AT_ONCE):
                x[start : start + SAMPLES_AT_ONCE] += centres[y[start : start + SAMPLES_AT_ONCE]]
            tensors += [torch.from_numpy(x.reshape(n, *self.shape)), torch.from_numpy(y)]
        return tensors[0], tensors[1], tensors[2], tensors[3]

    def _sequences(self, n: int, draws: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return sequences, uint8 [n, length], in which each character restricts the next one, and their next one."""
        length = self.shape[0] + 1
        codes, increments = np.empty((n, length), np.uint8), draws.integers(0, SPREAD, (n, length))
        codes[:, 0] = draws.integers(0, self.n_classes, n)
        for i in range(1, length):
            codes[:, i] = (FACTOR * codes[:, i - 1].astype(np.int64) + increments[:, i]) % self.n_classes
        return torch.from_numpy(codes[:, :-1].copy()), torch.from_numpy(codes[:, -1].astype(np.int64))

    def offsets(self) -> np.ndarray:
        """Return the first sample of each client and the total, [clients + 1]."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def cohort_of(self, round: int) -> np.ndarray:
        """Return the cohort of a round, sorted; the same for all peers."""
        draws = np.random.RandomState(COHORTS + round)
        return np.sort(draws.choice(len(self.sizes), self.cohort, replace=False))


def _lognormal() -> np.ndarray:
    sizes = np.random.RandomState(SIZES).lognormal(np.log(45) - 0.5, 1.0, 3550)
    return np.maximum(1, np.round(sizes)).astype(np.int64)


IMAGE, PHOTO = (1, 28, 28), (3, 32, 32)
WORKLOADS = {
    "W1": Workload(IMAGE, 10, np.full(100, 600), 10, 32, 0.1, 10000, 10, Mlp([200, 200]).build),
    "W2": Workload(IMAGE, 10, np.full(100, 600), 10, 32, 0.05, 10000, 5, Cnn(512).build),
    "W3": Workload(IMAGE, 62, _lognormal(), 355, 10, 0.1, 10000, 5, LogReg().build),
    "W4": Workload(PHOTO, 10, np.full(1000, 50), 50, 10, 0.05, 1000, 5, small_cnn),
    "W5": Workload((80,), 80, np.full(50, 100), 10, 10, 0.8, 200, 3, CharLstm(8, 256, 2).build, text=True),
    "W6": Workload(PHOTO, 10, np.full(100, 100), 10, 10, 0.05, 500, 3, ResNet8("group", 8, 16).build),
}


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process and its descendants so far, including those that have ended."""
    total = 0.0
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(cpu_seconds(int(child)) for child in (task / "children").read_text().split())
    return total


def result(peer: str, workload: str, times: list[float], cpu: list[float], losses: list[float]) -> dict[str, Any]:
    """Return what a peer prints: wall seconds, server losses and summary values of its rounds.

    The first round fills caches. It is reported separately and excluded from the summary values.
    """
    wall, cpu_rest = times[1:] or times, cpu[1:] or cpu
    summary = (min(wall), float(np.median(wall)), min(cpu_rest), float(np.mean(cpu_rest)), times[0])
    report = {"peer": peer, "workload": workload, "times": times, "losses": losses, "final_loss": losses[-1]}
    return {**report, **dict(zip(SUMMARY_KEYS, summary, strict=True))}
