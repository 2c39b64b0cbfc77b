"""The images of a run are laid out before training processes are forked, which then share them."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from fedcohort.data.federation import ServerSamples
from fedcohort.round.setup import choose_memory_layout


@pytest.mark.parametrize(("choice", "last"), [("yes", True), ("auto", True), ("no", False)])
def test_images_have_the_layout_that_the_network_trains_in(choice: str, last: bool) -> None:
    rows = {
        name: ServerSamples(torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64))
        for name in ("train", "val", "test")
    }
    server = {
        f"server_{name}": ServerSamples(part.x[:1].clone(), part.y[:1])
        for name, part in rows.items()
        if name != "train"
    }
    federation: Any = SimpleNamespace(**rows, **server, proxy=None)
    settings: Any = SimpleNamespace(channels_last=choice)
    assert choose_memory_layout(settings, nn.Sequential(nn.Conv2d(3, 2, 3)), federation) is last
    is_channels_last = [part.x.stride(1) == 1 for part in (*rows.values(), *server.values())]
    assert is_channels_last == [last] * 5
