"""update: a client's update of this round, y - w_t, a row of P numbers, which the server receives anyway."""

from fedcohort.signal.base import RawUpdate

signal = RawUpdate(reveals="in which direction a client's data would move the global model")
