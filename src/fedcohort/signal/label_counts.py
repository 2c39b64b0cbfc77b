"""label_counts: how many training samples of each class a client has, [K, C]; labels as the client sees them."""

from fedcohort.component import CLASSES
from fedcohort.signal.base import Static

signal = Static(
    reveals="how many training samples of each class a client has", bytes_up=4, fact="label_counts", requirement=CLASSES
)
