"""update_norm: Euclidean norm of a client's update, y - w_t, which the server computes from the update."""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how far a client's data moved the model",
    bytes_up=0,
    read=lambda update: float(update.delta.double().norm()),
    is_gradient=True,
)
