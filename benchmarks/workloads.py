"""What engines are compared on: data, cohorts, first weights, and what a round cost; the same for every peer.

W1: 100 clients x 600 samples of 1x28x28, MLP 784-200-200-10, cohort 10, batch 32.
W2: as W1 with the CNN of FedAvg.
W3: 3,550 clients of lognormal sizes (mean 43), logistic regression 784-62, cohort 355, batch 10.
W4: 1,000 clients x 50 samples of 3x32x32, a CNN of 3x3 convolutions and 12,544 features, cohort 50, batch 10.
W5: 50 clients x 100 sequences of 80 characters of 80 kinds, LEAF's character LSTM, cohort 10, batch 10.
W6: 100 clients x 100 samples of 3x32x32, ResNet-8 with group norm, cohort 10, batch 10.
One local epoch of SGD a round over the samples as they lie, sample-weighted mean, server evaluation on 10,000 samples
(W4: 1,000, W5: 200, W6: 500) every round. Every draw is NumPy's by a fixed seed, so that a peer written elsewhere can
have the same.
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
NOISE, DISTANCE = np.float32(0.3), np.float32(0.03)  # of a sample from its class, of classes from 0
PIECE = 10_000  # samples that are made at a time
STEP, STRAY = 7, 4  # of made text: a character times STEP, and less than STRAY more
SUMS = ("sec_per_round_min", "sec_per_round_median", "cpu_s_per_round_min", "cpu_s_per_round_mean", "first_round")


def small_cnn(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """Two unpadded 3x3 convolutions, one pooling, one dense layer, for 3x32x32."""
    convolutions = (nn.Conv2d(shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, n_classes))


@dataclass(frozen=True)
class Workload:
    """A workload. text: samples are sequences of characters, of as many as there are classes; else numbers."""

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
        """Weights and biases uniform in +-1 / sqrt(inputs of the layer), one stream for all, layer by layer.

        Norms begin as the identity but for their biases.
        """
        network = self.build(self.shape, self.n_classes)
        draws, bound = np.random.RandomState(WEIGHTS), 1.0
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if parameter.dim() == 1 and name.endswith("weight"):
                    continue
                if parameter.dim() > 1:
                    bound = 1 / np.sqrt(parameter[0].numel())
                drawn = draws.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(torch.from_numpy(drawn))
        return network

    def data(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x, y of all clients, one after the other; x, y of the server."""
        if self.text:
            draws = np.random.Generator(np.random.PCG64(SAMPLES))
            return (*self._sequences(int(self.sizes.sum()), draws), *self._sequences(self.n_eval, draws))
        inputs = int(np.prod(self.shape))
        drawn = np.random.RandomState(CLASSES).standard_normal((self.n_classes, inputs))
        centres = drawn.astype(np.float32) * DISTANCE
        draws = np.random.Generator(np.random.PCG64(SAMPLES))
        parts: list[Tensor] = []
        for n in (int(self.sizes.sum()), self.n_eval):
            x = draws.standard_normal((n, inputs), dtype=np.float32)
            x *= NOISE
            y = draws.integers(0, self.n_classes, n)
            for start in range(0, n, PIECE):
                x[start : start + PIECE] += centres[y[start : start + PIECE]]
            parts += [torch.from_numpy(x.reshape(n, *self.shape)), torch.from_numpy(y)]
        return parts[0], parts[1], parts[2], parts[3]

    def _sequences(self, n: int, draws: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Sequences in which a character says what the next one may be, as bytes, and the one that comes after each."""
        length = self.shape[0] + 1
        codes, strays = np.empty((n, length), np.uint8), draws.integers(0, STRAY, (n, length))
        codes[:, 0] = draws.integers(0, self.n_classes, n)
        for i in range(1, length):
            codes[:, i] = (STEP * codes[:, i - 1].astype(np.int64) + strays[:, i]) % self.n_classes
        return torch.from_numpy(codes[:, :-1].copy()), torch.from_numpy(codes[:, -1].astype(np.int64))

    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def chosen(self, round: int) -> np.ndarray:
        """The same cohorts for every peer, by id."""
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
    """Processor time of a process and its descendants so far, those that have ended included."""
    total = 0.0
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(cpu_seconds(int(child)) for child in (task / "children").read_text().split())
    return total


def result(peer: str, workload: str, times: list[float], cpu: list[float], losses: list[float]) -> dict[str, Any]:
    """What a peer prints: wall and processor seconds and the server's loss of each round, and what they come to.

    The first round pays for caches: it is left out of the sums, and told apart.
    """
    wall, busy = times[1:] or times, cpu[1:] or cpu
    sums = (min(wall), float(np.median(wall)), min(busy), float(np.mean(busy)), times[0])
    told = {"peer": peer, "workload": workload, "times": times, "losses": losses, "final_loss": losses[-1]}
    return {**told, **dict(zip(SUMS, sums, strict=True))}
