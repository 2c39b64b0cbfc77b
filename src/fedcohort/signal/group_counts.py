"""group_counts: number of a client's training samples of each class and attribute, N^k of FedDiverse, [K, C * A].

Columns are ordered class by class. It exists where the data have attributes. Clients do not know the attributes of
their samples, so that only oracles and ablations read it. Classes are those of the labels that a client has, with label
noise and, for an attacker, with the attack's false labels; attributes are the true ones.
"""

from fedcohort.component import SAMPLE_ATTRIBUTES
from fedcohort.signal.base import Static

signal = Static(
    reveals="how many training samples of each class and attribute a client has",
    bytes_up=4,
    fact="group_counts",
    requirement=SAMPLE_ATTRIBUTES,
    knowable=False,
)
