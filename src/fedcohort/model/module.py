"""A user's `nn.Module`, without a file here: `model=module model.path=my_networks.Net model.args={width: 16}`.

`path` names a class, or a function that returns a network, in a module of the working folder or on PYTHONPATH. Its
parameters get the values of `args`. Parameters with these names get the data's values if they are not in `args`:

    shape of a sample, such as (3, 32, 32):  input_shape, in_shape, shape
    first dimension of the shape:  in_channels, input_channels, channels
    number of values of a sample:  in_features, input_dim, n_features
    number of classes:  n_classes, num_classes, classes, out_features

The network maps a batch [B, *shape] to logits [B, n_classes]. Before a run, a forward pass of two samples checks it: a
wrong shape, inputs changed in place, or logits without a gradient raise an error. Batch norm, dropout, recurrent layers
and tied weights are supported. Initial weights must be drawn from torch's generator, which `seed` sets.
"""

import importlib
import importlib.util
import inspect
import math
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort import ranges
from fedcohort.contracts import find_error_line
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.model.base import Model

if TYPE_CHECKING:
    from torch import nn

SHAPE_PARAMETERS = ("input_shape", "in_shape", "shape")
CHANNEL_PARAMETERS = ("in_channels", "input_channels", "channels")
FEATURE_PARAMETERS = ("in_features", "input_dim", "n_features")
CLASS_PARAMETERS = ("n_classes", "num_classes", "classes", "out_features")
DATA_PARAMETERS = (SHAPE_PARAMETERS, CHANNEL_PARAMETERS, FEATURE_PARAMETERS, CLASS_PARAMETERS)
MAX_NAMES_LISTED = 8  # names in a message


