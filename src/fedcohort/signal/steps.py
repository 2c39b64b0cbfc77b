"""steps: how many optimizer steps a client made, which the server divides an update by."""

from fedcohort.signal.base import Reported

signal = Reported(reveals="how many mini-batches a client has", bytes_up=4, read=lambda update: float(update.steps))
