"""steps: number of optimizer steps that a client made, by which the server divides an update."""

from fedcohort.signal.base import Reported

signal = Reported(reveals="how many mini-batches a client has", bytes_up=4, read=lambda update: float(update.steps))
