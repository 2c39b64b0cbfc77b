"""expected_down_s: expected virtual seconds of a client's download, from its device profile."""

from fedcohort.component import TIMED_DEVICE
from fedcohort.signal.base import Static

signal = Static(reveals="how fast a client's link is", bytes_up=4, fact="expected_down_s", requirement=TIMED_DEVICE)
