"""duration: virtual seconds from the broadcast to the arrival of a client's update, measured by the server's clock."""

from fedcohort.component import TIMED_DEVICE
from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how fast a client's device is", bytes_up=0, read=lambda update: update.duration, requirement=TIMED_DEVICE
)
