"""group_counts: number of a client's training samples of each class and attribute, N^k of FedDiverse, [K, C * A].

Columns are ordered class by class. It exists where the data have attributes. Clients do not know the attributes of
their samples, so that only oracles and ablations read it. Labels include label noise.
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
