"""loss_high: the reported 80th percentile of a client's sample losses, LHigh in FedBalancer (Sec. 3.2.2)."""

from fedcohort.component import LOSS_LISTS
from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how badly the model fits a client's hard samples",
    bytes_up=4,
    read=lambda update: update.loss_report["loss_high"],
    requirement=LOSS_LISTS,
)
