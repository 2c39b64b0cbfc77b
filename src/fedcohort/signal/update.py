"""update: what a client learnt in this round, y - w_t, a row of P numbers. The server has it anyway."""

from fedcohort.signal.base import RawUpdate

signal = RawUpdate(reveals="where a client's data would move the global model")
