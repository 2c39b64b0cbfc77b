"""The network that LEAF trains on Shakespeare (Caldas et al. 2018): which character comes after those of a sequence.

    embedding, 8 -> LSTM, 256 -> LSTM, 256 -> dense, of the last step's output alone

819,920 parameters with 80 characters. LEAF's TensorFlow has 817,872: torch's layers have a second bias each, 4 x 256
numbers in either of two layers, which starts at 0 and only adds to the first. Initial weights are TensorFlow's:
Glorot's over all four gates together (`model.glorot`), biases 0, but 1 in the forget gates.

Departures from LEAF: the second biases are trained, too, so that biases move as with twice the learning rate.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort import ranges
from fedcohort.errors import IncompatibleConfig
from fedcohort.model.base import Model

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class CharLstm(Model):
    """The network, with its options.

    Attributes:
        embedding: numbers that stand for a character.
        hidden: units of each LSTM.
        layers: LSTMs one after the other.
    """

    embedding: int
    hidden: int
    layers: int

    reads_symbols: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.integer("embedding", self.embedding, "[1, inf)")
        ranges.integer("hidden", self.hidden, "[1, inf)")
        ranges.integer("layers", self.layers, "[1, inf)")

    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        """A network from sequences [B, length] of symbols below n_classes to logits of the next one.

        Raises `IncompatibleConfig` for inputs that are no sequences.
        """
        from fedcohort.model.sequence import NextSymbol  # noqa: PLC0415 - torch only once the words are right

        if len(shape) != 1:
            raise IncompatibleConfig(f"model=char_lstm needs sequences [length], the inputs are {list(shape)}")
        return NextSymbol(n_classes, self.embedding, self.hidden, self.layers)
