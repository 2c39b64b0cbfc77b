"""label_counts: number of a client's training samples of each class, [K, C]; labels include label noise."""

from fedcohort.component import ONE_CLASS_PER_SAMPLE
from fedcohort.signal.base import Static

signal = Static(
    reveals="how many training samples of each class a client has",
    bytes_up=4,
    fact="label_counts",
    requirement=ONE_CLASS_PER_SAMPLE,
)
