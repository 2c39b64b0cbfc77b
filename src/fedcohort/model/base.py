"""The contract of a model: it builds the network for a dataset's shape.

`build` imports torch, so that options out of range raise an error before torch is imported, which takes seconds.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.errors import IncompatibleConfig

if TYPE_CHECKING:
    from torch import nn

    Network = nn.Module
else:
    Network = Any  # torch is imported once the options are right


class Model(Component, Protocol):
    """A component that builds the network to train, for the shape of the data's samples.

    Attributes:
        reads_symbols: whether inputs are tokens, integers that the network embeds, instead of float32 numbers.
        per_position: whether the network has logits for each position of a sequence, [B, length, n_classes], instead of
            one vector.
    """

    @property
    def reads_symbols(self) -> bool:
        return False

    @property
    def per_position(self) -> bool:
        return False

    @abstractmethod
    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        """Return a network from inputs [B, *shape] to logits [B, n_classes], with random or pretrained weights.

        Raises `IncompatibleConfig` if the model does not support this shape.
        """


@dataclass(frozen=True)
class TokenModel(Model):
    """A model of LSTM layers that read sequences of tokens.

    Attributes:
        embedding: length of a token's embedding vector.
        hidden: number of units of each LSTM layer.
        layers: number of LSTM layers.
    """

    embedding: int
    hidden: int
    layers: int

    reads_symbols: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for option_name in ("embedding", "hidden", "layers"):
            ranges.integer(option_name, getattr(self, option_name), "[1, inf)")


def require_sequences(model_name: str, sample_shape: tuple[int, ...]) -> None:
    """Raise `IncompatibleConfig`, with `model_name`, unless a sample is a sequence: `sample_shape` is (length,)."""
    if len(sample_shape) != 1:
        raise IncompatibleConfig(
            f"model={model_name} needs sequences [length], but the inputs are {list(sample_shape)}: choose another "
            "model"
        )


def require_images(model_name: str, sample_shape: tuple[int, ...], min_side: int) -> tuple[int, int, int]:
    """Return channels, height and width of a sample; raise `IncompatibleConfig` if it is no image, or a smaller one.

    Args:
        model_name: name of the model, for the message.
        sample_shape: shape of a sample, (channels, height, width) for images.
        min_side: smallest allowed height and width, in pixels.
    """
    if len(sample_shape) != 3 or min(sample_shape[1:]) < min_side:
        raise IncompatibleConfig(
            f"model={model_name} needs images [channels, height, width] of at least {min_side}x{min_side}, but the "
            f"inputs are {list(sample_shape)}: choose another model"
        )
    return sample_shape


def check_norm_groups(norm_name: str, norm_groups: int, channels_by_layer: Iterable[int]) -> None:
    """Raise `OptionError` for invalid options of normalisation layers.

    Args:
        norm_name: value of the option `norm_name`, "group" or "batch".
        norm_groups: value of the option `norm_groups`, the number of groups of channels; with norm=group it must divide
            the channels of every layer.
        channels_by_layer: number of channels of each normalised layer.
    """
    ranges.choice("norm", norm_name, "group", "batch")
    ranges.integer("groups", norm_groups, "[1, inf)")
    channel_counts = sorted(set(channels_by_layer))
    if norm_name == "group" and any(channel_count % norm_groups for channel_count in channel_counts):
        allowed_text = f"a divisor of every layer's channels ({', '.join(map(str, channel_counts))})"
        raise ranges.range_error("groups", allowed_text, norm_groups)
