"""lr: local learning rate of the round, which the server sets itself."""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="nothing about the client's data: the server sets the learning rate",
    bytes_up=0,
    read=lambda update: update.lr,
)
