"""loss_post: F_k(y_k), mean cross-entropy of a client's trained model on its whole training set, in eval mode.

y_k is the client's own model, before a codec changes its update. All of T_k counts, even where the client trained on a
part of it. It costs one more forward pass, which delays the answer.
"""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how well a model can fit a client's training data",
    bytes_up=4,
    read=lambda update: update.loss_after,
    passes=1.0,
)
