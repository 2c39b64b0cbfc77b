"""response_norm: how far a client's optimizer goes for a gradient that stays 1, in local learning rates: FedNova's a_i.

`training/response.py` works it out. With `steps` it makes the 8 bytes that FedNova sends beside an update.
"""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how much local work a client has done", bytes_up=4, read=lambda update: float(update.response)
)
