"""Pretrained weights from a file: a state dict saved by torch (.pt, .pth), or safetensors."""

import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from fedcohort.errors import OptionError

MAX_TENSORS_LISTED = 3  # tensors in a message
BN_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def load_weights(network: nn.Module, path: Path, classifier_prefix: str) -> None:
    """Load pretrained weights from a file into the network, in place.

    Statistics of batch norm are skipped if the network has none. The classifier keeps its initial weights if the file's
    classifier has another number of classes.

    Args:
        network: network whose weights are set.
        path: path of the file, a state dict in torch's format or a .safetensors file.
        classifier_prefix: prefix of the names of the classifier's tensors, such as "classifier.".

    Raises:
        OptionError: the file can't be read, or tensors don't fit; the message names the first ones.
    """
    weights, initial_weights = _read_tensors(path), network.state_dict()
    classifier = {name: tensor for name, tensor in initial_weights.items() if name.startswith(classifier_prefix)}
    if all(name in weights and weights[name].shape[1:] == tensor.shape[1:] for name, tensor in classifier.items()):
        weights |= {name: tensor for name, tensor in classifier.items() if weights[name].shape != tensor.shape}
    weights = {name: w for name, w in weights.items() if name in initial_weights or not name.endswith(BN_STATISTICS)}
    errors = [f"{name} is missing in the file" for name in initial_weights if name not in weights]
    errors += [f"{name} is not in the network" for name in weights if name not in initial_weights]
    for name, tensor in initial_weights.items():
        if name in weights and (file_shape := weights[name].shape) != tensor.shape:
            errors.append(f"{name} has shape {list(file_shape)} in the file and {list(tensor.shape)} in the network")
    if errors:
        more_text = f", and {len(errors) - MAX_TENSORS_LISTED} more" if len(errors) > MAX_TENSORS_LISTED else ""
        raise OptionError(
            f"model.weights={path}: the weights don't fit: {'; '.join(errors[:MAX_TENSORS_LISTED])}{more_text}. "
            "Choose a file of the same network, or model.weights=null"
        )
    network.load_state_dict(weights)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in the file `path` by name, without executing code that the file may contain.

    Raises:
        OptionError: the file can't be read, or holds something else than tensors by name.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file  # noqa: PLC0415 - an optional package

            tensors = load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise OptionError(f"model.weights={path} needs the package safetensors: pip install safetensors") from error
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        error_text = str(error).split("\n")[0][:120]
        message_start = f"model.weights={path} can't be read as weights"
        raise OptionError(f"{message_start} ({type(error).__name__}: {error_text}); choose another file") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise OptionError(
            f"model.weights={path} must hold a state dict (tensors by name) and nothing else: save network.state_dict()"
        )
    return dict(tensors)
