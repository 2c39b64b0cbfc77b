"""group_counts: how many training samples of each class and attribute a client has, N^k of FedDiverse.

[K, C * A], class by class. Only where the data come with attributes: clients don't know theirs, so that whoever
reads it is a yardstick, for ablations. Labels as the client sees them.
"""

from fedcohort.component import ATTRIBUTES
from fedcohort.signal.base import Static

signal = Static(
    reveals="how many training samples of each class and attribute a client has",
    bytes_up=4,
    fact="group_counts",
    requirement=ATTRIBUTES,
    knowable=False,
)
