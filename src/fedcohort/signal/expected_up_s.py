"""expected_up_s: expected virtual seconds of a client's upload, all of it, from its device profile."""

from fedcohort.signal.base import Static

signal = Static(reveals="how fast a client's link is", bytes_up=4, fact="expected_up_s", wants="timed_device")
