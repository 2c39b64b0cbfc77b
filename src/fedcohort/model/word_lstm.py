"""The network that LEAF trains on Reddit (Caldas et al. 2018), which predicts the next word at each position.

    embedding, 256 -> LSTM, 256 -> LSTM, 256 -> dense, of every step's output

6,182,672 parameters with 10,000 tokens. LEAF's TensorFlow has 6,180,624: each of torch's two layers has a second bias
of 4 x 256 numbers, which starts at 0 and is added to the first. Initial weights are LEAF's: uniform in +-0.1, and 0
for the LSTMs' biases, including those of the forget gates.

Departures from LEAF: the second biases are trained, too, so that the sum of both changes at twice the learning rate.
Every sequence starts in the state 0. In LEAF a mini-batch starts in the final state of the mini-batch before, which has
other sequences.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.model.base import Network, TokenModel, require_sequences


@dataclass(frozen=True)
class WordLstm(TokenModel):
    """LEAF's model for Reddit: LSTM layers that predict the next word after each position."""

    per_position: ClassVar[bool] = True

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        """Return a network from sequences [B, length] of tokens below n_classes to logits [B, length, n_classes].

        `shape` is (length,). Raises `IncompatibleConfig` for samples of another shape.
        """
        from fedcohort.model.sequence import PerPositionLstm  # noqa: PLC0415 - options are checked before torch is imported

        require_sequences("word_lstm", shape)
        return PerPositionLstm(n_classes, self.embedding, self.hidden, self.layers)
