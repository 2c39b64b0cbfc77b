"""Weights from a file: a state dict that torch has saved (.pt, .pth), or safetensors."""

import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from fedcohort.errors import OptionError

SHOWN = 3  # tensors that a message names
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def load(network: nn.Module, path: Path, classifier: str) -> None:
    """Give the network the weights in the file; all that they share must fit.

    Statistics of batch norm are passed over where the network has none, and the `classifier` (the start of its tensors'
    names) keeps its initial weights where the file's has another number of classes.

    Raises `OptionError` where the file can't be read, or naming the first tensors that don't fit.
    """
    weights, own = _read(path), network.state_dict()
    head = {name: tensor for name, tensor in own.items() if name.startswith(classifier)}
    alike = all(name in weights and weights[name].shape[1:] == tensor.shape[1:] for name, tensor in head.items())
    if alike and any(weights[name].shape != tensor.shape for name, tensor in head.items()):
        weights |= head
    weights = {name: w for name, w in weights.items() if name in own or not name.endswith(STATISTICS)}
    wrong = [f"{name} is missing" for name in own if name not in weights]
    wrong += [f"{name} is unknown" for name in weights if name not in own]
    wrong += [
        f"{name} is {list(weights[name].shape)} in the file and {list(own[name].shape)} here"
        for name in own
        if name in weights and weights[name].shape != own[name].shape
    ]
    if wrong:
        more = f", and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise OptionError(f"model.weights={path}: the file's weights don't fit: {'; '.join(wrong[:SHOWN])}{more}")
    network.load_state_dict(weights)


def _read(path: Path) -> dict[str, Tensor]:
    """Return the tensors in the file by name; nothing in it is executed."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file  # noqa: PLC0415 - an extra that few have

            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise OptionError(f"model.weights={path} needs the package safetensors: pip install safetensors") from error
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        why = str(error).split("\n")[0][:120]
        raise OptionError(f"model.weights={path} can't be read as weights ({type(error).__name__}: {why})") from error
    if not isinstance(found, dict) or not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise OptionError(f"model.weights={path} must hold a state dict, tensors by name, and nothing else")
    return dict(found)
