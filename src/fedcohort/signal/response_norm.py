"""response_norm: displacement of a client's optimizer under a constant gradient of 1, in learning rates.

It is a_i of FedNova, computed in `training/response.py`. With `steps` it makes the 8 bytes that FedNova sends with an
update.
"""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how much local work a client has done", bytes_up=4, read=lambda update: float(update.response)
)
