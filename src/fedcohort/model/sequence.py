"""Recurrent networks that predict the next token of a sequence, with LEAF's initial weights."""

import math

import torch
from torch import Tensor, nn

from fedcohort.model import glorot

MAX_INITIAL_WEIGHT = 0.1  # of uniform initial weights


class TokenLstm(nn.Module):
    """An LSTM network over sequences of tokens: embedding, LSTM layers, dense layer; subclasses define the output.

    `n_tokens` is the number of tokens, `n_embedding` the length of an embedding vector, `n_hidden` the number of
    units of each of `n_layers` LSTM layers.
    """

    def __init__(self, n_tokens: int, n_embedding: int, n_hidden: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, n_embedding)
        self.lstm = nn.LSTM(n_embedding, n_hidden, n_layers, batch_first=True)
        self.dense = nn.Linear(n_hidden, n_tokens)

    def compute_lstm_states(self, x: Tensor) -> Tensor:
        """Return the last LSTM layer's hidden state after each token of x [B, length], float32 [B, length, hidden]."""
        hidden_states: Tensor = self.lstm(self.embedding(x.long()))[0]
        return hidden_states


class NextTokenLstm(TokenLstm):
    """A network that predicts the next token: logits [B, n_tokens] after the last token of a sequence [B, length].

    The initial weights are drawn as TensorFlow draws them. The arguments are those of `TokenLstm`.
    """

    def __init__(self, n_tokens: int, n_embedding: int, n_hidden: int, n_layers: int) -> None:
        super().__init__(n_tokens, n_embedding, n_hidden, n_layers)
        nn.init.xavier_uniform_(self.embedding.weight)
        glorot.draw_glorot_weights(self)
        self._draw_gate_weights(n_hidden, n_layers)

    @torch.no_grad()
    def _draw_gate_weights(self, n_hidden: int, n_layers: int) -> None:
        """Draw the weights of `n_layers` LSTM layers of `n_hidden` units; biases are 0, but 1 in the forget gates.

        In torch's tensors the gates are in the order input, forget, cell, output.
        """
        for layer_index in range(n_layers):
            input_weights = getattr(self.lstm, f"weight_ih_l{layer_index}")
            hidden_weights = getattr(self.lstm, f"weight_hh_l{layer_index}")
            # TensorFlow has both in one matrix
            weight_bound = math.sqrt(6 / (input_weights.shape[1] + n_hidden + 4 * n_hidden))
            nn.init.uniform_(input_weights, -weight_bound, weight_bound)
            nn.init.uniform_(hidden_weights, -weight_bound, weight_bound)
            input_bias = getattr(self.lstm, f"bias_ih_l{layer_index}")
            nn.init.zeros_(input_bias)
            nn.init.zeros_(getattr(self.lstm, f"bias_hh_l{layer_index}"))
            input_bias[n_hidden : 2 * n_hidden] = 1.0

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.dense(self.compute_lstm_states(x)[:, -1])
        return logits


class PerPositionLstm(TokenLstm):
    """A network that predicts the next token after each position of a sequence: logits [B, length, n_tokens].

    The initial weights are uniform in [-0.1, 0.1], but the LSTM layers' biases are 0. The arguments are those of
    `TokenLstm`.
    """

    def __init__(self, n_tokens: int, n_embedding: int, n_hidden: int, n_layers: int) -> None:
        super().__init__(n_tokens, n_embedding, n_hidden, n_layers)
        for parameter_name, parameter in self.named_parameters():
            if parameter_name.startswith("lstm.bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -MAX_INITIAL_WEIGHT, MAX_INITIAL_WEIGHT)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.dense(self.compute_lstm_states(x))
        return logits