@dataclass(frozen=True)
class Module(Model):
    """A model that builds its network by a user's class or function.

    Attributes:
        path: dotted name of the class or function, as in `my_networks.Net`.
        args: values of the parameters of the class or function, by name; None for an empty mapping.
        inputs: type of the network's inputs, "numbers" (float32) or "tokens" (int64).
        output: what the logits are for: each "sample" [B, n_classes], or each "position" of a sequence [B, length,
            n_classes].
        head: index or key of the logits if `forward` returns a tuple, a list or a dict; None if it returns the logits.
    """

    path: str
    args: Mapping[str, Any] | None
    inputs: str
    output: str
    head: int | str | None

    def __post_init__(self) -> None:
        ranges.choice("inputs", self.inputs, "numbers", "tokens")
        ranges.choice("output", self.output, "sample", "position")
        if not isinstance(self.args, Mapping | None) or not all(isinstance(k, str) for k in self.args or ()):
            allowed_text = "a mapping of parameter names to values, as {width: 16}, or null"
            raise ranges.range_error("args", allowed_text, self.args)
        if isinstance(self.head, bool) or not isinstance(self.head, int | str | None):
            raise ranges.range_error("head", "an integer, a text or null", self.head)
        path_parts = self.path.split(".") if isinstance(self.path, str) else []
        if len(path_parts) < 2 or not all(k.isidentifier() for k in path_parts):
            allowed_text = "the dotted name of a class, as my_networks.Net for Net in my_networks.py"
            raise ranges.range_error("path", allowed_text, self.path)
        _check_module_exists(self._module_name)

    @property
    def _module_name(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def reads_symbols(self) -> bool:
        return self.inputs == "tokens"

    @property
    def per_position(self) -> bool:
        return self.output == "position"

    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        """Return the user's network for samples of this `shape` and `n_classes` classes.

        It is built twice from one state of torch's generator, to check that equal seeds give equal weights.

        Raises:
            OptionError: the class does not exist, or does not accept its parameters.
            IncompatibleConfig: initial weights do not depend only on torch's generator.
        """
        import torch  # noqa: PLC0415 - imports torch
        from torch import nn  # noqa: PLC0415

        rng_state = torch.get_rng_state()
        _import_factory(self.path)  # the first import may draw random numbers
        torch.set_rng_state(rng_state)
        network = self._make_network(shape, n_classes)
        if not any(parameter.is_meta or nn.parameter.is_lazy(parameter) for parameter in network.parameters()):
            torch.set_rng_state(rng_state)
            rebuilt_weights, first_weights = self._make_network(shape, n_classes).state_dict(), network.state_dict()
            for k, w in first_weights.items():
                if not w.nan_to_num().equal(rebuilt_weights[k].nan_to_num()):
                    raise IncompatibleConfig(
                        f"model.path={self.path}: two networks with the same seed have different weights {k!r}: draw "
                        "initial weights only from torch's generator, as torch.nn.init does"
                    )
        return network

    def _make_network(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        from torch import nn  # noqa: PLC0415 - imports torch

        network_factory = _import_factory(self.path)
        factory_arguments = self._fill_arguments(network_factory, shape, n_classes)
        try:
            network = network_factory(**factory_arguments)
        except Exception as error:
            factory_call_text = f"{self.path}({', '.join(f'{k}={v!r}' for k, v in factory_arguments.items())})"
            cause_text = _describe_import_error(error, self._module_name)
            raise OptionError(f"model.path={self.path}: {factory_call_text} raises {cause_text}") from error
        if not isinstance(network, nn.Module):
            allowed_text = "a class or function that makes an nn.Module"
            raise ranges.range_error("model.path", allowed_text, type(network).__name__)
        if self.head is not None:
            network.register_forward_hook(lambda _network, _inputs, logits: logits[self.head])
        return network

    def _fill_arguments(
        self, network_factory: Callable[..., object], shape: tuple[int, ...], n_classes: int
    ) -> dict[str, Any]:
        """Return the arguments of `network_factory` by name: the option `args`, and values from the data.

        Args:
            network_factory: the user's class or function.
            shape: shape of a sample.
            n_classes: number of classes.
        """
        data_values = dict.fromkeys(SHAPE_PARAMETERS, shape) | dict.fromkeys(CHANNEL_PARAMETERS, shape[0])
        data_values |= dict.fromkeys(FEATURE_PARAMETERS, math.prod(shape)) | dict.fromkeys(CLASS_PARAMETERS, n_classes)
        parameters = inspect.signature(network_factory).parameters.values()
        parameter_by_name = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        given_arguments = dict(self.args or {})
        accepts_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
        unknown_name = next((k for k in given_arguments if k not in parameter_by_name and not accepts_any_name), None)
        if unknown_name is not None:
            name_hint = _suggest_name(unknown_name, parameter_by_name)
            raise OptionError(f"model.args: {self.path} has no parameter {unknown_name!r}{name_hint}")
        all_arguments = {k: v for k, v in data_values.items() if k in parameter_by_name} | given_arguments
        required_names = (k for k, p in parameter_by_name.items() if p.default is p.empty)
        if missing_name := next((k for k in required_names if k not in all_arguments), None):
            remedy_text = f"type model.args={{{missing_name}: ...}}"
            data_parameter_names = ", ".join(parameter_names[0] for parameter_names in DATA_PARAMETERS)
            raise OptionError(
                f"model.args: {self.path} needs the parameter {missing_name!r}: {remedy_text}. The dataset determines "
                f"{data_parameter_names}"
            )
        return all_arguments


def _check_module_exists(module_name: str) -> None:
    """Raise `OptionError` if Python does not find `module_name`; the working folder is searched after PYTHONPATH."""
    if module_name in sys.modules:  # such as a notebook, which has no file
        return
    if (working_folder := str(Path.cwd())) not in sys.path:
        sys.path.append(working_folder)
    try:
        module_spec = importlib.util.find_spec(module_name)  # imports the packages that contain the module
    except (ImportError, ValueError):
        module_spec = None
    if module_spec is None:
        file_names = sorted(file_path.stem for file_path in Path.cwd().glob("*.py"))
        file_hint = _suggest_name(module_name, file_names, "Python files there: ") if file_names else ""
        raise OptionError(
            f"path: there is no module {module_name!r} in the working folder {working_folder} or on "
            f"PYTHONPATH{file_hint}"
        )


def _import_factory(factory_path: str) -> Callable[..., object]:
    module_name, _, factory_name = factory_path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        cause_text = _describe_import_error(error, module_name)
        raise OptionError(f"model.path={factory_path}: importing {module_name} raises {cause_text}") from error
    network_factory = getattr(module, factory_name, None)
    if hasattr(network_factory, "state_dict") and not inspect.isclass(network_factory):
        raise OptionError(
            f"model.path={factory_path} is a network, but each run must build a new one: name its class, or a function "
            "that returns a new network"
        )
    if not callable(network_factory):
        class_names = [k for k, v in vars(module).items() if inspect.isclass(v) and not k.startswith("_")]
        similar_class_hint = _suggest_name(factory_name, class_names, "it has ")
        raise OptionError(f"model.path={factory_path}: {module_name} has no class {factory_name!r}{similar_class_hint}")
    return typing.cast(Callable[..., object], network_factory)


def _suggest_name(unknown_name: str, valid_names: Iterable[str], list_prefix: str = "its parameters are ") -> str:
    """Return the end of a message about an unknown name, such as "; did you mean width?".

    Args:
        unknown_name: the name that was given.
        valid_names: all valid names; the most similar one is suggested, or the first ones are listed.
        list_prefix: text before this list.
    """
    candidate_names = list(valid_names)
    if similar_name := ranges.find_closest(unknown_name, candidate_names):
        return f"; did you mean {similar_name}?"
    listed_names_text = ", ".join(candidate_names[:MAX_NAMES_LISTED]) or "none"
    return f"; {list_prefix}{listed_names_text}{', ...' if len(candidate_names) > MAX_NAMES_LISTED else ''}"


def _describe_import_error(error: Exception, module_name: str) -> str:
    error_location = find_error_line(error.__traceback__, module_name)
    return f"{type(error).__name__}: {' '.join(str(error).split())}{f' ({error_location})' if error_location else ''}"
