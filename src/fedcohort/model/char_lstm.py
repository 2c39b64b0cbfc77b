"""The network that LEAF trains on Shakespeare (Caldas et al. 2018), which predicts the next character of a sequence.

    embedding, 8 -> LSTM, 256 -> LSTM, 256 -> dense, of the last step's output only

819,920 parameters with 80 characters. LEAF's TensorFlow has 817,872: each of torch's two layers has a second bias of
4 x 256 numbers, which starts at 0 and is added to the first. Initial weights are TensorFlow's: Glorot's over all four
gates (`model.glorot`), biases 0, but 1 in the forget gates.

Departures from LEAF: the second biases are trained, too, so that the sum of both changes at twice the learning rate.
"""

from dataclasses import dataclass

from fedcohort.model.base import Network, TokenModel, require_sequences


@dataclass(frozen=True)
class CharLstm(TokenModel):
    """LEAF's model for Shakespeare: LSTM layers that predict the next character from the characters before."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        """Return a network from sequences [B, length] of tokens below n_classes to logits [B, n_classes].

        `shape` is (length,). Raises `IncompatibleConfig` for samples of another shape.
        """
        from fedcohort.model.sequence import NextTokenLstm  # noqa: PLC0415 - options are checked before torch is imported

        require_sequences("char_lstm", shape)
        return NextTokenLstm(n_classes, self.embedding, self.hidden, self.layers)
