"""Pretrained weights from a file: a state dict saved by torch (.pt, .pth), or safetensors."""

import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from fedcohort.errors import OptionError

MAX_TENSORS_LISTED = 3  # tensors in a message
BN_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def load_weights(network: nn.Module, weights_file: Path, classifier_prefix: str) -> None:
    """Load pretrained weights from a file into the network, in place.

    Statistics of batch norm are skipped if the network has none. The classifier keeps its initial weights if the file's
    classifier has another number of classes.

    Args:
        network: network whose weights are set.
        weights_file: path of the file, a state dict in torch's format or a .safetensors file.
        classifier_prefix: prefix of the names of the classifier's tensors, such as "classifier.".

    Raises:
        OptionError: the file can't be read, or tensors don't fit; the message names the first ones.
    """
    weights, initial_weights = _read_tensors(weights_file), network.state_dict()
    classifier_weights = {k: tensor for k, tensor in initial_weights.items() if k.startswith(classifier_prefix)}
    if all(k in weights and weights[k].shape[1:] == tensor.shape[1:] for k, tensor in classifier_weights.items()):
        weights |= {k: tensor for k, tensor in classifier_weights.items() if weights[k].shape != tensor.shape}
    weights = {k: w for k, w in weights.items() if k in initial_weights or not k.endswith(BN_STATISTICS)}
    mismatch_texts = [f"{k} is missing in the file" for k in initial_weights if k not in weights]
    mismatch_texts += [f"{k} is not in the network" for k in weights if k not in initial_weights]
    for k, tensor in initial_weights.items():
        if k in weights and (file_shape := weights[k].shape) != tensor.shape:
            shape_texts = f"{list(file_shape)} in the file and {list(tensor.shape)} in the network"
            mismatch_texts.append(f"{k} has shape {shape_texts}")
    if mismatch_texts:
        mismatches_text = "; ".join(mismatch_texts[:MAX_TENSORS_LISTED])
        n_omitted = len(mismatch_texts) - MAX_TENSORS_LISTED
        omitted_text = f", and {n_omitted} more" if n_omitted > 0 else ""
        raise OptionError(
            f"model.weights={weights_file}: the weights don't fit: {mismatches_text}{omitted_text}. "
            "Choose a file of the same network, or model.weights=null"
        )
    network.load_state_dict(weights)


def _read_tensors(weights_file: Path) -> dict[str, Tensor]:
    """Return the tensors in the file `weights_file` by name, without executing code that the file may contain.

    Raises:
        OptionError: the file can't be read, or holds something else than tensors by name.
    """
    try:
        if weights_file.suffix == ".safetensors":
            from safetensors.torch import load_file  # noqa: PLC0415 - an optional package

            file_tensors = load_file(weights_file)
        else:
            file_tensors = torch.load(weights_file, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise OptionError(
            f"model.weights={weights_file} needs the package safetensors: pip install safetensors"
        ) from error
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        error_text = str(error).split("\n")[0][:120]
        raise OptionError(
            f"model.weights={weights_file} can't be read as weights ({type(error).__name__}: {error_text}); choose "
            "another file"
        ) from error
    if not isinstance(file_tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in file_tensors.values()):
        raise OptionError(
            f"model.weights={weights_file} "
            "must hold a state dict (tensors by name) and nothing else: save network.state_dict()"
        )
    return dict(file_tensors)
