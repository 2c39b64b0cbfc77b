"""val_loss: mean cross-entropy of w_t on a client's validation set V_i, in eval mode."""

from fedcohort.signal.base import Measured
from fedcohort.signal.loss import cross_entropy

signal = Measured(
    reveals="how well the global model fits a client's validation data",
    bytes_up=4,
    split="val",
    per_sample=cross_entropy,
)
