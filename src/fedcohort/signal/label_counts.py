"""label_counts: number of a client's training samples of each class, [K, C].

Labels are those that the client has, with label noise and, for an attacker, with the attack's false labels.
"""

from fedcohort.component import ONE_CLASS_PER_SAMPLE
from fedcohort.signal.base import Static

signal = Static(
    reveals="how many training samples of each class a client has",
    bytes_up=4,
    fact="label_counts",
    requirement=ONE_CLASS_PER_SAMPLE,
)
