"""pass_units: units of local work in one pass over a client's training set: 1, or its mini-batches where a unit is one.

The server knows it from n_train, and is told that where it is read.
"""

from fedcohort.signal.base import Static

signal = Static(reveals="roughly how many training samples a client has", bytes_up=4, fact="pass_units")
