"""expected_s: expected virtual seconds of a client's whole job, from its device profile, known before a query."""

from fedcohort.component import TIMED_DEVICE
from fedcohort.signal.base import Static

signal = Static(reveals="how fast a client's device is", bytes_up=4, fact="expected_s", requirement=TIMED_DEVICE)
