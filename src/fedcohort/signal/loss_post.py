"""loss_post: F_k(y_k), the mean cross-entropy of what a client has trained on its whole training set, in eval mode.

y_k is the client's own model: what a codec loses on the way to the server is not lost in it. All of T_k counts, even
where the client trained on some of it: one forward pass more, which its answer waits for.
"""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how well a model can fit a client's training data",
    bytes_up=4,
    read=lambda update: update.loss_after,
    passes=1.0,
)
