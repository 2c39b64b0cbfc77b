"""loss_high: the 80th percentile of a client's list of losses, LHigh in FedBalancer (Sec. 3.2.2), as reported."""

from fedcohort.component import LOSS_LISTS
from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how badly the model fits a client's hard samples",
    bytes_up=4,
    read=lambda update: update.loss_report["loss_high"],
    requirement=LOSS_LISTS,
)
