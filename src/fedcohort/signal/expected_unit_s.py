"""expected_unit_s: expected virtual seconds of one epoch or step of a client's local work, from its device profile."""

from fedcohort.component import TIMED_DEVICE
from fedcohort.signal.base import Static

signal = Static(reveals="how fast a client's device is", bytes_up=4, fact="expected_unit_s", requirement=TIMED_DEVICE)
