"""expected_up_s: expected virtual seconds of a client's complete upload, from its device profile."""

from fedcohort.component import TIMED_DEVICE
from fedcohort.signal.base import Static

signal = Static(reveals="how fast a client's link is", bytes_up=4, fact="expected_up_s", requirement=TIMED_DEVICE)
