"""loss_low: the reported smallest loss of a client's samples, LLow in FedBalancer (Sec. 3.2.2)."""

from fedcohort.component import LOSS_LISTS
from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how well the model fits the sample that it fits best",
    bytes_up=4,
    read=lambda update: update.loss_report["loss_low"],
    requirement=LOSS_LISTS,
)
