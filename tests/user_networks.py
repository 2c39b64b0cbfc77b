"""Networks as a user may write them, for images: `model=module model.path=user_networks.<name>`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Dense(nn.Module):
    def __init__(self, in_features: int, n_classes: int, width: int = 6) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(in_features, width), nn.Linear(width, n_classes)

    def forward(self, x: Tensor) -> Any:
        return self.out(torch.tanh(self.hidden(x.flatten(1))))


class Convolution(nn.Module):
    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(in_channels, 4, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2))
        self.out = nn.Linear(16, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.layers(x).flatten(1))
        return logits


class BatchNorm(nn.Module):
    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(in_channels, 4, 3), nn.BatchNorm2d(4)
        self.out = nn.Linear(4, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(torch.relu(self.norm(self.convolution(x))).mean((2, 3)))
        return logits


class Dropout(Dense):
    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.hidden(x.flatten(1)))
        logits: Tensor = self.out(nn.functional.dropout(hidden, 0.5, self.training))
        return logits


class Lstm(nn.Module):
    def __init__(self, input_shape: tuple[int, int, int], n_classes: int) -> None:
        super().__init__()
        channels, _, width = input_shape
        self.lstm, self.out = nn.LSTM(channels * width, 5, batch_first=True), nn.Linear(5, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        steps, _ = self.lstm(x.transpose(1, 2).flatten(2))
        logits: Tensor = self.out(steps[:, -1])
        return logits


class Attention(nn.Module):
    def __init__(self, shape: tuple[int, int, int], n_classes: int) -> None:
        super().__init__()
        channels, _, width = shape
        self.embed = nn.Linear(channels * width, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.out = nn.Linear(8, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.layer(self.embed(x.transpose(1, 2).flatten(2))).mean(1))
        return logits


class TiedWeights(nn.Module):
    """Network whose encoder and decoder share one matrix."""

    def __init__(self, n_features: int, classes: int) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(n_features, 5), nn.Linear(n_features, 5)
        self.decoder.weight = self.encoder.weight
        self.out = nn.Linear(5, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        logits: Tensor = self.out(torch.tanh(self.encoder(x)) + self.decoder(x))
        return logits


class TwoHeads(Dense):
    """Network that returns logits and an auxiliary output: `model.head=0`."""

    def forward(self, x: Tensor) -> Any:
        logits = super().forward(x)
        return logits, logits.sum(1)


class NamedHeads(Dense):
    """Network that returns a dictionary: `model.head=logits`."""

    def forward(self, x: Tensor) -> Any:
        return {"auxiliary": x.mean(), "logits": super().forward(x)}


class Counter(Dense):
    """Network with float and integer buffers, and a frozen parameter."""

    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__(in_features, n_classes)
        self.scale: Tensor
        self.batches: Tensor
        self.register_buffer("scale", torch.full((1,), 0.5))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        self.offset = nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x: Tensor) -> Any:
        if self.training:
            self.batches += 1
        return super().forward(self.scale * x + self.offset)


def sequential(in_features: int, n_classes: int, hidden: int = 4) -> nn.Module:
    """Return a network: `path` may name a function."""
    return nn.Sequential(nn.Flatten(), nn.Linear(in_features, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))


NETWORKS: dict[str, dict[str, Any]] = {
    name: {"path": f"user_networks.{name}", "head": {"TwoHeads": 0, "NamedHeads": "logits"}.get(name)}
    for name in (
        *("Dense", "Convolution", "BatchNorm", "Dropout", "Lstm", "Attention", "TiedWeights", "TwoHeads"),
        *("NamedHeads", "Counter", "sequential"),
    )
}


class InPlace(Dense):
    """Network that is rejected because it changes its inputs."""

    def forward(self, x: Tensor) -> Any:
        x -= 0.5
        return super().forward(x)


class Lazy(nn.Module):
    """Network that is rejected because a layer has no shape."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.LazyLinear(10)

    def forward(self, x: Tensor) -> Any:
        return self.out(x.flatten(1))


class Unseeded(Dense):
    """Network that is rejected because torch's seed does not fix its initial weights."""

    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__(in_features, n_classes)
        global _INSTANCES
        _INSTANCES += 1
        noise = np.random.default_rng(_INSTANCES).standard_normal(n_classes)
        self.out.bias.data = torch.as_tensor(noise, dtype=torch.float32)


_INSTANCES = 0


class Fails(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        raise ValueError(f"no network of depth {depth}")


class Plain:
    """Class that is rejected because it is not a network."""


EXISTING = Convolution(1, 10)  # rejected, because it is an instance
